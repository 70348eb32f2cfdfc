#!/usr/bin/env python3
"""Counts test cases from what the stages of ./dev test left behind.

summary.py --stage DIR   one line about one stage
summary.py --run DIR     all stages, the real servers that suites ran on, what failed, and as the last line
                         'N passed, N failed' (with ', N skipped'); exit code 1 if anything failed

A stage's folder holds: title, status (exit code), seconds; of a ctest stage tests.json (what there was to run),
junit.xml (how each program ended), gtest/*.xml (the cases inside), servers.env; of another cases.tsv.
"""

import argparse
import collections
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVERS = {"rgw": "RGW", "rgw_tls": "RGW", "seaweedfs": "SEAWEEDFS", "seaweedfs_tls": "SEAWEEDFS",
           "rclone": "RCLONE", "rclone_tls": "RCLONE"}


@dataclasses.dataclass
class Case:
    name: str
    outcome: str  # passed, failed, skipped
    why: str = ""


@dataclasses.dataclass
class Stage:
    title: str
    seconds: int
    cases: list
    servers: dict

    def count(self, outcome):
        return sum(case.outcome == outcome for case in self.cases)


def text(path, default=""):
    return path.read_text(errors="replace").strip() if path.exists() else default


def declared_skips():
    lines = [line.split(None, 1) for line in text(ROOT / "tests/skips.txt").splitlines()
             if line.strip() and not line.startswith("#")]
    return [parts[0] for parts in lines if len(parts) == 2]


def judge_skip(case, strict):
    """Where CI is set, only what is declared may be left out."""
    if strict and not any(fnmatch.fnmatchcase(case.name, pattern) for pattern in declared_skips()):
        return Case(case.name, "failed", "skipped without a reason in tests/skips.txt: " + case.why)
    return case


def gtest_cases(path, strict):
    try:
        root = xml.parse(path).getroot()
    except xml.ParseError:
        return [Case(path.stem, "failed", "its result file is cut off")]
    cases = []
    for item in root.iter("testcase"):
        name = f"{item.get('classname')}.{item.get('name')}"
        failure, skipped = item.find("failure"), item.find("skipped")
        if failure is not None:
            cases.append(Case(name, "failed", (failure.get("message") or "").strip()))
        elif skipped is not None or item.get("result") == "skipped":
            why = skipped.get("message") if skipped is not None else ""
            cases.append(judge_skip(Case(name, "skipped", (why or "").strip()), strict))
        elif item.get("status") == "notrun":
            cases.append(judge_skip(Case(name, "skipped", "disabled"), strict))
        else:
            cases.append(Case(name, "passed"))
    return cases


def ctest_cases(folder, strict):
    tests = {t["name"]: t for t in json.loads(text(folder / "tests.json", "{}") or "{}").get("tests", [])}
    ended = {}
    if (folder / "junit.xml").exists():
        ended = {item.get("name"): item for item in xml.parse(folder / "junit.xml").getroot().iter("testcase")}
    files = collections.defaultdict(list)
    for path in sorted((folder / "gtest").glob("*.xml")):
        files[re.sub(r"_\d+$", "", path.stem)].append(path)
    cases = []
    for name, test in tests.items():
        program = pathlib.Path(test["command"][0]).name if test.get("command") else ""
        inside = [case for path in files.pop(program, []) for case in gtest_cases(path, strict)]
        cases += inside
        item = ended.get(name)
        status = item.get("status") if item is not None else "missing"
        if status == "run":
            cases += [] if inside else [Case(name, "passed")]
        elif status == "fail":
            if not any(case.outcome == "failed" for case in inside):
                failure = item.find("failure")
                why = failure.get("message") if failure is not None else ""
                cases.append(Case(name, "failed", "the program failed as a whole: " + (why or "")))
        else:
            cases.append(judge_skip(Case(name, "skipped", f"ctest says: {status}"), strict))
    return cases


def read_stage(folder, strict):
    cases = ctest_cases(folder, strict) if (folder / "tests.json").exists() else []
    for line in text(folder / "cases.tsv").splitlines():
        outcome, name, why = (line.split("\t") + ["", ""])[:3]
        cases.append(Case(name, outcome, why))
    status = text(folder / "status", "1")
    if status != "0" and not any(case.outcome == "failed" for case in cases):
        cases.append(Case(folder.name, "failed", f"the stage ended with exit code {status}"))
    servers = dict(line.split("=", 1) for line in text(folder / "servers.env").splitlines())
    return Stage(text(folder / "title", folder.name), int(text(folder / "seconds", "0")), cases, servers)


def counts(cases):
    number = collections.Counter(case.outcome for case in cases)
    skipped = f", {number['skipped']} skipped" if number["skipped"] else ""
    return f"{number['passed']} passed, {number['failed']} failed{skipped}"


def server_lines(stage):
    """'integration on Ceph RGW 16.2.15: 123 passed' for each server that parametrised cases ran on."""
    by_product = collections.defaultdict(list)
    for case in stage.cases:
        server = case.name.rsplit("/", 1)[-1]
        if server in SERVERS:
            by_product[SERVERS[server]].append(case)
    for product, cases in by_product.items():
        version = stage.servers.get("OC_TEST_VERSION_" + product, product + " (not started)")
        yield f"on {version}: {counts(cases)}"


def minutes(seconds):
    return f"{seconds // 60}:{seconds % 60:02d}"


def print_run(folder, strict):
    stages = [read_stage(path, strict) for path in sorted(folder.iterdir()) if path.is_dir()]
    print("\n---------------------------------------------------------------- summary")
    for stage in stages:
        print(f"{minutes(stage.seconds):>6}  {stage.title}: {counts(stage.cases)}")
        for line in server_lines(stage):
            print(f"          {line}")
    print(f"{minutes(sum(stage.seconds for stage in stages)):>6}  in all")
    every = [case for stage in stages for case in stage.cases]
    for outcome in ("skipped", "failed"):
        for stage in stages:
            for case in stage.cases:
                if case.outcome == outcome:
                    print(f"{outcome}: [{stage.title}] {case.name}: {case.why.splitlines()[0] if case.why else ''}")
    print()
    print(counts(every))
    return 1 if not every or any(case.outcome == "failed" for case in every) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    arguments = parser.parse_args()
    strict = bool(os.environ.get("CI"))
    if arguments.stage:
        stage = read_stage(arguments.stage, strict)
        print(f"    {counts(stage.cases)} in {minutes(stage.seconds)}")
        for line in server_lines(stage):
            print(f"    {line}")
        return 0
    return print_run(arguments.run, strict)


if __name__ == "__main__":
    sys.exit(main())
