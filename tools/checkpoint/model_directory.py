"""Writes a model directory: model.safetensors, labels.txt and, last, config.textproto.

The server considers a version complete when its configuration is there and the size and
sha256 in the configuration match the weights.
"""

import contextlib
import dataclasses
import os
import pathlib
import re

from checkpoint import trunk, vmamba
from checkpoint.safetensors_file import write_safetensors
from checkpoint.tensor import CheckpointError

CONFIG, WEIGHTS, LABELS = 'config.textproto', 'model.safetensors', 'labels.txt'
_TOKENS = {'swap': 'DATA', 'none': 'NONE'}


@dataclasses.dataclass(frozen=True)
class Options:
    """The part of the configuration that does not follow from the network. A field is None if the
    server's default is used.
    """

    variant: str
    tokens: str
    num_heads: tuple = None
    windows: tuple = None
    attention_windows: tuple = None
    swap: bool = None
    picture: dict = dataclasses.field(default_factory=dict)
    own_config: str = None  # An existing config.textproto, kept except for "weights".
    settings: str = None    # Text that is added, except for "weights".


def _numbers(values):
    return f'[{", ".join(map(str, values))}]'


def _message(name, fields):
    lines = [f'  {key}: {value}' for key, value in fields.items() if value is not None]
    return [f'{name} {{', *lines, '}'] if lines else []


def _backbone(network, options):
    backbone = network.backbone
    fields = {'variant': f'"{options.variant}"'}
    if options.variant == 'custom':
        fields.update(stem=trunk.STEMS.get(backbone.trunk), dim=backbone.dim,
                      in_dim=None if backbone.trunk else backbone.in_dim,
                      depths=_numbers(backbone.depths),
                      layer_scale=str(backbone.layer_scale).lower(), tokens=_TOKENS[options.tokens])
    row = vmamba.ROWS.get(options.variant)
    if row and row.dim != backbone.dim:
        fields['dim'] = backbone.dim
    if row and row.depths != backbone.depths:
        fields['depths'] = _numbers(backbone.depths)
    if options.num_heads:
        fields['num_heads'] = _numbers((1, 1, *options.num_heads))
    if options.windows:
        fields['windows'] = _numbers(options.windows)
    if options.attention_windows:
        fields['attention_windows'] = _numbers(options.attention_windows)
    if backbone.learnable:
        fields['tokens'] = 'LEARNABLE'
    if not backbone.attention:
        fields['attention'] = 'false'
    if options.swap is False:
        fields['swap'] = 'false'
    return fields


def _architecture(detector):
    """Returns the name of a detector's architecture. Returns None for a cascade without masks,
    which has no name. The server then reads the structure from the weights.
    """
    if detector.box_stages > 1:
        return 'CASCADE_MASK_RCNN' if detector.mask_convs > 0 else None
    return 'MASK_RCNN' if detector.mask_convs > 0 else 'FASTER_RCNN'


def _head(network):
    if network.task == 'DETECTION':
        detector = network.detector
        return _message('detector', {
            'architecture': _architecture(detector),
            'channels': detector.channels if detector.channels != 256 else None,
            'fc_width': detector.fc_width if detector.fc_width != 1024 else None})
    if network.task == 'SEGMENTATION':
        channels = network.segmenter_channels
        return _message('segmenter', {'channels': channels if channels != 512 else None})
    if network.neck:
        channels, features = network.neck
        return _message('classifier', {'channels': channels, 'features': features})
    return []


def _input(network, options):
    # A trunk is EfficientNet-Lite0's layers in place of the first stages. The training of networks
    # with a trunk uses centre crops that are as large as the picture's short side.
    fields = {'crop_pct': '1.0'} if network.backbone.trunk else {}
    for name, value in options.picture.items():
        fields[name] = _numbers(value) if isinstance(value, tuple) else value
    order = ('size', 'crop_pct', 'resize', 'mean', 'std')
    return _message('input', {name: fields[name] for name in order if name in fields})


def _without_weights(text):
    kept = re.sub(r'^weights\s*:?\s*\{[^}]*\}\n?', '', text, flags=re.MULTILINE)
    return kept.rstrip('\n')


def config_text(network, options, size_bytes, sha256):
    """Returns the text of a sfmamba.v1.ModelConfig for the network and for weights of this size and
    digest.
    """
    weights = _message('weights', {'size_bytes': size_bytes, 'sha256': f'"{sha256}"'})
    if options.own_config is not None:
        return '\n'.join([_without_weights(options.own_config), *weights]) + '\n'
    settings = [_without_weights(options.settings)] if options.settings else []
    return '\n'.join([
        '# proto-file: sfmamba/v1/config.proto', '# proto-message: sfmamba.v1.ModelConfig',
        f'task: {network.task}',
        *_message('backbone', _backbone(network, options)),
        f'num_classes: {network.classes}',
        *_input(network, options),
        *_head(network),
        *settings,
        *weights]) + '\n'


def check_free(folder, force):
    """Raises an error if the folder already contains a model, unless `force`."""
    taken = [name for name in (CONFIG, WEIGHTS, LABELS) if (pathlib.Path(folder) / name).exists()]
    if taken and not force:
        raise CheckpointError(f'{folder} already has {", ".join(taken)}; --force replaces them')


@contextlib.contextmanager
def _synced(path):
    """Yields a new file. When the context ends, the file's content is safely on disk."""
    with open(path, 'wb') as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_model(folder, network, options, tensors, types, labels):
    """Writes the directory. Returns the size of the weights in bytes.

    All files are complete before the first one gets its final name. So the old files remain if an
    error occurs.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parts = {name: folder / f'.{name}.partial' for name in (WEIGHTS, LABELS, CONFIG)}
    try:
        with _synced(parts[WEIGHTS]) as file:
            size_bytes, sha256 = write_safetensors(file, tensors, types)
        with _synced(parts[LABELS]) as file:
            file.write(('\n'.join(labels) + '\n').encode('utf-8'))
        with _synced(parts[CONFIG]) as file:
            file.write(config_text(network, options, size_bytes, sha256).encode('utf-8'))
        (folder / CONFIG).unlink(missing_ok=True)
        for name, part in parts.items():
            os.replace(part, folder / name)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return size_bytes
