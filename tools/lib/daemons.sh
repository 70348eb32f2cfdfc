# shellcheck shell=bash
# Starting, watching and ending daemons by recorded pid: shared by the *-dev scripts of this folder.
# The sourcing script sets PROG (its name) and DIR (its data folder; holds run/ and log/).
# shellcheck disable=SC2034  # some variables are for the sourcing script

die()  { printf '%s: error: %s\n' "$PROG" "$*" >&2; exit 1; }
bad()  { printf '%s: %s\n' "$PROG" "$*" >&2; printf "try: %s --help\n" "$PROG" >&2; exit 2; }
say()  { printf '%s: %s\n' "$PROG" "$*"; }
# The script's own head comment is its manual.
usage() { sed -n '2,/^set -euo/{/^set -euo/d;s/^# \{0,1\}//;p}' "$0"; }

need_programs() { # HINT PROGRAM...: all of them must be on PATH
  local hint=$1 p missing=(); shift
  for p in "$@"; do command -v "$p" >/dev/null || missing+=("$p"); done
  [[ ${#missing[@]} -eq 0 ]] || die "not installed: ${missing[*]}. $hint"
}

data_dir() { # PATH: sets DIR to the absolute form, refuses what configuration files cannot quote
  DIR=$1
  [[ $DIR == /* ]] || DIR=$PWD/$DIR
  DIR=${DIR%/}
  [[ -n $DIR ]] || bad "DATA_DIR may not be /"
  [[ $DIR != *[[:space:]\'\"\;\#]* ]] || bad "DATA_DIR may not hold spaces, quotes, ';' or '#'"
}

lock() { exec 9>>"$DIR/lock" || die "cannot write in $DIR"; flock -w 5 9 || die "another $PROG is working on $DIR"; }

port_free() { ! (exec 3<>"/dev/tcp/${2:-127.0.0.1}/$1") 2>/dev/null; }
TAKEN=" "
PORT_OUT=
pick_port() { # sets PORT_OUT; below the ephemeral range, so no client socket can take it meanwhile
  local i p
  for ((i = 0; i < 200; i++)); do
    p=$((20000 + (RANDOM % 12000)))
    [[ $TAKEN != *" $p "* ]] && port_free "$p" && { TAKEN+="$p "; PORT_OUT=$p; return 0; }
  done
  die "found no free port between 20000 and 32000"
}

# A pid file holds "pid starttime": the start time guards against a reused pid.
start_time() {
  local s fields
  s=$(<"/proc/$1/stat") 2>/dev/null || return 1
  read -ra fields <<<"${s##*) }"
  printf '%s' "${fields[19]}"
}
alive() { # NAME -> 0 if the recorded process still runs
  local pid st
  [[ -s $DIR/run/$1.pid ]] || return 1
  read -r pid st <"$DIR/run/$1.pid" || return 1
  [[ $(start_time "$pid" 2>/dev/null) == "$st" ]] || return 1
  [[ $(awk '{s=$0; sub(/.*\) /,"",s); print substr(s,1,1)}' "/proc/$pid/stat" 2>/dev/null) != Z ]]
}
pid_of() { local pid _; read -r pid _ <"$DIR/run/$1.pid"; printf '%s' "$pid"; }

launch() { # NAME CMD...: run in its own session, record the pid
  local name=$1; shift
  alive "$name" && die "$name already runs (pid $(pid_of "$name"))"
  setsid "$@" </dev/null >>"$DIR/log/$name.out" 2>&1 9>&- &
  local pid=$! st
  disown "$pid" 2>/dev/null || true
  st=$(start_time "$pid") || { tail_log "$name"; die "$name did not start"; }
  printf '%s %s\n' "$pid" "$st" >"$DIR/run/$name.pid"
}
tail_log() { # NAME: to stderr, whatever its logs end with
  local f
  for f in "$DIR/log/$1".out "$DIR"/log/*"$1"*.log; do
    [[ -s $f ]] && { printf -- '--- last lines of %s\n' "$f" >&2; tail -n 15 -- "$f" >&2; }
  done
  true
}

KILLED=0
end() { # NAME [SECONDS]: TERM, wait, KILL (SECONDS 0: KILL at once); KILLED says whether it came to that
  local name=$1 secs=${2:-30} pid i
  KILLED=0
  if ! alive "$name"; then rm -f "$DIR/run/$name.pid"; return 0; fi
  pid=$(pid_of "$name")
  kill -TERM "$pid" 2>/dev/null || true
  for ((i = 0; i < secs * 10; i++)); do
    alive "$name" || { rm -f "$DIR/run/$name.pid"; return 0; }
    sleep 0.1
  done
  [[ $secs == 0 ]] || say "$name (pid $pid) did not end within ${secs}s of TERM: KILL"
  KILLED=1
  kill -KILL "$pid" 2>/dev/null || true
  for ((i = 0; i < 50; i++)); do alive "$name" || { rm -f "$DIR/run/$name.pid"; return 0; }; sleep 0.1; done
  die "$name (pid $pid) cannot be ended"
}

wait_for() { # SECONDS DAEMON WHAT CMD...
  local secs=$1 daemon=$2 what=$3 t0=$SECONDS; shift 3
  until "$@" >/dev/null 2>&1; do
    alive "$daemon" || { tail_log "$daemon"; die "$daemon ended while waiting for: $what"; }
    (( SECONDS - t0 < secs )) || { tail_log "$daemon"; die "no $what after ${secs}s"; }
    sleep 0.1
  done
}

readonly EMPTY_SHA=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
make_bucket() { # ENDPOINT ACCESS_KEY SECRET_KEY NAME
  # curl 7.88 does not send x-amz-content-sha256 by itself, and S3 asks for it
  local code
  code=$(curl -sk --noproxy '*' -m 30 -o "$DIR/run/bucket.out" -w '%{http_code}' -X PUT --aws-sigv4 aws:amz:us-east-1:s3 \
         -H "x-amz-content-sha256: $EMPTY_SHA" -u "$2:$3" "$1/$4") || true
  [[ $code == 200 ]] || die "cannot create bucket '$4': HTTP $code $(cat "$DIR/run/bucket.out" 2>/dev/null)"
}
is_bucket_name() { [[ $1 =~ ^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$ ]]; }

print_s3_env() { # ENDPOINT HTTPS_ENDPOINT ACCESS_KEY SECRET_KEY VERSION: for eval
  cat <<ENV
export S3_ENDPOINT=$1
export S3_ENDPOINT_TLS=$2
export S3_REGION=us-east-1
export S3_PATH_STYLE=1
export S3_SERVER='$5'
export AWS_ACCESS_KEY_ID=$3
export AWS_SECRET_ACCESS_KEY=$4
export AWS_DEFAULT_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true
ENV
}
# The keys that every server of this folder knows unless told otherwise.
readonly DEV_ACCESS_KEY=DEVACCESSKEY00000001
readonly DEV_SECRET_KEY=devsecretkey000000000000000000000000001
