"""Averages the weights of two classifiers that were trained from the same start.

    python average.py --of ../../models/photographs/1 run/exported --out averaged

The folders are models as the server loads them. OUT gets the first one's files, but each weight is
the mean of both models' weights. Weights that are equal in both, such as frozen layers, keep their
bits. The mean of a model before and after more training is often better than either.
"""

import argparse
import hashlib
import pathlib
import re
import shutil

import safetensors
import safetensors.torch
import torch

import user_errors
from user_errors import UserError

WEIGHTS = 'model.safetensors'


def mean(first, second):
    """Returns the mean of two dictionaries of tensors, in the first one's types."""
    for name in sorted(first.keys() ^ second.keys()):
        raise UserError(f'{name}: expected in both models, is in one')
    result = {}
    for name, a in first.items():
        b = second[name]
        if a.shape != b.shape:
            raise UserError(f'{name}: expected {list(a.shape)} in both models, '
                            f'got {list(b.shape)} in the second')
        result[name] = a if torch.equal(a, b) else ((a.float() + b.float()) / 2).to(a.dtype)
    return result


def with_weights(config, data):
    """Returns the text of a config.textproto, with the size and the checksum of the file `data`."""
    config = re.sub(r'(?m)^(\s*size_bytes: )\d+', rf'\g<1>{len(data)}', config)
    return re.sub(r'(?m)^(\s*sha256: )"[0-9a-f]*"',
                  rf'\g<1>"{hashlib.sha256(data).hexdigest()}"', config)


def load(path):
    try:
        return safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise UserError(f'{path}: not a safetensors file, or damaged: {error}') from error


def average(folders, out):
    weights = mean(*[load(folder / WEIGHTS) for folder in folders])
    shutil.copytree(folders[0], out)
    safetensors.torch.save_file(weights, out / WEIGHTS)
    config = out / 'config.textproto'
    if config.exists():  # Public weights have no such file.
        config.write_text(with_weights(config.read_text(), (out / WEIGHTS).read_bytes()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--of', nargs=2, type=pathlib.Path, required=True, metavar='MODEL',
                        help='the two model folders')
    parser.add_argument('--out', type=pathlib.Path, required=True, help='a new model folder')
    arguments = parser.parse_args()
    average(arguments.of, arguments.out)


if __name__ == '__main__':
    user_errors.run('average', main)
