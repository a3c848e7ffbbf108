"""Reads googletest's output, even if the program ended early."""

import dataclasses
import re


@dataclasses.dataclass
class Log:
    passed: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    running: str = ''  # The test that ran when the program ended.
    finished: bool = False

    def seen(self):
        return self.passed + self.failed + self.skipped + ([self.running] if self.running else [])


RESULTS = {'[       OK ] ': 'passed', '[  FAILED  ] ': 'failed', '[  SKIPPED ] ': 'skipped'}


def parse(text):
    log = Log()
    for line in text.splitlines():
        if line.startswith('[ RUN      ] '):
            log.running = line[13:].strip()
        elif line.startswith('[==========]') and ' ran.' in line:
            log.finished = True
        elif log.running and line[:13] in RESULTS and name(line) == log.running:
            getattr(log, RESULTS[line[:13]]).append(log.running)
            log.running = ''
    return log


def name(line):
    """Returns the name of the test to which a line with a result belongs."""
    return re.split(r',? ', line[13:], maxsplit=1)[0]


def without(filter, names):
    """Returns the filter with these tests excluded."""
    if not names:
        return filter
    return filter + (':' if '-' in filter else '-') + ':'.join(names)


def findings(text):
    """Returns the number of errors and hazards that compute-sanitizer counted, or None if it did
    not report any number.
    """
    counts = re.findall(r'(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)', text)
    return sum(int(a or b) for a, b in counts) if counts else None
