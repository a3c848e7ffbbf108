"""Reads checkpoints, which are files or folders, and the other files beside the weights."""

import dataclasses
import json
import mmap
import pathlib
import re

from checkpoint import textproto
from checkpoint.hugging_face import CONFIG, PREPROCESSOR
from checkpoint.json_text import parse_object, refuse_pointer
from checkpoint.safetensors_file import MAX_HEADER, is_safetensors, read_safetensors
from checkpoint.tensor import CheckpointError, Tensor, printable
from checkpoint.torch_file import TorchFile, read_torch_file

# The names of weights in Hugging Face's layout, in the order in which its library looks for them.
_WEIGHTS = ('model.safetensors', 'model.safetensors.index.json', 'pytorch_model.bin',
            'pytorch_model.bin.index.json')
_SUFFIXES = ('.pth', '.pth.tar', '.pt', '.ckpt', '.bin', '.safetensors')
_OWN_CONFIG, _OWN_LABELS = 'config.textproto', 'labels.txt'
# The fields that a config.textproto may have beside a config.json.
_SETTINGS = {'batching', 'default_for_task', 'precision', 'weights'}
_SHARD = re.compile(r'.*-\d{5}-of-\d{5}\.(safetensors|bin)')
_FILE_NAME = re.compile(r'\w[\w.-]*', re.ASCII)  # The name of a shard, without a folder.
_LFS_POINTER = b'version https://git-lfs.github.com/spec/'
_PAGES = (b'<!doctype html', b'<html', b'<?xml')


@dataclasses.dataclass
class Files:
    value: object            # The content of the file, or of all shards together.
    dropped: dict            # As in TorchFile.
    name: str  # The name of the file, or of its folder if the file has a name of _WEIGHTS.
    config: dict = None      # config.json.
    preprocessor: dict = None  # preprocessor_config.json.
    own_config: str = None   # The text of a config.textproto that describes the model.
    settings: str = None     # The text of a config.textproto beside config.json.
    own_labels: str = None   # The text of the server's labels.txt.


def _refuse_other_kinds(data):
    """Raises an error if the data is what failed downloads leave behind, such as a web page."""
    head = bytes(data[:512])
    if head.startswith(_LFS_POINTER):
        size = re.search(rb'\nsize (\d+)', head)
        of = f' of {int(size[1]) / 1e6:.1f} MB' if size else ''
        raise CheckpointError(f'a Git LFS pointer to weights{of}, not the weights: "git lfs pull" '
                              'fetches them')
    if head.lstrip().lower().startswith(_PAGES):
        raise CheckpointError('a web page, not a checkpoint: what was downloaded is perhaps the '
                              'page about the file, or one that asks for a login')


def _json(data):
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f'not the JSON that it should be ({error})') from error
    if not isinstance(found, dict):
        raise CheckpointError('not a JSON object')
    return found


def _is_json(head, size):
    """Returns whether a file of `size` bytes is JSON. `head` is the file's beginning. A file in the
    safetensors format can also begin with "{", because its first 8 bytes are a number. Such a file
    is not JSON.
    """
    return head.lstrip().startswith(b'{') and not (
        is_safetensors(head) and int.from_bytes(head[:8], 'little') < min(MAX_HEADER, size))


def _read_shards(path, index):
    """Reads the tensors of all shards that an index lists."""
    places = index.get('weight_map')
    if not isinstance(places, dict) or not places or not all(
            isinstance(name, str) and _FILE_NAME.fullmatch(name) for name in places.values()):
        raise CheckpointError('JSON, but not an index of shards: expected "weight_map" with the '
                              'name of a file beside it for each tensor')
    shards, dropped = {}, {}
    for name in sorted(set(places.values())):
        shard = _named(_read, path.with_name(name))
        if not isinstance(shard.value, dict):
            raise CheckpointError(f'{printable(name)}: expected a dictionary of tensors')
        shards[name] = shard.value
        dropped.update(shard.dropped)
    for tensor, name in places.items():
        if not isinstance(shards[name].get(tensor), Tensor):
            raise CheckpointError(f'{printable(name)}: has no tensor {printable(tensor)}, which '
                                  'the index says it has')
    return TorchFile({tensor: shards[name][tensor] for tensor, name in places.items()}, dropped)


def _read(path):
    """Returns the TorchFile of a single file."""
    with open(path, 'rb') as file:
        if not file.seek(0, 2):
            raise CheckpointError('the file is empty')
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        _refuse_other_kinds(data)
        if is_safetensors(data):
            return TorchFile(read_safetensors(data), {})
        return read_torch_file(file, data)


def _read_any(path):
    """Returns the TorchFile of a single file, or of all files that an index lists."""
    with open(path, 'rb') as file:
        head = file.read(64)
        size = file.seek(0, 2)
        if not _is_json(head, size):
            return _read(path)
        file.seek(0)
        return _read_shards(path, _json(file.read(MAX_HEADER)))


def _named(read, path):
    """Returns read(path). If it raises an error, adds the file's name to the error."""
    try:
        return read(path)
    except CheckpointError as error:
        raise CheckpointError(f'{printable(path.name)}: {error}') from error


def _weights_in(folder):
    for name in _WEIGHTS:
        if (folder / name).exists():
            return folder / name
    others = sorted(path for path in folder.iterdir() if path.name.endswith(_SUFFIXES))
    if others and others[0].name.startswith('adapter_model.'):
        raise CheckpointError(f'{others[0].name} is an adapter, expected the whole model: merge it '
                              'into its base model and save that')
    if len(others) == 1:
        return others[0]
    names = ', '.join(printable(path.name) for path in others[:10]) or 'none'
    raise CheckpointError(f'a folder without {" or ".join(_WEIGHTS)}; it has other checkpoints: '
                          f'{names}')


def _bytes(path):
    return path.read_bytes() if path.is_file() else None


def _text(path):
    data = _bytes(path)
    if data is None:
        return None
    refuse_pointer(path.name, data)
    try:
        return data.decode('utf-8-sig')
    except ValueError as error:
        raise CheckpointError(f'{path.name}: not UTF-8') from error


def _is_complete(own_config):
    """Returns whether the server ignores a config.json beside this config.textproto. The server
    does this if the config.textproto contains the variant and the digest.
    """
    found = textproto.parse(own_config) if own_config is not None else {}
    messages = [found.get(name, [{}])[0] for name in ('backbone', 'weights')]
    return all(isinstance(message, dict) and name in message
               for message, name in zip(messages, ('variant', 'sha256')))


def _read_config(folder, files):
    """Reads config.json and the files beside it. If there is also a config.textproto, it may only
    contain how the model is served.
    """
    config, preprocessor = _bytes(folder / CONFIG), _bytes(folder / PREPROCESSOR)
    if config is None or _is_complete(files.own_config):
        return
    files.config = parse_object(CONFIG, config)
    if preprocessor is not None:
        files.preprocessor = parse_object(PREPROCESSOR, preprocessor)
    others = sorted(textproto.parse(files.own_config or '').keys() - _SETTINGS)
    if others:
        raise CheckpointError(f'{_OWN_CONFIG} beside {CONFIG}: {", ".join(others)}: expected only '
                              f'{", ".join(sorted(_SETTINGS))}; give the rest by flags')
    files.settings, files.own_config = files.own_config, None


def read_files(path):
    """Returns the Files of `path`, which is a checkpoint, an index of shards, or a folder with
    either.

    A tensor's data is read only when it is used.
    """
    path = pathlib.Path(path)
    folder = path if path.is_dir() else path.parent
    weights = _weights_in(path) if path.is_dir() else path
    if not path.is_dir() and _SHARD.fullmatch(path.name):
        raise CheckpointError('one of several shards: give their index or their folder')
    found = _named(_read_any, weights) if path.is_dir() else _read_any(path)
    with_folder = path.is_dir() or path.name in _WEIGHTS
    files = Files(found.value, found.dropped, (folder if with_folder else path).absolute().name)
    if with_folder:
        files.own_config = _text(folder / _OWN_CONFIG)
        files.own_labels = _text(folder / _OWN_LABELS)
        _read_config(folder, files)
    return files
