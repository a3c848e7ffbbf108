"""Runs the suite part by part on a machine with a GPU. run.sh and README.md explain how.

Each part has a time limit, and no part can stop the next one. Figures are written to
.gpu/results/gpu.jsonl at once, and gpu.md is written again after each step. A later call continues
with the parts that are not done.
"""

import argparse
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time

import gtest_log
import ncu
import parts
import process
import report
import results

ROOT = pathlib.Path(__file__).absolute().parents[3]
OPERATORS = ROOT / '.gpu' / 'operators' / 'sfmamba_operators.so'
# How often a test program that crashes is started again, for the tests that have not run.
RESTARTS = 5
NO_GPU = 'skipped: no GPU'

FIND_TORCH = '''
import importlib.util
spec = importlib.util.find_spec('torch')
print(spec.submodule_search_locations[0] if spec else '')
'''


class NoGpu(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Tools:
    suite: str
    sanitizer: str
    ncu: str
    python: str
    # The environment variables of all steps. LD_LIBRARY_PATH has the folder of libtorch, which is
    # inside Python's package torch. PYTHONPATH has the folder of mamba-ssm.
    environment: dict

    @staticmethod
    def of_environment(folder, environment=os.environ):
        """Returns the Tools that the environment variables describe. Links to libraries are made in
        `folder`.
        """
        python = environment.get('PYTHON', sys.executable)
        found = subprocess.run([python, '-c', FIND_TORCH], capture_output=True, text=True)
        paths = library_folders(found.stdout.strip(), folder)
        paths.append(environment.get('LD_LIBRARY_PATH', ''))
        peer = [str(ROOT / '.gpu' / 'peer'), environment.get('PYTHONPATH', '')]
        return Tools(
            suite=environment.get('SUITE', str(ROOT / '.gpu' / 'suite')),
            sanitizer=environment.get('SANITIZER', 'compute-sanitizer'),
            ncu=environment.get('NCU', 'ncu'), python=python,
            environment={**environment, 'LD_LIBRARY_PATH': joined(paths),
                         'PYTHONPATH': joined(peer)})

    def command(self, step, values):
        arguments = [argument.format(suite=self.suite, **values) for argument in step.arguments]
        if step.tuned and pathlib.Path(values['table']).exists():
            arguments.append(f'--fold_table={values["table"]}')
        if step.program == 'sanitizer':
            return [self.sanitizer, '--error-exitcode=3', arguments[0], self.suite, arguments[1]]
        if step.program == 'ncu':
            return [self.ncu, *arguments]
        if step.program == 'python':
            return [self.python, *arguments]
        return [self.suite, *arguments]


def joined(paths):
    return ':'.join(path for path in paths if path)


def library_folders(torch, links):
    """Returns the folders of libtorch and of the CUDA runtime that belong to Python's torch.

    libtorch finds the other CUDA libraries by itself. Their folder is left out, because the
    profiler's tools would load wrong libraries from it.
    """
    if not torch:
        return []
    for library in pathlib.Path(torch).parent.glob('nvidia/*/lib/libcudart.so.*'):
        links.mkdir(parents=True, exist_ok=True)
        link = links / library.name
        link.unlink(missing_ok=True)
        link.symlink_to(library)
    return [f'{torch}/lib', str(links)]


class Run:
    """One call of this program. It runs parts and records the result of each."""

    def __init__(self, tools, folder, chosen, seconds, scale):
        self.tools = tools
        self.folder = folder
        self.chosen = chosen
        self.end = time.monotonic() + seconds
        self.scale = scale
        self.ran = {}  # The result of each part as text.
        self.left = {part.name: 'not asked for' for part in parts.PARTS
                     if part.name not in folder.done()}
        self.left.update({part.name: 'its turn has not come' for part in chosen})

    def run(self):
        try:
            for part in self.chosen:
                seconds = parts.limit(part, self.scale)
                if time.monotonic() + seconds > self.end:
                    self.left[part.name] = f'its limit of {seconds:.0f} s exceeds the time left'
                    continue
                self.left[part.name] = 'cut off'
                self.run_part(part, seconds)
        finally:
            self.publish()

    def run_part(self, part, seconds):
        print(f'== {part.name}: {part.title} (at most {seconds:.0f} s)', flush=True)
        start, notes = time.monotonic(), []
        for i, step in enumerate(part.steps):
            left = seconds - (time.monotonic() - start)
            allowed = parts.step_limit(part, i, left, self.scale)
            status = self.guarded(part, step, allowed) if allowed > 0 else 'no time was left'
            if status != 'passed':
                notes.append(f'{step.name}: {status}')
            self.publish()
        status = 'failed' if notes else 'passed'
        self.folder.append({'benchmark': 'part', 'part': part.name, 'status': status,
                            'note': '; '.join(notes),
                            'seconds': round(time.monotonic() - start, 1)})
        self.ran[part.name] = status
        del self.left[part.name]
        self.publish()
        print(f'== {part.name}: {"; ".join(notes) or status}', flush=True)

    def guarded(self, part, step, seconds):
        """Runs a step. An error in this program must not prevent the next step."""
        try:
            return self.run_step(part, step, seconds)
        except NoGpu:
            raise
        except Exception as error:
            return f'{type(error).__name__}: {error}'

    def run_step(self, part, step, seconds):
        log = self.folder.logs / f'{step.name}.log'
        log.unlink(missing_ok=True)
        if step.program in ('tests', 'sanitizer'):
            return self.run_tests(part, step, log, seconds)
        csv = self.folder.logs / f'{step.name}.csv'
        csv.unlink(missing_ok=True)
        status = self.process(step, log, seconds).status
        if NO_GPU in text_of(log):
            raise NoGpu
        if step.program == 'ncu':
            return self.record_kernels(step, text_of(csv), status)
        return status

    def process(self, step, log, seconds):
        values = {'lines': self.folder.path(results.LINES), 'csv': log.with_suffix('.csv'),
                  'table': self.folder.path(results.TABLE), 'seconds': max(int(seconds) - 5, 1),
                  'properties': self.folder.path(results.PROPERTIES),
                  'operators': OPERATORS, 'work': self.folder.path('server')}
        return process.run(self.tools.command(step, values), log, seconds,
                           self.tools.environment, self.publish)

    def record_kernels(self, step, csv, status):
        """Appends a line for each kernel that ncu measured."""
        kernels = ncu.parse(csv)
        variant, precision, batch = step.arguments[-1].removeprefix('--once=').split(',')
        now = int(time.time())
        for kernel in kernels:
            self.folder.append({'benchmark': 'kernel', 'variant': variant, 'precision': precision,
                                'batch': int(batch), 'pass': now, **kernel})
        return 'no kernels' if status == 'passed' and not kernels else status

    def run_tests(self, part, step, log, seconds):
        """Runs the tests. If a test crashes the program, starts it again for the remaining tests.
        """
        end = time.monotonic() + seconds
        seen, crashed, start = gtest_log.Log(), [], 0
        for _ in range(RESTARTS + 1):
            filter = gtest_log.without(step.arguments[-1], seen.seen() + crashed)
            once = dataclasses.replace(step, arguments=step.arguments[:-1] + (filter,))
            ended = self.process(once, log, max(end - time.monotonic(), 1))
            text = text_of(log)
            new, start = gtest_log.parse(text[start:]), len(text)
            for kind in ('passed', 'failed', 'skipped'):
                getattr(seen, kind).extend(getattr(new, kind))
            if NO_GPU in text:
                raise NoGpu
            if ended.timed_out or new.finished or not new.seen():
                break
            crashed.extend([new.running] if new.running else [])
        cut = new.running if ended.timed_out else ''
        findings = gtest_log.findings(text)
        self.folder.append({
            'benchmark': 'tests', 'part': part.name, 'step': step.name, 'passed': len(seen.passed),
            'failed': seen.failed, 'crashed': crashed, 'skipped': seen.skipped, 'cut': cut,
            'findings': findings})
        return tests_status(ended, seen, crashed, findings)

    def publish(self):
        lines = self.folder.lines()
        self.folder.publish(report.render(lines, self.left), summary(lines, self.left))


def tests_status(ended, seen, crashed, findings):
    """Returns 'passed', or a text with everything that failed."""
    wrong = []
    if seen.failed or crashed:
        wrong.append(f'{len(seen.failed) + len(crashed)} failed')
    if findings:
        wrong.append(f'{findings} findings')
    if ended.timed_out or (ended.status != 'passed' and not wrong):
        wrong.append(ended.status)
    if not wrong and not seen.passed:
        wrong.append(f'none passed, {len(seen.skipped)} skipped')
    return ', '.join(wrong) or 'passed'


def text_of(path):
    return path.read_text(encoding='utf-8', errors='replace') if path.exists() else ''


def summary(lines, left):
    rows = [f'{line["part"]}: {line["note"] or line["status"]} ({line["seconds"]:.0f} s)'
            for line in lines if line['benchmark'] == 'part']
    return '\n'.join(rows + [left_line(left)]) + '\n'


def left_line(left):
    return f'run: left: {", ".join(left)}' if left else 'run: nothing is left'


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--budget', type=float, default=float('inf'), metavar='SECONDS',
                        help='start no part whose limit does not fit into what is left of it')
    parser.add_argument('--parts', default='', metavar='NAME,...', help='these parts alone')
    parser.add_argument('--preset', choices=sorted(parts.PRESETS),
                        help='parts for one call, of 8 minutes at most')
    parser.add_argument('--again', action='store_true', help='parts that are done, too')
    parser.add_argument('--results', default=ROOT / '.gpu' / 'results', type=pathlib.Path,
                        help='the folder (.gpu/results)')
    parser.add_argument('--time_scale', type=float, default=1, help='of all limits: a rehearsal')
    options = parser.parse_args(arguments)
    options.parts = [name for name in options.parts.split(',') if name]
    options.parts += parts.PRESETS.get(options.preset, ())
    return options


def main(arguments=None):
    options = parse_arguments(arguments)
    folder = results.Results(options.results.resolve(), os.environ.get('OUT'))
    try:
        chosen = parts.chosen(options.parts, folder.done(), options.again)
    except ValueError as error:
        print(f'run: {error}', file=sys.stderr)
        return 2
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tools = Tools.of_environment(folder.path('lib'))
    run = Run(tools, folder, chosen, options.budget, options.time_scale)
    try:
        run.run()
    except NoGpu:
        print(f'run: {NO_GPU}')
        return 0
    print(left_line(run.left))
    return 0 if all(status == 'passed' for status in run.ran.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
