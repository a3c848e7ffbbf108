"""From what a file holds to the tensors of a model by their names."""

import dataclasses

from checkpoint.tensor import CheckpointError, Tensor, printable

# Where frameworks keep the weights beside other things, in the order of the search.
_HOLDERS = ('state_dict', 'model')
_WRAPPERS = ('module.', 'model.', 'backbone.')
_ENCODER = 'encoder.'
# What tools/pytorch trains, beside which its checkpoints have what only training needs.
_TRAINED = 'model.'
_IS_TRAINED = _TRAINED + 'trunk.'


@dataclasses.dataclass
class StateDict:
    tensors: dict  # Of the model, by name.
    sources: dict  # Each name as the file has it.
    skipped: dict  # What is not of the model, by the file's name: why.
    facts: dict    # The file's other strings and dictionaries, such as "meta".


def _find(value):
    """(the dictionary with the weights, its key in `value` or None)."""
    if not isinstance(value, dict):
        raise CheckpointError(f'holds a {type(value).__name__}, expected a dictionary of tensors')
    for holder in _HOLDERS:
        inner = value.get(holder)
        if isinstance(inner, dict) and any(isinstance(v, Tensor) for v in inner.values()):
            return inner, holder
    if any(isinstance(v, Tensor) for v in value.values()):
        return value, None
    keys = ', '.join(map(printable, list(value)[:10])) or 'nothing'
    raise CheckpointError(f'holds no tensors under {" or ".join(_HOLDERS)}; it has {keys}')


def _why_skipped(key, value):
    if key.endswith('num_batches_tracked'):
        return 'a counter that only training needs'
    if key.startswith('auxiliary_head.'):
        return 'a head that only training needs'
    if not isinstance(value, Tensor):
        return 'not a tensor'
    return None


def _strip(names):
    """From each model name to the file's, as the server strips wrappers' prefixes."""
    part = next((_TRAINED for name in names if name.startswith(_IS_TRAINED)), '')
    names = {name: name for name in names if name.startswith(part)}
    while True:
        prefix = next((p for p in _WRAPPERS if names and all(n.startswith(p) for n in names)), None)
        if prefix is None:
            break
        names = {name[len(prefix):]: source for name, source in names.items()}
    if names and min(names).startswith(_ENCODER):
        names = {name[len(_ENCODER):]: source for name, source in names.items()
                 if name.startswith(_ENCODER)}
    return names


def read_state_dict(value):
    """The StateDict in `value`, which a file holds."""
    found, holder = _find(value)
    skipped = {}
    if holder is not None:
        skipped = {key: 'not the weights' for key in value if key != holder}
    sources = _strip(found)
    tensors = {}
    trained = any(name.startswith(_IS_TRAINED) for name in found)
    for key in found.keys() - sources.values():
        skipped[key] = f'not under {_TRAINED if trained else _ENCODER}, which others are'
    for name, source in list(sources.items()):
        why = _why_skipped(name, found[source])
        if why is None:
            tensors[name] = found[source]
        else:
            skipped[source] = why
    if not tensors:
        raise CheckpointError('holds no weights')
    return StateDict(tensors, sources, skipped, value if holder is not None else {})
