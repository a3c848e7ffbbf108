#!/usr/bin/env python3
"""Writes a model as ONNX, with standard operators only.

    export_onnx.py models/photographs/1 photographs.onnx --check
    export_onnx.py MambaVision-T-1K mamba.onnx

MODEL is a model directory of the server, or any checkpoint that convert_checkpoint.py takes. The
flags of that program may follow. MODEL may also be a folder or file of MambaOut, EfficientViM or
VMamba, with --variant, --weights and --prefix if they are needed. The input of a classifier is
`images` [batch,3,height,width], which are RGB and normalised, and its output is `logits`. The
`logits` of a segmenter have stride 4. A detector has the maps and logits from which proposals are
chosen. Its box and mask heads are written to other files. The metadata says how a picture is
resized and normalised to become `images`. docs/onnx.md says more.

Needs NumPy and onnx. --check also needs onnxruntime, and PyTorch or a server. Exit status: 0 done;
1 the check found a difference; 2 the model, the flags or the server are in error.
"""

import argparse
import json
import pathlib
import sys
import tempfile


def missing(error):
    """Returns the message for a package that is not installed."""
    return (f'export_onnx: {error.name} is missing: '
            'pip install numpy onnx onnxruntime torch torchvision')


try:
    import convert_checkpoint
    import onnx
    from checkpoint.files import read_files
    from checkpoint.open_weights import read_open_weights
    from checkpoint.tensor import CheckpointError
    from onnx_export import check, heads
    from onnx_export.graph import Graph
    from onnx_export.model_folder import open_model, read_model
except ModuleNotFoundError as error:
    print(missing(error), file=sys.stderr)
    sys.exit(2)

NETWORKS = {'CLASSIFICATION': heads.classifier, 'SEGMENTATION': heads.segmenter,
            'DETECTION': heads.detector}
ROI_HEADS = {'bbox_head': (heads.box_head, 'box'), 'mask_head': (heads.mask_head, 'mask')}
AXES = ('batch', 'height', 'width')  # The axes of the images, free unless flags fix them.
MOST_IN_ONE_FILE = 1_800_000_000  # Bytes; protobuf's limit is 2 GiB.


def metadata(model):
    """Returns the facts that a caller needs besides the tensors, as {name: text}."""
    config = model.config
    return {'task': config.task, 'labels': '\n'.join(model.labels),
            'filter': 'Pillow bicubic' if config.task == 'CLASSIFICATION' else 'OpenCV bilinear',
            **{name: value if isinstance(value, str) else json.dumps(value)
               for name, value in config.picture.items()}}


def network(model, batch='batch', height='height', width='width'):
    """Returns the ModelProto of the network that reads images. A size is a number, or the name of a
    free axis.
    """
    config = model.config
    graph = Graph({name: tensor for name, tensor in model.tensors.items()
                   if not name.startswith('roi_head.')})
    if config.vim:  # Vim's position embedding allows only one size.
        height = width = 16 * round((model.tensors['pos_embed'].shape[1] - 1)**0.5)
    outputs = NETWORKS[config.task](graph, config, 'images')
    return graph.model({'images': [batch, 3, height, width]}, outputs, metadata(model))


def roi_heads(model):
    """Yields (name, ModelProto) for each head that reads regions: box_0 and mask_0, and box_1 etc.
    for a cascade.
    """
    for part, (head, name) in ROI_HEADS.items():
        prefix = f'roi_head.{part}.'
        tensors = {key[len(prefix):]: tensor for key, tensor in model.tensors.items()
                   if key.startswith(prefix)}
        stages = sorted({key.split('.')[0] for key in tensors if key[0].isdigit()})
        for stage in stages or ['']:
            start = f'{stage}.' if stage else ''
            graph = Graph({key[len(start):]: tensor for key, tensor in tensors.items()
                           if key.startswith(start)})
            if graph.tensors:
                channels, side = len(model.tensors['rpn_head.rpn_conv.bias']), 14
                if 'shared_fcs.0.weight' in graph.tensors:
                    side = round((graph.tensors['shared_fcs.0.weight'].shape[1] / channels)**0.5)
                yield f'{name}_{stage or 0}', graph.model(
                    {'features': ['regions', channels, side, side]}, head(graph, 'features'),
                    {'task': model.config.task})


def save(proto, path):
    """Writes the file. If the weights are too large for protobuf, they get a file of their own
    beside it."""
    size = sum(len(tensor.raw_data) for tensor in proto.graph.initializer)
    options = {}
    if size > MOST_IN_ONE_FILE:
        data = path.with_name(f'{path.name}.data')
        data.unlink(missing_ok=True)  # onnx would append to it.
        options = dict(save_as_external_data=True, location=data.name)
    onnx.save(proto, path, **options)
    onnx.checker.check_model(str(path), full_check=True)


def read(path, flags):
    """Returns the Model in a model directory, in a checkpoint of open_weights, or in a checkpoint
    that the converter can convert.
    """
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ('--variant', '--weights', '--prefix'):
        own.add_argument(flag)
    named, others = own.parse_known_args(flags)
    found = read_open_weights(path, **vars(named))
    if found:
        if others:
            raise CheckpointError(f'{path}: a {found.variant}, expected no {" ".join(others)}')
        return open_model(found)
    if read_files(path).own_config is not None:
        if flags:
            raise CheckpointError(f'{path}: a model directory, expected no {" ".join(flags)}')
        return read_model(path)
    with tempfile.TemporaryDirectory() as folder:
        status = convert_checkpoint.main([str(path), '--out', folder, '--force', '--quiet', *flags])
        if status != 0:
            raise CheckpointError(f'{path}: convert_checkpoint.py did not take it')
        return read_model(folder)


def export(args, flags):
    """Writes the files and checks them; returns the exit status."""
    model = read(args.model, flags)
    fixed = {axis: getattr(args, axis) for axis in AXES if getattr(args, axis) is not None}
    files = {args.out: network(model, **fixed)}
    files.update((args.out.with_suffix(f'.{name}.onnx'), head) for name, head in roi_heads(model))
    for path, proto in files.items():
        save(proto, path)
        print(f'{path}: {len(proto.graph.node)} nodes, opset {proto.opset_import[0].version}')
    good = True
    if args.check or args.check_server:
        for line, near in check.compare(model, list(files), args.check_server):
            print(line)
            good = good and near
    return 0 if good else 1


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False)
    parser.add_argument('model', type=pathlib.Path, metavar='MODEL')
    parser.add_argument('out', type=pathlib.Path, metavar='FILE', help='the .onnx to write')
    for axis in AXES:
        parser.add_argument(f'--{axis}', type=int, metavar='N', help='fix it; default: any')
    parser.add_argument('--check', action='store_true',
                        help='compare ONNX Runtime with tools/pytorch')
    parser.add_argument('--check_server', metavar='URL', help='compare ONNX Runtime with a server '
                        'that has the classifier: http://127.0.0.1:8000/v2/models/NAME')
    args, flags = parser.parse_known_args(argv)
    try:
        return export(args, flags)
    except ModuleNotFoundError as error:
        print(missing(error), file=sys.stderr)
        return 2
    except (CheckpointError, OSError, ValueError) as error:
        print(f'export_onnx: {error}', file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
