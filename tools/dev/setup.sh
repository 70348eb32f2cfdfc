# shellcheck shell=bash
# ./dev setup [build|test|full]: all that a command of that kind needs. The commands call the parts themselves.

cmd_setup() {
  case "${1:-full}" in
    build) need_packages build ;;
    test) setup_test ;;
    full) setup_test; need_packages full; need_python bench ;;
    *) fail "setup takes build, test or full, not '$1'" ;;
  esac
}

setup_test() {
  need_packages build test
  need_python servers
}
