# shellcheck shell=bash
# ./dev bench NAME [--json] [ARGS]: one benchmark of the program with its baselines; without NAME the list.
# A bench that measures a store gets a fresh Ceph RGW (memstore) unless --url names one.

# Those that need no store.
readonly BENCH_LOCAL=" match-direct memory cpu "

cmd_bench() {
  # shellcheck source=tools/dev/demo.sh
  . tools/dev/demo.sh
  need_packages build
  if [[ $# -eq 0 || $1 == -* ]]; then
    build_bench_program >&2
    exec build/bin/objectcache bench --help
  fi
  need_packages test full >&2
  need_python servers bench >&2
  build_bench_program >&2
  if [[ " $* " == *" --url"[=\ ]* || $BENCH_LOCAL == *" $1 "* ]]; then
    exec build/bin/objectcache bench "$@"
  fi
  # shellcheck disable=SC2016  # expanded by the inner bash
  exec tools/with-servers rgw rgw-tls -- bash -c \
    'exec build/bin/objectcache bench "$@" --url "$OC_TEST_S3_RGW" --url-tls "$OC_TEST_S3_RGW_TLS"' bench "$@"
}

build_bench_program() {
  configure release -DOBJECTCACHE_TESTS=ON -DOBJECTCACHE_BENCH=ON
  compile release bin/objectcache
}
