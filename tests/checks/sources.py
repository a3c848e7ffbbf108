"""Lists the repository's files for checks that read sources instead of running them."""

import concurrent.futures
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).absolute().parents[2]


def files(*patterns):
    """Returns the paths, from the root, of the files that git tracks or would add."""
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = (name for name in listed.split('\0') if name)
    return sorted({name for name in names if (ROOT / name).is_file()})


def complaints(commands, folder=ROOT):
    """Runs the commands in the folder, one on each core. Returns the output of each command that
    failed."""
    def run(command):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        return '' if done.returncode == 0 else done.stdout + done.stderr or f'failed: {command}'

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [said for said in pool.map(run, commands) if said]
