#!/usr/bin/env python3
"""The check must find what it is there to find: each test breaks one rule in a small tree of its own."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check  # noqa: E402

ARCHITECTURE = """
# Architecture

## Rooms

| room | may include | libraries |
|---|---|---|
| `include/objectcache/` | | |
| `src/base/` | `objectcache` | `fmt` |
| `src/http/` | `objectcache`, `base` | `Boost`, `fmt` |
| `apps/` | `objectcache`, `base`, `http` | `fmt` |

## Libraries

| library | headers | why |
|---|---|---|
| `fmt` | `fmt/` | text |
| `Boost` | `boost/` | sockets |
| `GoogleTest` | `gtest/`, `gmock/` | tests |
"""


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("docs/architecture.md", ARCHITECTURE)
        self.write("docs/dependencies.md", "* `fmt`: text\n* `ISAL`, `libisal`: CRC\n")
        self.write("cmake/Dependencies.cmake", "find_package(fmt REQUIRED)\npkg_check_modules(ISAL REQUIRED libisal)\n")
        self.write("include/objectcache/error.h", "#pragma once\n#include <string>\n")
        for room in ("base", "http"):
            self.write(f"src/{room}/README.md", f"# {room}\n")
        self.write("src/base/url.h", '#pragma once\n#include <fmt/format.h>\n#include "objectcache/error.h"\n')
        self.write("src/http/client.cc", '#include <boost/asio.hpp>\n#include <sys/socket.h>\n#include "base/url.h"\n')

    def write(self, path, content):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def found(self):
        return list(check.findings(self.root))

    def assert_found(self, *parts):
        found = self.found()
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_a_right_tree_has_no_findings(self):
        self.assertEqual(self.found(), [])

    def test_an_edge_upwards(self):
        self.write("src/base/bad.cc", '#include "http/client.h"\n')
        self.assert_found("src/base/bad.cc:1", 'may not include "http/client.h"')

    def test_a_library_in_the_wrong_room(self):
        self.write("src/base/bad.cc", "\n#include <boost/asio.hpp>\n")
        self.assert_found("src/base/bad.cc:2", "may not use Boost")

    def test_a_library_nobody_knows(self):
        self.write("src/base/bad.cc", "#include <curl/curl.h>\n")
        self.assert_found("<curl/curl.h> belongs to no library")

    def test_an_include_without_its_room(self):
        self.write("src/base/bad.cc", '#include "url.h"\n')
        self.assert_found('"url.h" does not name its room')

    def test_public_headers_include_nothing_of_ours(self):
        self.write("include/objectcache/bad.h", '#pragma once\n#include "base/url.h"\n')
        self.assert_found("include/objectcache/bad.h:2", "may not include")

    def test_the_test_library_outside_of_tests(self):
        self.write("src/base/url_test.cc", "#include <gtest/gtest.h>\n")
        self.write("src/base/bad.cc", "#include <gtest/gtest.h>\n")
        self.assert_found("src/base/bad.cc:1", "may not use GoogleTest")

    def test_a_table_with_a_cycle(self):
        self.write("docs/architecture.md", ARCHITECTURE.replace("`objectcache` | `fmt`", "`objectcache`, `http` | `fmt`"))
        self.assert_found("room base may include http, which stands below it")

    def test_a_missing_table(self):
        self.write("docs/architecture.md", "# Architecture\n")
        self.assertTrue(any("is missing" in line for line in self.found()))

    def test_a_room_that_is_not_in_the_table(self):
        self.write("src/misc/README.md", "# misc\n")
        self.assert_found("src/misc: not in the table")

    def test_a_source_in_no_room(self):
        self.write("bench/loose.cc", '#include "base/url.h"\n')
        self.assert_found("bench/loose.cc: lies in no room")

    def test_a_room_without_readme(self):
        (self.root / "src/http/README.md").unlink()
        self.assert_found("src/http: no README.md")

    def test_a_long_file(self):
        self.write("src/base/bad.cc", "int x;\n" * (check.SOURCE_LINES_MAX + 1))
        self.assert_found("do not fit in a mind")

    def test_reading_the_environment(self):
        self.write("src/base/bad.cc", 'auto x = std::getenv("X");\n')
        self.assert_found("reads no environment variables")

    def test_printing(self):
        self.write("src/base/bad.cc", 'void f() { std::cerr << 1; }  // std::cout\n')
        self.assert_found("never prints")

    def test_a_glob(self):
        self.write("src/base/CMakeLists.txt", "file(GLOB sources *.cc)\n")
        self.assert_found("no GLOB")

    def test_a_place_outside_of_the_repository(self):
        self.write("docs/notes.md", "see .." + "/shared/x\n")
        self.assert_found("outside of the repository")

    def test_a_dead_link(self):
        self.write("docs/notes.md", "[a](architecture.md#rooms) [b](nowhere.md) [c](https://example.com)\n")
        self.assert_found("docs/notes.md: the link to nowhere.md leads nowhere")

    def test_a_link_to_a_heading_that_is_gone(self):
        self.write("docs/notes.md", "[a](architecture.md#cellars)\n")
        self.assert_found("no heading for #cellars")

    def test_a_dependency_without_a_reason(self):
        self.write("docs/dependencies.md", "* `fmt`: text\n")
        self.assert_found("no reason for `libisal`")


if __name__ == "__main__":
    unittest.main()
