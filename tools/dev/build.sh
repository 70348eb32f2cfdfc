# shellcheck shell=bash
# ./dev build [PRESET]

cmd_build() {
  local preset=${1:-release}
  # shellcheck source=tools/dev/setup.sh
  . tools/dev/setup.sh
  case "$preset" in
    release|dev|asan|tsan|fuzz) need_packages build test ;;
    tidy) need_packages build test full ;;
    *) fail "no such preset: '$preset' (release, dev, asan, tsan, fuzz, tidy)" ;;
  esac
  note "building $preset in $(build_dir "$preset")/"
  configure "$preset"
  compile "$preset"
}
