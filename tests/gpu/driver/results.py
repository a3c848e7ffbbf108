"""The folder of results. It contains what was measured, which parts are done, and what is copied
home.
"""

import json
import pathlib
import shutil
import tarfile

LINES, TABLE, REPORT, SUMMARY = 'gpu.jsonl', 'fold_table.txt', 'gpu.md', 'summary.txt'
PROPERTIES = 'device_properties.json'
LOGS = 'logs.tar.gz'
LOG_BYTES = 2 << 20  # The archive contains at most this many bytes from the end of each log.


class Results:
    """A part is done when its line is in gpu.jsonl, even if the part failed."""

    def __init__(self, folder, home=None):
        self.folder = pathlib.Path(folder)
        self.logs = self.folder / 'logs'
        self.home = pathlib.Path(home) if home else None
        self.logs.mkdir(parents=True, exist_ok=True)

    def path(self, name):
        return self.folder / name

    def append(self, line):
        with open(self.path(LINES), 'a', encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')

    def lines(self):
        """Returns all lines. Ignores a line that was cut off."""
        return read_lines(self.path(LINES))

    def done(self):
        return {line['part'] for line in self.lines() if line['benchmark'] == 'part'}

    def publish(self, report, summary):
        """Writes the report and copies all results to the folder that is taken home."""
        self.path(REPORT).write_text(report, encoding='utf-8')
        self.path(SUMMARY).write_text(summary, encoding='utf-8')
        if self.home is None:
            return
        self.home.mkdir(parents=True, exist_ok=True)
        for name in (LINES, TABLE, REPORT, SUMMARY, PROPERTIES):
            if self.path(name).exists():
                shutil.copyfile(self.path(name), self.home / name)
        self.pack(self.home / LOGS)

    def pack(self, path):
        """Packs the end of each log into an archive. The archive is replaced only when it is
        complete.
        """
        partial = path.with_suffix('.partial')
        with tarfile.open(partial, 'w:gz') as archive:
            for log in sorted([*self.logs.iterdir(), *self.folder.glob('server/*.log')]):
                with open(log, 'rb') as file:
                    size = log.stat().st_size
                    kept = min(size, LOG_BYTES)
                    file.seek(size - kept)
                    entry = tarfile.TarInfo(f'logs/{log.name}')
                    entry.size = kept
                    archive.addfile(entry, file)
        partial.replace(path)


def read_lines(path):
    """Returns the objects in a file of JSON lines, if they have a "benchmark"."""
    lines = []
    if not pathlib.Path(path).exists():
        return lines
    for text in pathlib.Path(path).read_text(encoding='utf-8', errors='replace').splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and 'benchmark' in line:
            lines.append(line)
    return lines


def latest(lines, kind, *key):
    """Returns the last line of a kind for each key. The order is the order in which the keys first
    occurred.
    """
    found = {}
    for line in lines:
        if line['benchmark'] == kind:
            found[tuple(str(line.get(name)) for name in key)] = line
    return list(found.values())
