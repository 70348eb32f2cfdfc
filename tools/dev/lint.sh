# shellcheck shell=bash
# ./dev lint: clang-tidy, include directions and documents, formatting, shellcheck.

# shellcheck source=tools/dev/fmt.sh
. tools/dev/fmt.sh

cmd_lint() {
  need_packages build test full
  local failed=0
  note "shellcheck"
  shell_scripts | xargs -r shellcheck -x || failed=1
  note "clang-format"
  cxx_sources | xargs -r clang-format-19 --dry-run --Werror || { echo "run ./dev fmt" >&2; failed=1; }
  note "include directions and documents"
  python3 tests/architecture/check.py || failed=1
  note "clang-tidy"
  configure tidy
  (compile tidy) || failed=1
  [[ $failed == 0 ]] || fail "lint found something"
  note "clean"
}
