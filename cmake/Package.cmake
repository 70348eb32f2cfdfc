# The installed shared library, its CMake package and pkg-config file.
