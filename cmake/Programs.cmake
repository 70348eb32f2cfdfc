# Programs beside the rooms: integration tests, micro-benchmarks, fuzzers. DEPENDS names rooms.

# oc_integration_test(NAME SOURCES a_test.cc ... [DEPENDS store ...] [LIBRARIES ...] [LABELS heavy soak] [TIMEOUT s])
#
# Runs against the real servers that tools/with-servers starts (tests/integration/servers.h). Labels: `heavy`
# keeps it out of sanitizer runs, `soak` out of all but `./dev test --full`.
function(oc_integration_test name)
  cmake_parse_arguments(P "" "TIMEOUT" "SOURCES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  list(TRANSFORM P_DEPENDS PREPEND oc_)
  add_executable(oc_${name}_integration_test ${P_SOURCES})
  target_link_libraries(oc_${name}_integration_test PRIVATE
    oc_test_settings oc_integration ${P_DEPENDS} ${P_LIBRARIES} GTest::gmock GTest::gtest GTest::gtest_main)
  add_test(NAME ${name}_integration COMMAND oc_${name}_integration_test)
  if(NOT P_TIMEOUT)
    set(P_TIMEOUT 300)
  endif()
  set_tests_properties(${name}_integration PROPERTIES
    LABELS "integration;${P_LABELS}" TIMEOUT ${P_TIMEOUT})
endfunction()

# oc_micro_bench(NAME SOURCES a_bench.cc ... [DEPENDS ...] [LIBRARIES ...])
#
# A Google Benchmark program bin/NAME_bench; a run of some milliseconds is a test, so that it cannot rot.
function(oc_micro_bench name)
  cmake_parse_arguments(P "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  list(TRANSFORM P_DEPENDS PREPEND oc_)
  add_executable(${name}_bench ${P_SOURCES})
  target_link_libraries(${name}_bench PRIVATE
    oc_settings ${P_DEPENDS} ${P_LIBRARIES} benchmark::benchmark benchmark::benchmark_main)
  if(OBJECTCACHE_TESTS)
    add_test(NAME ${name}_bench COMMAND ${name}_bench --benchmark_min_time=0.01)
    set_tests_properties(${name}_bench PROPERTIES LABELS bench TIMEOUT 120)
  endif()
endfunction()

# oc_fuzzer(NAME SOURCES name_fuzz.cc [DEPENDS ...] [LIBRARIES ...])
#
# With OBJECTCACHE_FUZZ a libFuzzer program bin/fuzz_NAME. Otherwise, with tests, the same function replays
# fuzz/corpus/NAME (seeds, and every input that once failed) as a unit test.
add_custom_target(fuzzers COMMENT "All libFuzzer programs")
function(oc_fuzzer name)
  cmake_parse_arguments(P "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  list(TRANSFORM P_DEPENDS PREPEND oc_)
  if(OBJECTCACHE_FUZZ)
    add_executable(fuzz_${name} ${P_SOURCES})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  else()
    add_executable(fuzz_${name} ${P_SOURCES} ${PROJECT_SOURCE_DIR}/fuzz/replay_main.cc)
    add_test(NAME fuzz_${name}_corpus COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name}_corpus PROPERTIES LABELS unit TIMEOUT 120)
  endif()
  target_link_libraries(fuzz_${name} PRIVATE oc_settings ${P_DEPENDS} ${P_LIBRARIES})
endfunction()
