# shellcheck shell=bash
# ./dev test [--full]: everything that must hold, stage by stage; a summary at the end.
# Environment: CI (nothing may be skipped without a reason declared in tests/skips.txt),
# FUZZ_SECONDS (each fuzzer; default 20, with --full 600).

# shellcheck source=tools/dev/stages.sh
. tools/dev/stages.sh
# shellcheck source=tools/dev/setup.sh
. tools/dev/setup.sh
# shellcheck source=tools/dev/fuzz.sh
. tools/dev/fuzz.sh

readonly TEST_SERVERS=(rgw rgw-tls seaweedfs seaweedfs-tls rclone rclone-tls)
readonly ASAN="strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1"
readonly UBSAN="print_stacktrace=1:halt_on_error=1"

cmd_test() {
  local full=0
  case "${1:-}" in '') ;; --full) full=1 ;; *) fail "test takes --full or nothing, not '$1'" ;; esac
  setup_test
  [[ $full == 0 ]] || setup_full
  ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer-19 || true)
  export ASAN_SYMBOLIZER_PATH ASAN_OPTIONS=$ASAN UBSAN_OPTIONS=$UBSAN TSAN_OPTIONS=second_deadlock_stack=1
  begin_run
  # A folder of this run alone, and a short one: sockets' paths are limited.
  TMPDIR=$(mktemp -d /tmp/oc-test.XXXXXX)
  export TMPDIR
  trap 'rm -rf -- "$TMPDIR"' EXIT
  stage scripts "scripts (shellcheck) and formatting" check_scripts || true
  test_release
  test_sanitized asan
  test_fuzzers "$([[ $full == 1 ]] && echo 600 || echo 20)"
  if [[ $full == 1 ]]; then
    test_sanitized tsan
    test_full_only
  fi
  stage leftovers "nothing left behind" check_leftovers || true
  python3 tools/dev/summary.py --run "$RESULTS"
}

setup_full() {
  need_packages full
  need_python bench
}

check_scripts() {
  local s
  while IFS= read -r s; do
    if shellcheck -x "$s"; then record passed "shellcheck $s"; else record failed "shellcheck $s"; fi
  done < <(shell_scripts)
}

check_leftovers() { # of servers, after all that started some
  sleep 2 # the watchdogs look once a second
  local left
  left=$(find "$TMPDIR" -maxdepth 1 -name 'oc-servers.*'; ps -eo stat=,pid=,args= | awk -v t="$TMPDIR" '$1 !~ /^Z/ && index($0, t) && !/awk/')
  if [[ -z $left ]]; then record passed "no server and no data of one"; return; fi
  record failed "no server and no data of one" "$(tr '\n' ' ' <<<"$left")"
  printf 'left behind:\n%s\n' "$left"
}

test_release() {
  stage build-release "build: g++, release" build_preset release all -DOBJECTCACHE_TESTS=ON -DOBJECTCACHE_BENCH=ON \
    || { skip_stages "the release build failed" unit architecture integration bench; return 0; }
  stage unit "unit tests, release" run_ctest release "$JOBS" -L '^unit$' || true
  stage architecture "architecture, installed package, tools" run_ctest release "$JOBS" -L '^(architecture|package|tools)$' || true
  stage integration "integration on real servers, release" with_servers "${TEST_SERVERS[@]}" -- \
    run_ctest release 1 -L '^integration$' -LE '^soak$' || true
  stage bench "benches, small" with_servers rgw rgw-tls -- run_ctest release 1 -L '^bench$' || true
}

test_sanitized() { # asan|tsan
  stage "build-$1" "build: clang, $1" build_preset "$1" all \
    || { skip_stages "the $1 build failed" "unit-$1" "integration-$1"; return 0; }
  stage "unit-$1" "unit tests, $1" run_ctest "$1" "$JOBS" -L '^unit$' -LE '^heavy$' || true
  stage "integration-$1" "integration on real servers, $1" with_servers "${TEST_SERVERS[@]}" -- \
    run_ctest "$1" 1 -L '^integration$' -LE '^(heavy|soak)$' || true
}

test_fuzzers() { # DEFAULT_SECONDS
  local seconds=${FUZZ_SECONDS:-$1}
  stage build-fuzz "build: clang, libFuzzer" build_preset fuzz fuzzers \
    || { skip_stages "the fuzz build failed" fuzz; return 0; }
  stage fuzz "fuzzers, $seconds s each" fuzz_all "$seconds" || true
}

test_full_only() {
  stage soak "soak" with_servers "${TEST_SERVERS[@]}" -- run_ctest release 1 -L '^soak$' || true
  stage tidy "clang-tidy" build_preset tidy all || true
}

build_preset() { # PRESET TARGET [-DVAR=VALUE...]
  local preset=$1 target=$2; shift 2
  configure "$preset" "$@"
  compile "$preset" "$target"
  record passed "build $preset"
}
