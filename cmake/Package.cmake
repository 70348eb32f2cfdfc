# What is installed: the shared library with its headers, a CMake package objectcache::objectcache, a
# pkg-config file; the programs add themselves. The rooms stay static libraries inside the shared one; only what the installed
# headers promise is exported (hidden visibility, and a version script against what templates of other
# libraries would leak).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A sanitizer's run time does not belong into a library that others load.
if(OBJECTCACHE_SANITIZE)
  return()
endif()

get_property(rooms GLOBAL PROPERTY OC_ROOMS_SHIPPED)
set(version_script ${PROJECT_SOURCE_DIR}/cmake/package/exports.map)
# Their object files, so that nothing is left out; the archives themselves bring the third-party libraries.
add_library(oc_shared SHARED)
foreach(room IN LISTS rooms)
  target_sources(oc_shared PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
target_link_libraries(oc_shared PRIVATE ${rooms})
target_link_options(oc_shared PRIVATE LINKER:--version-script=${version_script} LINKER:--no-undefined)
set_target_properties(oc_shared PROPERTIES
  LINKER_LANGUAGE CXX OUTPUT_NAME objectcache EXPORT_NAME objectcache LINK_DEPENDS ${version_script}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(oc_shared INTERFACE cxx_std_23)
target_include_directories(oc_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS oc_shared EXPORT objectcache)
install(DIRECTORY include/objectcache TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(EXPORT objectcache NAMESPACE objectcache:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/objectcache
  FILE objectcacheTargets.cmake)
configure_package_config_file(cmake/package/objectcacheConfig.cmake.in generated/objectcacheConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/objectcache)
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(generated/objectcacheConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/objectcacheConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/objectcacheConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/objectcache)
configure_file(cmake/package/objectcache.pc.in generated/objectcache.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/objectcache.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
