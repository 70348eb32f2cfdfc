# shellcheck shell=bash
# ./dev fuzz [NAME] [SECONDS]: the libFuzzer programs of fuzz/. What they learn is kept in .cache/fuzz/NAME;
# an input that fails is kept in .cache/fuzz/failures: add it to fuzz/corpus/NAME once it is mended.

cmd_fuzz() {
  local name='' seconds=60
  if [[ ${1:-} =~ ^[a-z] ]]; then name=$1; shift; fi
  if [[ $# -gt 0 ]]; then seconds=$1; fi
  [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "fuzz takes a fuzzer's name and a number of seconds, not '$seconds'"
  need_packages build test
  configure fuzz
  compile fuzz fuzzers
  # shellcheck source=tools/dev/stages.sh
  . tools/dev/stages.sh
  begin_run
  if [[ -n $name ]]; then
    [[ -x build-fuzz/bin/fuzz_$name ]] || fail "no fuzzer '$name'; there are: $(fuzzers | tr '\n' ' ')"
    note "fuzzing $name for $seconds s"
    fuzz_one "$name" "$seconds" verbose
  else
    stage fuzz "fuzzers, $seconds s each" fuzz_all "$seconds"
  fi
}

fuzzers() { local f; for f in build-fuzz/bin/fuzz_*; do [[ ! -x $f ]] || basename "$f" | cut -c6-; done; }

fuzz_one() { # NAME SECONDS [verbose]
  local learned=.cache/fuzz/$1 failures=.cache/fuzz/failures log=.cache/log/fuzz-$1.log
  mkdir -p "$learned" "$failures" .cache/log "fuzz/corpus/$1"
  local run=("build-fuzz/bin/fuzz_$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
    -artifact_prefix="$failures/$1-" "$learned" "fuzz/corpus/$1")
  if [[ -n ${3:-} ]]; then "${run[@]}"; else "${run[@]}" >"$log" 2>&1 </dev/null; fi
}

fuzz_all() { # SECONDS: as many at once as there are cores
  local name found; found=$(fuzzers)
  [[ -n $found ]] || { echo "no fuzzer was built" >&2; return 1; }
  export -f fuzz_one
  # shellcheck disable=SC2016  # expanded by the inner bash
  # shellcheck disable=SC2153
  xargs -P "$JOBS" -I{} bash -c 'fuzz_one {} '"$1"' && : >"$0/{}.ok"' "$STAGE" <<<"$found" || true
  for name in $found; do
    if [[ -e $STAGE/$name.ok ]]; then
      record passed "fuzz $name" "$(sed -n 's/^stat::number_of_executed_units: */executions: /p' ".cache/log/fuzz-$name.log")"
    else
      record failed "fuzz $name" "see .cache/log/fuzz-$name.log"
      grep -aE 'ERROR|SUMMARY|Test unit written' ".cache/log/fuzz-$name.log" | head -n 5 >&2 || true
    fi
  done
}
