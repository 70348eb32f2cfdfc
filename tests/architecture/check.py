#!/usr/bin/env python3
"""Checks that the sources keep the promises of docs/architecture.md and of the project's habits.

    check.py [ROOT]     prints one line a finding, exit code 1 if there is any

Edges: a file of one room may include headers of the rooms that the table of rooms allows, and of the third-party
libraries that it names; both tables are read from docs/architecture.md. Habits: sizes of files, a README.md in
every room, no reading of the environment and no printing in the library, links of documents that resolve, every
dependency explained, nothing that names a place outside of the repository.
"""

import pathlib
import re
import sys

HEADER_LINES_MAX = 330
SOURCE_LINES_MAX = 550
ROOM_README_LINES_MAX = 70

SOURCE_SUFFIXES = {".h", ".cc", ".c"}
SOURCE_FOLDERS = ("include", "src", "apps", "bench", "fuzz", "tests")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Headers of C and of the operating system that need no entry in the table.
SYSTEM = re.compile(r"^(arpa|net|netinet|sys|linux)/|^(cxxabi|dirent|dlfcn|execinfo|fcntl|ifaddrs|netdb|poll|pthread|"
                    r"sched|signal|stdint|stdio|stdlib|string|termios|time|unistd|assert|errno|inttypes|stddef|"
                    r"stdbool|math|limits|spawn|semaphore|immintrin|nmmintrin)\.h$")


def parse_table(document, heading):
    """Rows of the first Markdown table after `heading`, as lists of cells; the header row is left out."""
    lines = iter(document.splitlines())
    for line in lines:
        if line.startswith("#") and line.lstrip("#").strip() == heading:
            break
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            break
    return rows[2:]


def names(cell):
    return set(re.findall(r"`([^`]+)`", cell))


class Rules:
    def __init__(self, document):
        self.folders, self.rooms, self.libraries_of = {}, {}, {}
        for folder, may_include, libraries in (row[:3] for row in parse_table(document, "Rooms")):
            folder = next(iter(names(folder))).rstrip("/")
            room = pathlib.PurePath(folder).name
            self.folders[folder] = room
            self.rooms[room] = names(may_include) | {room}
            self.libraries_of[room] = names(libraries)
        self.libraries = {next(iter(names(row[0]))): names(row[1]) for row in parse_table(document, "Libraries")}

    def problems(self):
        """What is wrong with the tables themselves."""
        if not self.rooms or not self.libraries:
            yield "docs/architecture.md: the table under 'Rooms' or 'Libraries' is missing"
        order = list(self.rooms)
        for room, allowed in self.rooms.items():
            for other in sorted(allowed):
                if other not in self.rooms:
                    yield f"docs/architecture.md: room {room} may include the unknown room {other}"
                elif order.index(other) > order.index(room):
                    yield f"docs/architecture.md: room {room} may include {other}, which stands below it"
            for library in sorted(self.libraries_of[room] - set(self.libraries)):
                yield f"docs/architecture.md: room {room} names the unknown library {library}"

    def room_of(self, path):
        best = max((f for f in self.folders if path == f or path.startswith(f + "/")), key=len, default=None)
        return self.folders[best] if best else None

    def library_of(self, header):
        for library, beginnings in self.libraries.items():
            if any(header.startswith(beginning) for beginning in beginnings):
                return library
        return None


def may_use_test_library(path):
    name = pathlib.PurePath(path).name
    return path.startswith("tests/") or "/testing/" in path \
        or re.search(r"(_test|_test_\w+|^conformance)\.(cc|h|c)$", name) is not None


def check_include(rules, path, bracket, header):
    """A finding about one include line, or None."""
    room = rules.room_of(path)
    first = header.split("/")[0]
    if bracket == '"':
        if first == header and first != "objectcache":
            return f'"{header}" does not name its room'
        if first not in rules.rooms:
            return f'"{header}" is of no room of docs/architecture.md'
        if first not in rules.rooms[room]:
            return f'room {room} may not include "{header}": {first} is not among {", ".join(sorted(rules.rooms[room]))}'
        return None
    if "." not in header and "/" not in header or SYSTEM.match(header):
        return None
    if header.startswith("objectcache/"):  # the consumer project includes what is installed
        return None
    library = rules.library_of(header)
    if library is None:
        return f"<{header}> belongs to no library of docs/architecture.md"
    if library == "GoogleTest" and may_use_test_library(path):
        return None
    if library not in rules.libraries_of[room]:
        return f"room {room} may not use {library} (<{header}>)"
    return None


def check_includes(root, rules):
    for path in sources(root):
        relative = path.relative_to(root).as_posix()
        if rules.room_of(relative) is None:
            yield f"{relative}: lies in no room of docs/architecture.md"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and (finding := check_include(rules, relative, *match.groups())):
                yield f"{relative}:{number}: {finding}"


def sources(root):
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                yield path


def check_habits(root):
    for path in sources(root):
        relative = path.relative_to(root).as_posix()
        content = path.read_text(errors="replace")
        lines = content.count("\n")
        limit = HEADER_LINES_MAX if path.suffix == ".h" else SOURCE_LINES_MAX
        if lines > limit:
            yield f"{relative}: {lines} lines; more than {limit} do not fit in a mind"
        if path.suffix == ".h" and "#pragma once" not in content and not relative.endswith("/c.h"):
            yield f"{relative}: no #pragma once"
        if not relative.startswith("src/"):
            continue
        for number, line in enumerate(content.splitlines(), 1):
            code = line.split("//")[0]
            if re.search(r"\bgetenv\b", code):
                yield f"{relative}:{number}: the library reads no environment variables"
            if not may_use_test_library(relative) and re.search(r"\bstd::(cout|cerr|clog)\b|\bf?printf\(", code):
                yield f"{relative}:{number}: the library never prints"


def check_build_files(root):
    for path in [root / "CMakeLists.txt", *root.glob("cmake/*"), *(p for f in SOURCE_FOLDERS
                 for p in (root / f).rglob("CMakeLists.txt"))]:
        if path.is_file() and re.search(r"file\s*\(\s*GLOB", path.read_text()):
            yield f"{path.relative_to(root)}: source lists are explicit, no GLOB"


def check_readmes(root, rules):
    for folder in rules.folders:
        if not folder.startswith("src/") or not (root / folder).is_dir():
            continue
        readme = root / folder / "README.md"
        if not readme.exists():
            yield f"{folder}: no README.md (purpose, what does not belong, main types, who calls it)"
        elif readme.read_text().count("\n") > ROOM_README_LINES_MAX:
            yield f"{folder}/README.md: more than half a page"
    for path in sorted((root / "src").glob("*")):
        if path.is_dir() and f"src/{path.name}" not in rules.folders:
            yield f"src/{path.name}: not in the table of rooms of docs/architecture.md"


def repository_texts(root):
    """Every text file of the repository; what is built or installed is left out."""
    for path in sorted(root.rglob("*")):
        top = path.relative_to(root).parts[0]
        if top in (".git", ".venv", ".cache") or top.startswith("build") or "__pycache__" in path.parts:
            continue
        if path.is_file() and path.stat().st_size < 1_000_000 and "corpus" not in path.parts:
            yield path


def check_words(root):
    # Written in pieces, so that this file passes its own check.
    outside = re.compile("|".join(["/" + r"work/", r"\.\./" + "shared", "/ro" + "ot/", "py" + r"pi\.org",
                                   "deb" + r"\.debian\.org"]))
    for path in repository_texts(root):
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            if match := outside.search(line):
                yield f"{path.relative_to(root)}:{number}: names '{match.group()}', which is outside of the repository"


def anchors(content):
    for heading in re.findall(r"^#+\s+(.*)$", content, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def check_links(root):
    for path in repository_texts(root):
        if path.suffix != ".md":
            continue
        content = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", content):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            goal = (path.parent / file) if file else path
            if not goal.exists():
                yield f"{path.relative_to(root)}: the link to {target} leads nowhere"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text()):
                yield f"{path.relative_to(root)}: {file or path.name} has no heading for #{anchor}"


def check_dependencies(root):
    declared = root / "cmake/Dependencies.cmake"
    document = root / "docs/dependencies.md"
    explained = names(document.read_text()) if document.exists() else set()
    content = declared.read_text() if declared.exists() else ""
    found = re.findall(r"find_package\(\s*(\w+)", content) + re.findall(r"pkg_check_modules\(\s*\w+[^)]*?(\w+)\)", content)
    for name in found:
        if name not in explained:
            yield f"docs/dependencies.md: no reason for `{name}`, which cmake/Dependencies.cmake asks for"


def findings(root):
    document = root / "docs/architecture.md"
    rules = Rules(document.read_text() if document.exists() else "")
    yield from rules.problems()
    yield from check_includes(root, rules)
    yield from check_habits(root)
    yield from check_build_files(root)
    yield from check_readmes(root, rules)
    yield from check_words(root)
    yield from check_links(root)
    yield from check_dependencies(root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    found = list(findings(root))
    for line in found:
        print(line)
    print(f"architecture: {len(found)} findings in {sum(1 for _ in sources(root))} sources")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
