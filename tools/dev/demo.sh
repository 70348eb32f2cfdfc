# shellcheck shell=bash
# ./dev demo: from nothing to a first hit. Installs what building needs, builds the one program, runs its demo.

cmd_demo() {
  need_packages build
  build_program
  note "running: build/bin/objectcache demo $*"
  exec build/bin/objectcache demo "$@"
}

build_program() { # only build/bin/objectcache: no tests, no benches
  if [[ -e build/CMakeCache.txt ]]; then configure release
  else configure release -DOBJECTCACHE_TESTS=OFF -DOBJECTCACHE_BENCH=OFF; fi
  note "building the program (some minutes the first time)"
  compile release bin/objectcache
}
