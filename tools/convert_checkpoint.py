#!/usr/bin/python3
"""Turns a PyTorch checkpoint into a model directory that the server loads.

    convert_checkpoint.py CHECKPOINT --out models/NAME/1

CHECKPOINT is a .pth or .pth.tar file of MambaVision, mmdetection or mmsegmentation, a
classifier's checkpoint.pt of tools/pytorch, or a .safetensors file. The directory gets config.textproto, model.safetensors and labels.txt.
The variant, the task and the number of classes are read from the tensors' shapes.

Nothing in CHECKPOINT is executed or imported. Its pickle may only build tensors,
dictionaries, lists, numbers and strings; a file that asks for anything else is refused by
that thing's name. Some names that training is known to leave beside the weights are
passed over with all that belongs to them: mmengine's HistoryBuffer, NumPy's arrays and
scalars, argparse.Namespace, devices and types of PyTorch.

Exit status: 0 done; 1 the tensors are not all and only those of the model, nothing is
written; 2 the file or the flags are in error.
"""

import argparse
import dataclasses
import mmap
import sys

try:
    import numpy  # noqa: F401, so that its absence is said in one line.
except ImportError:
    sys.exit('convert_checkpoint: NumPy is missing; apt-get install python3-numpy and run this '
             'with /usr/bin/python3')

from checkpoint import report
from checkpoint.labels import choose_labels
from checkpoint.model_directory import check_free, write_model
from checkpoint.network import Unclear, expected_tensors, read_network
from checkpoint.safetensors_file import is_safetensors, read_safetensors, stored_type
from checkpoint.state_dict import read_state_dict
from checkpoint.tensor import CheckpointError, printable
from checkpoint.torch_file import TorchFile, read_torch_file
from checkpoint.variants import CUSTOM, NAMES, choose_variant, find_row

DTYPES = {'fp32': 'F32', 'fp16': 'F16', 'bf16': 'BF16'}


def _pair(text):
    values = tuple(map(int, text.split(',')))
    if len(values) != 2 or min(values) < 0:
        raise ValueError
    return values


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('checkpoint')
    parser.add_argument('--out', required=True, metavar='DIR', help='the directory to write')
    parser.add_argument('--force', action='store_true', help='replace a model that is in DIR')
    parser.add_argument('--variant', choices=NAMES, metavar='NAME',
                        help='sf_mamba_t, mamba_vision_b, custom, ...; default: by the shapes')
    parser.add_argument('--tokens', choices=('swap', 'none'),
                        help='auxiliary tokens: swap (SF-Mamba, the default) or none '
                             '(MambaVision); shapes do not tell')
    parser.add_argument('--dtype', choices=DTYPES,
                        help='how the weights are stored; default: as they are')
    parser.add_argument('--labels', metavar='FILE',
                        help='class names, one a line; default: those in the checkpoint, or of '
                             'COCO (80 detected) or ADE20K (150 segmented); 1000 classes of '
                             'ImageNet become class_0, ...: their names are not part of this')
    parser.add_argument('--num_heads', type=_pair, metavar='A,B',
                        help='attention heads of stages 3 and 4; custom variants need it')
    parser.add_argument('--windows', type=_pair, metavar='A,B',
                        help='tokens a side of the windows of stages 3 and 4')
    parser.add_argument('--attention_windows', type=_pair, metavar='A,B',
                        help='the same of the attention\'s sub-windows; 0: none')
    parser.add_argument('--input_size', type=int, metavar='PIXELS',
                        help='side of the pictures to classify; default: the variant\'s')
    parser.add_argument('--quiet', action='store_true', help='no table of all keys')
    args = parser.parse_args(argv)
    if args.variant not in (None, CUSTOM):
        tokens = find_row(args.variant)[1]
        if args.tokens not in (None, tokens):
            parser.error(f'--variant {args.variant} is one with --tokens {tokens}')
        args.tokens = tokens
    return args


def _read(path):
    """(the TorchFile at `path`, notes); its tensors read the file when they are used."""
    with open(path, 'rb') as file:
        if not file.seek(0, 2):
            raise CheckpointError('the file is empty')
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if is_safetensors(data):
            return TorchFile(read_safetensors(data), {})
        return read_torch_file(file, data)


def _understand(state, args):
    """The Network of the tensors, its variant and notes on the choice of it."""
    try:
        network = read_network({name: tensor.shape for name, tensor in state.tensors.items()})
    except Unclear as error:
        raise CheckpointError(f'the model cannot be told from its tensors: {error}') from error
    if args.variant is None:
        variant, names = choose_variant(network, args.tokens or 'swap')
        notes = [f'the shapes fit {", ".join(names)} alike'] if len(names) > 1 else []
    else:
        variant, notes = args.variant, []
    if variant == CUSTOM:
        if args.num_heads is None:
            backbone = network.backbone
            stem = f'a trunk of stride {backbone.trunk}' if backbone.trunk else \
                f'in_dim {backbone.in_dim}'
            raise CheckpointError(
                f'dim {backbone.dim}, {stem}, depths {list(backbone.depths)}, '
                f'{"with" if backbone.layer_scale else "no"} layer scale: no variant of the '
                'table; give the attention heads of stages 3 and 4 by --num_heads')
        return network, variant, notes
    row = find_row(variant)[0].backbone
    backbone = dataclasses.replace(row, attention=network.backbone.attention,
                                   learnable=network.backbone.learnable)
    return dataclasses.replace(network, backbone=backbone), variant, notes


@dataclasses.dataclass(frozen=True)
class Options:
    """What the configuration says besides what the network is."""

    variant: str
    tokens: str
    num_heads: tuple
    windows: tuple
    attention_windows: tuple
    input_size: int


def _options(args, network, variant):
    windows, size = args.windows, args.input_size
    if variant == CUSTOM and network.task == 'CLASSIFICATION':
        size = size or 224
        windows = windows or (-(-size // 16), -(-size // 32))
    return Options(variant, args.tokens or 'swap', args.num_heads, windows,
                   args.attention_windows, size)


def _notes(args, saved, state):
    notes = [f'passed over: {printable(name)} ({count})'
             for name, count in sorted(saved.dropped.items())]
    arch = state.facts.get('arch')
    if args.tokens is None and isinstance(arch, str) and arch.startswith('mamba_vision'):
        notes.append(f'the checkpoint calls itself {printable(arch)}: MambaVision needs '
                     '--tokens none')
    return notes


def convert(args):
    """Converts as `args` say; returns the exit status."""
    check_free(args.out, args.force)
    saved = _read(args.checkpoint)
    state = read_state_dict(saved.value)
    network, variant, notes = _understand(state, args)
    options = _options(args, network, variant)
    found = report.match(state, expected_tensors(network))
    lines = report.problems(found.rows) if args.quiet else report.table(found.rows)
    lines += [f'note: {note}' for note in _notes(args, saved, state) + notes]
    print(*lines, report.summary(found.rows), sep='\n')
    if not found.loads:
        print(f'convert_checkpoint: {args.checkpoint}: not a {variant}, nothing is written',
              file=sys.stderr)
        return 1
    labels, origin = choose_labels(args.labels, state.facts, network.task,
                                   network.classes)
    types = {name: stored_type(tensor, DTYPES.get(args.dtype))
             for name, tensor in found.tensors.items()}
    size = write_model(args.out, network, options, found.tensors, types, labels)
    kept = sum(type_ != DTYPES.get(args.dtype, type_) for type_ in types.values())
    if kept:
        print(f'note: {kept} tensors stay fp32, as {args.dtype} would make values infinite')
    print(f'{args.out}: {variant}, {network.task.lower()}, {network.classes} classes '
          f'(labels: {origin}), {size / 1e6:.1f} MB')
    return 0


def main(argv=None):
    args = parse_args(argv)
    try:
        return convert(args)
    except (CheckpointError, OSError) as error:
        print(f'convert_checkpoint: {args.checkpoint}: {error}', file=sys.stderr)
    except MemoryError:
        print(f'convert_checkpoint: {args.checkpoint}: out of memory', file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main())
