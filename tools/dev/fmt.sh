# shellcheck shell=bash
# ./dev fmt: formats the C++ sources in place.

cxx_sources() { git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.c'; }

cmd_fmt() {
  need_packages full
  cxx_sources | xargs -r clang-format-19 -i
  note "formatted"
}
