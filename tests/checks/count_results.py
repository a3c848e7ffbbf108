"""Counts the test cases in Bazel's reports of the test targets on standard input.

Usage: bazel query 'tests(//...)' | count_results.py bazel-testlogs [REPORT ...]

A line may name, after the label, another folder than bazel-testlogs, such as that of a
build with a sanitizer. The REPORTs, in JUnit's form too, count as those of more targets. Prints each
failed and skipped case, how many were skipped, and, last, "N passed, N failed".
Exits with 1 unless at least one case passed and none failed. A target whose
report is missing or that failed outside its cases counts as one failed case.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as ET

PASSED = b"\x10\x01"  # TestResultData.test_passed of Bazel's test_status.proto: true.

def count_target(report: pathlib.Path, label: str) -> collections.Counter:
    """Returns how many cases of one target passed, failed and were skipped."""
    counts = collections.Counter()
    if not report.exists():
        print(f"failed: {label}: no report")
        counts["failed"] = 1
        return counts
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{label} {case.get('classname', '')}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            print(f"failed: {name}")
            counts["failed"] += 1
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            print(f"skipped: {name}")
            counts["skipped"] += 1
        elif case.get("status") != "notrun":
            counts["passed"] += 1
    # What a sanitizer finds fails the target but none of its cases. Bazel's
    # verdict is the first field of a message beside the report.
    verdict = report.with_name("test.cache_status")
    if not counts["failed"] and verdict.exists() and not verdict.read_bytes().startswith(PASSED):
        print(f"failed: {label}: outside its cases")
        counts["failed"] = 1
    return counts


def main() -> int:
    logs = pathlib.Path(sys.argv[1])
    total = collections.Counter()
    for line in sorted(line.strip() for line in sys.stdin if line.strip()):
        label, _, other = line.partition(" ")
        folder = label.removeprefix("//").replace(":", "/")
        total += count_target(pathlib.Path(other or logs) / folder / "test.xml", line)
    for report in sys.argv[2:]:
        total += count_target(pathlib.Path(report), pathlib.Path(report).stem)
    print(f"{total['skipped']} skipped")
    print(f"{total['passed']} passed, {total['failed']} failed")
    return 0 if total["passed"] and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
