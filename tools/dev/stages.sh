# shellcheck shell=bash
# Running the stages of ./dev test: each goes on after another's failure, each leaves its results in
# .cache/results/NN-NAME for tools/dev/summary.py.

RESULTS=$ROOT/.cache/results
STAGE=${STAGE:-}
STAGE_COUNT=0

begin_run() {
  rm -rf "$RESULTS"
  mkdir -p "$RESULTS"
}

stage() { # NAME 'what it says' FUNCTION ARGS...: returns the function's status, never exits
  local name=$1 title=$2 t0=$SECONDS rc; shift 2
  STAGE_COUNT=$((STAGE_COUNT + 1))
  STAGE=$RESULTS/$(printf '%02d' "$STAGE_COUNT")-$name
  mkdir -p "$STAGE"
  printf '%s\n' "$title" >"$STAGE/title"
  note "$title"
  # 'if' or '||' would switch off 'set -e' inside the stage
  set +e
  ( set -e; "$@" )
  rc=$?
  set -e
  printf '%s\n' "$rc" >"$STAGE/status"
  printf '%s\n' "$((SECONDS - t0))" >"$STAGE/seconds"
  python3 tools/dev/summary.py --stage "$STAGE" || true
  return "$rc"
}
skip_stages() { # WHY NAME...: what could not run because something before it failed counts as failed
  local why=$1 name; shift
  for name in "$@"; do stage "$name" "$name: not run, $why" false || true; done
}

record() { # passed|failed|skipped NAME [WHY]: one case of a stage that is not ctest's
  printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>"$STAGE/cases.tsv"
}

# What is run and how each test ended, as files, beside what a person reads if something failed.
run_ctest() { # PRESET JOBS CTEST_OPTIONS...
  local dir jobs=$2; dir=$(build_dir "$1"); shift 2
  ctest --test-dir "$dir" --show-only=json-v1 "$@" >"$STAGE/tests.json"
  mkdir -p "$STAGE/gtest"
  GTEST_OUTPUT="xml:$STAGE/gtest/" GTEST_COLOR=no \
    ctest --test-dir "$dir" --output-junit "$STAGE/junit.xml" --output-on-failure --no-tests=error \
      --timeout 300 -j "$jobs" "$@" </dev/null >"$STAGE/log" 2>&1 \
    || { grep -vE '^ *[0-9]+/[0-9]+ Test +#.*Passed|^ *Start +[0-9]+:|^\[ +(RUN|OK) ' "$STAGE/log" | tail -n 150; return 1; }
}

with_servers() { # NAMES... -- FUNCTION ARGS...: in a bash of its own that knows this file
  local names=()
  while [[ $1 != -- ]]; do names+=("$1"); shift; done
  shift
  export STAGE ROOT
  # shellcheck disable=SC2016  # expanded by the inner bash
  tools/with-servers "${names[@]}" -- bash -euo pipefail -c '
    . tools/dev/common.sh
    . tools/dev/stages.sh
    env | grep ^OC_TEST_VERSION_ >"$STAGE/servers.env"
    "$@"' with-servers "$@" 2>"$STAGE/servers.log" \
    || { grep -v ' up in ' "$STAGE/servers.log" >&2; return 1; }
}
