#!/usr/bin/python3
"""Turns a PyTorch checkpoint into a model directory that the server loads.

    convert_checkpoint.py CHECKPOINT --out models/NAME/1
    convert_checkpoint.py CHECKPOINT --dry_run

CHECKPOINT is one of three things:
- a .pth, .pth.tar, .ckpt or .safetensors file of MambaVision, timm, mmdetection,
  mmsegmentation, Lightning, DeepSpeed or tools/pytorch;
- an index of shards;
- a folder in Hugging Face's layout.

The directory gets config.textproto, model.safetensors and labels.txt.
The task, the sizes and the number of classes are read from the tensors' shapes. The rest is read
from other evidence: config.json, mmengine's meta.cfg, timm's arch, or the training's arguments.
If there is no evidence, or if it does not agree, nothing is written.

Nothing in CHECKPOINT is executed or imported. Its pickle may only build tensors,
dictionaries, lists, numbers and strings. No other value in the pickle is read. If such a value is
among the weights, the program stops with an error. The error names the value's class or function.

Exit status: 0 done; 1 tensors of the model are missing, surplus or unfit, and nothing is
written; 2 the file or the flags are in error or in doubt, and nothing is written.
"""

import argparse
import sys

try:
    import numpy  # noqa: F401, so that its absence is said in one line.
except ImportError:
    sys.exit('convert_checkpoint: NumPy is missing; apt-get install python3-numpy and run this '
             'with /usr/bin/python3')

from checkpoint import report
from checkpoint.labels import choose_labels
from checkpoint.model_directory import Options, check_free, write_model
from checkpoint.network import expected_tensors
from checkpoint.opened import open_checkpoint
from checkpoint.safetensors_file import stored_type
from checkpoint.tensor import CheckpointError, check_finite, printable
from checkpoint.variants import CUSTOM, NAMES, find_row

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
    parser.add_argument('--out', metavar='DIR', help='the directory to write')
    parser.add_argument('--dry_run', action='store_true',
                        help='say what CHECKPOINT is, without reading its weights; write nothing')
    parser.add_argument('--force', action='store_true', help='replace a model that is in DIR')
    parser.add_argument('--variant', choices=NAMES, metavar='NAME',
                        help='sf_mamba_t, mamba_vision_b, custom, ...; default: by the shapes')
    parser.add_argument('--tokens', choices=('swap', 'none'),
                        help='auxiliary tokens: swap (SF-Mamba) or none (MambaVision), where '
                             'nothing in CHECKPOINT tells, or against what it says')
    parser.add_argument('--weights', metavar='KEY',
                        help='the dictionary with the weights, such as state_dict_ema; a/b for '
                             'one in another; default: found')
    parser.add_argument('--prefix', metavar='P',
                        help='what stands before the model\'s own names, such as teacher; '
                             'default: found')
    parser.add_argument('--dtype', choices=DTYPES,
                        help='how the weights are stored; default: as they are')
    parser.add_argument('--labels', metavar='FILE',
                        help='class names, one a line; default: those in the checkpoint, or of '
                             'COCO (80 detected) or ADE20K (150 segmented); else '
                             'class_0, ...; models/photographs/1/labels.txt has ImageNet\'s')
    parser.add_argument('--num_heads', type=_pair, metavar='A,B',
                        help='attention heads of stages 3 and 4; custom variants need it where '
                             'CHECKPOINT does not say')
    parser.add_argument('--windows', type=_pair, metavar='A,B',
                        help='tokens a side of the windows of stages 3 and 4')
    parser.add_argument('--attention_windows', type=_pair, metavar='A,B',
                        help='the same of the attention\'s sub-windows; 0: none')
    parser.add_argument('--input_size', type=int, metavar='PIXELS',
                        help='side of the pictures to classify; default: the variant\'s')
    parser.add_argument('--quiet', action='store_true', help='no table of all keys')
    args = parser.parse_args(argv)
    if args.out is None and not args.dry_run:
        parser.error('--out or --dry_run is required')
    if args.variant not in (None, CUSTOM):
        tokens = find_row(args.variant)[1]
        if args.tokens not in (None, tokens):
            parser.error(f'--variant {args.variant} is one with --tokens {tokens}')
    return args


def _options(args, opened):
    choice, network = opened.choice, opened.network
    if opened.files.own_config is not None:
        taken = [flag for flag in ('variant', 'tokens', 'num_heads', 'windows',
                                   'attention_windows', 'input_size')
                 if getattr(args, flag) is not None]
        if taken:
            raise CheckpointError('config.textproto beside the weights stays as it is: change it '
                                  f'there, without --{", --".join(taken)}')
        return Options(opened.variant, opened.tokens, own_config=opened.files.own_config)
    if network.backbone.trunk and network.task != 'CLASSIFICATION':
        raise CheckpointError('a detector or segmenter on a trunk, whose anchors and picture sizes '
                              'config.textproto tells: there is none beside it; the training '
                              'scripts\' --export writes it')
    windows, num_heads = args.windows or choice.windows, args.num_heads or choice.num_heads
    picture = dict(choice.picture)
    if args.input_size is not None:
        picture['size'] = args.input_size
    if opened.variant == CUSTOM:
        if num_heads is None:
            backbone = network.backbone
            stem = f'a trunk of stride {backbone.trunk}' if backbone.trunk else \
                f'in_dim {backbone.in_dim}'
            raise CheckpointError(
                f'dim {backbone.dim}, {stem}, depths {list(backbone.depths)}, '
                f'{"with" if backbone.layer_scale else "no"} layer scale: no variant of the '
                'table; give the attention heads of stages 3 and 4 by --num_heads')
        if network.task == 'CLASSIFICATION':
            if windows is None and args.num_heads is None and opened.files.config is not None:
                raise CheckpointError('config.json: window_size: got none, expected 4 numbers; '
                                      '--windows gives those of stages 3 and 4')
            size = picture.setdefault('size', 224)
            windows = windows or (-(-size // 16), -(-size // 32))
    return Options(opened.variant, opened.tokens, num_heads, windows, args.attention_windows,
                   choice.swap, picture, settings=opened.files.settings)


def _stored_types(tensors, wanted):
    """Returns the types in which the tensors are stored. Raises an error if a tensor is not finite.
    """
    check_finite(tensors)
    return {name: stored_type(tensor, wanted) for name, tensor in tensors.items()}


def convert(args):
    """Converts as `args` say; returns the exit status."""
    if not args.dry_run:
        check_free(args.out, args.force)
    opened = open_checkpoint(args.checkpoint, args.weights, args.prefix, args.variant, args.tokens)
    network, variant, state = opened.network, opened.variant, opened.state
    options = _options(args, opened)
    found = report.match(state, expected_tensors(network))
    lines = report.problems(found.rows) if args.quiet else report.table(found.rows)
    lines += [f'note: passed over: {printable(name)} ({count})'
              for name, count in sorted(opened.files.dropped.items())]
    lines += [f'note: {note}' for note in opened.choice.notes]
    print(*lines, report.summary(found.rows), f'found: {opened.evidence}', sep='\n')
    if not found.loads:
        print(f'convert_checkpoint: {args.checkpoint}: not a {variant}, nothing is written',
              file=sys.stderr)
        return 1
    labels, origin = choose_labels(args.labels, opened, network.task, network.classes)
    if args.dry_run:
        return 0
    types = _stored_types(found.tensors, DTYPES.get(args.dtype))
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
