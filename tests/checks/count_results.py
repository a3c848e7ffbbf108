"""Counts the test cases in Bazel's reports. Reads the labels of the tests from standard input.

Usage: bazel query 'tests(//...)' | count_results.py bazel-testlogs [REPORT ...]

After the label, a line may name another folder than bazel-testlogs, for example the folder of a
build with a sanitizer. Each REPORT in JUnit's form counts as the report of one more target.

Prints each failed and skipped case, then the number of skipped cases. The last line is
"N passed, N failed". A target counts as one failed case if its report is missing, or if it failed
outside of its cases. Exits with 1 if a case failed or if none passed.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as ET

# The bytes of the field test_passed, set to true, in Bazel's protobuf message TestResultData.
PASSED = b"\x10\x01"

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
    # If a sanitizer finds an error, the target fails but none of its cases does. Bazel stores
    # whether the target passed in the file test.cache_status, in the report's folder. This file
    # contains a protobuf message, which begins with the field test_passed.
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
