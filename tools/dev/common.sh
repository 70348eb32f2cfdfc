# shellcheck shell=bash
# Shared by the commands of ./dev: words on the terminal, installing, configuring and building.
# The sourcing script has changed to the repository's root and set ROOT.

# shellcheck disable=SC2034  # read by the commands
JOBS=$(nproc)
export CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache}

note() { printf '==> %s\n' "$*"; }
fail() { printf './dev: error: %s\n' "$*" >&2; exit 1; }

LOGS=$ROOT/.cache/log
quietly() { # NAME CMD...: output goes to a log that is shown only if the command fails
  local log=$LOGS/$1.log t0=$SECONDS; shift
  mkdir -p "$LOGS"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 60 "$log" >&2
    fail "failed after $((SECONDS - t0)) s: $* (whole output: $log)"
  fi
}

# ---------------------------------------------------------------- what is installed
packages_in() { # LIST...: the names in tools/packages/LIST.txt, without the reasons
  local l
  for l in "$@"; do sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "tools/packages/$l.txt"; done | tr -d ' \t' | sort -u
}
missing_packages() { # LIST...
  comm -23 <(packages_in "$@") \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | awk '$1 == "installed" {print $2}' | sort -u)
}
need_packages() { # LIST...: installs what is missing, as root; else says what to run
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  local install=(apt-get install -y --no-install-recommends "${missing[@]}")
  if [[ $(id -u) != 0 ]]; then
    printf './dev: these Debian packages are missing; as root, run:\n\n  apt-get update && %s\n\n' "${install[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  note "installing ${#missing[@]} Debian packages: ${missing[*]}"
  # A list that is missing or old cannot resolve them: refresh it once.
  if ! apt-get install -s --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
    quietly apt-update apt-get -o DPkg::Lock::Timeout=300 update
  fi
  if ! (quietly apt-install apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "${install[@]:1}") 2>/dev/null; then
    quietly apt-update apt-get -o DPkg::Lock::Timeout=300 update
    quietly apt-install apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "${install[@]:1}"
  fi
}
need_python() { # NAME...: tools/packages/NAME.requirements.txt into .venv
  local name stamp
  for name in "$@"; do
    stamp=.venv/.$name.sha256
    if sha256sum --check --status "$stamp" 2>/dev/null; then continue; fi
    note "installing Python packages ($name)"
    [[ -x .venv/bin/pip ]] || quietly venv python3 -m venv .venv
    quietly "pip-$name" .venv/bin/pip install --quiet --disable-pip-version-check --retries 5 -r "tools/packages/$name.requirements.txt"
    sha256sum "tools/packages/$name.requirements.txt" >"$stamp"
  done
}

# ---------------------------------------------------------------- building
build_dir() { if [[ $1 == release ]]; then echo build; else echo "build-$1"; fi; }

configure() { # PRESET [-DVAR=VALUE...]: only when something asks for it
  local preset=$1; shift
  quietly "configure-$preset" cmake --preset "$preset" "$@"
}
compile() { # PRESET [TARGET...]: shows the compiler's words only if it fails, warnings always
  local preset=$1 dir log; shift
  dir=$(build_dir "$preset")
  quietly "build-$preset" ninja -C "$dir" -j "$JOBS" "$@"
  log=$LOGS/build-$preset.log
  grep -E 'warning:' "$log" | sort -u | head -n 20 || true
}

shell_scripts() { # every tracked or new file that is bash
  git ls-files --cached --others --exclude-standard | while IFS= read -r f; do
    case "$f" in *.sh) echo "$f" ;; *.*) ;; *) ! head -n 1 -- "$f" 2>/dev/null | grep -aq '^#!.*bash' || echo "$f" ;; esac
  done
}
