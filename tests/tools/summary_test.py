#!/usr/bin/env python3
"""What ./dev test counts: nothing that went wrong may be counted as well, or not at all."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/dev"))
import summary  # noqa: E402

PASSED = '<testcase name="{0}" status="run" result="completed" classname="Suite"/>'
FAILED = '<testcase name="{0}" status="run" result="completed" classname="Suite"><failure message="no"/></testcase>'
SKIPPED = '<testcase name="{0}" status="run" result="skipped" classname="Suite"><skipped message="why"/></testcase>'
DISABLED = '<testcase name="DISABLED_{0}" status="notrun" result="suppressed" classname="Suite"/>'


class Stage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "01-unit"
        (self.folder / "gtest").mkdir(parents=True)
        self.status(0)

    def status(self, code):
        (self.folder / "status").write_text(f"{code}\n")

    def ctest(self, **endings):
        """Programs and how ctest saw them end: run, fail, disabled; None: not started at all."""
        tests = [{"name": name, "command": [f"/build/bin/oc_{name}_test"]} for name in endings]
        (self.folder / "tests.json").write_text(json.dumps({"tests": tests}))
        cases = "".join(f'<testcase name="{name}" status="{status}">'
                        + ('<failure message="Failed"/>' if status == "fail" else "") + "</testcase>"
                        for name, status in endings.items() if status)
        (self.folder / "junit.xml").write_text(f"<testsuite>{cases}</testsuite>")

    def gtest(self, program, *cases):
        body = "".join(form.format(f"Case{i}") for i, form in enumerate(cases))
        (self.folder / "gtest" / f"oc_{program}_test.xml").write_text(f"<testsuites><testsuite>{body}</testsuite></testsuites>")

    def counted(self, strict=False):
        stage = summary.read_stage(self.folder, strict)
        return tuple(stage.count(outcome) for outcome in ("passed", "failed", "skipped"))

    def test_cases_inside_programs(self):
        self.ctest(base="run", s3="fail", script="run")
        self.gtest("base", PASSED, PASSED)
        self.gtest("s3", PASSED, FAILED)
        self.status(1)
        self.assertEqual(self.counted(), (4, 1, 0))

    def test_a_program_that_dies_without_a_word(self):
        self.ctest(base="fail")
        self.assertEqual(self.counted(), (0, 1, 0))

    def test_a_program_that_fails_after_its_cases_passed(self):
        self.ctest(base="fail")
        self.gtest("base", PASSED)
        self.assertEqual(self.counted(), (1, 1, 0))

    def test_a_result_file_that_is_cut_off(self):
        self.ctest(base="fail")
        (self.folder / "gtest/oc_base_test.xml").write_text("<testsuites><testsuite>")
        self.assertEqual(self.counted(), (0, 1, 0))

    def test_a_skip_counts_as_failed_where_nothing_may_be_left_out(self):
        self.ctest(base="run")
        self.gtest("base", PASSED, SKIPPED)
        self.assertEqual(self.counted(), (1, 0, 1))
        self.assertEqual(self.counted(strict=True), (1, 1, 0))

    def test_a_disabled_case_is_a_skip(self):
        self.ctest(base="run")
        self.gtest("base", DISABLED)
        self.assertEqual(self.counted(), (0, 0, 1))
        self.assertEqual(self.counted(strict=True), (0, 1, 0))

    def test_a_program_that_ctest_did_not_start(self):
        self.ctest(base=None)
        self.assertEqual(self.counted(strict=True), (0, 1, 0))

    def test_a_stage_that_failed_without_a_case(self):
        self.status(1)
        self.assertEqual(self.counted(), (0, 1, 0))

    def test_a_run_without_any_case_fails(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(summary.print_run(self.folder.parent, False), 1)
        self.assertEqual(printed.getvalue().splitlines()[-1], "0 passed, 0 failed")

    def test_real_servers_are_named(self):
        self.ctest(s3="run")
        (self.folder / "gtest/oc_s3_test.xml").write_text(
            '<testsuites><testsuite><testcase name="Reads/rgw_tls" classname="Servers/X" status="run"/>'
            '<testcase name="Reads/rgw" classname="Servers/X" status="run"/></testsuite></testsuites>')
        (self.folder / "servers.env").write_text("OC_TEST_VERSION_RGW=Ceph RGW 16.2.15\n")
        stage = summary.read_stage(self.folder, True)
        self.assertEqual(list(summary.server_lines(stage)), ["on Ceph RGW 16.2.15: 2 passed, 0 failed"])


if __name__ == "__main__":
    unittest.main()
