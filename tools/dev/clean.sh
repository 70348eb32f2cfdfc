# shellcheck shell=bash
# ./dev clean: removes what the other commands made in this folder.

cmd_clean() {
  rm -rf build build-dev build-asan build-tsan build-fuzz build-tidy .venv .cache
  note "removed build folders, .venv and .cache"
}
