"""Finds the tensors of a model, by their names, in the content of a file."""

import collections
import dataclasses
import re

from checkpoint import vmamba
from checkpoint.pickle_reader import Dropped
from checkpoint.tensor import CheckpointError, Tensor, printable

# The names under which programs store the weights. The first name that exists is used. timm stores
# averaged weights under the first two, which it also prefers. mmengine stores averaged weights as
# its state_dict.
_AVERAGED = ('state_dict_ema', 'model_ema')
_HOLDERS = (*_AVERAGED, 'state_dict', 'model', 'model_state_dict', 'net', 'params', 'weights',
            'module')
_MAX_DEPTH = 3  # The deepest nesting of dictionaries.
# Parts of a name that wrappers such as torch.compile and FSDP insert anywhere.
_WRAPPER = re.compile(r'(?<![^.])(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|'
                      r'_forward_module)\.')
# The first layers of a backbone. A network is found by these names. The text before them is the
# network's prefix.
_FIRST = re.compile(r'((?:.*\.)?)(?:patch_embed\.conv_down|trunk\.stem|stem\.conv1|'
                    r'downsample_layers\.0\.conv1|patch_embed\.(?:conv\.)?0|'
                    r'vmamba\.patch_embeddings)\.')
_BACKBONE = 'backbone.'
_DENSE = ('decode_head.', 'roi_head.', 'rpn_head.')


@dataclasses.dataclass
class StateDict:
    tensors: dict  # The model's tensors by name. A VMamba's have its authors' names and shapes.
    sources: dict  # The name in the file, for each name.
    skipped: dict  # The reasons for skipped entries, by their names in the file.
    facts: dict    # The file's other strings and dictionaries, such as "meta".
    origin: str  # Where the weights are in the file, or ''.
    choices: str  # Other possible values of --weights and --prefix.


def _dictionaries(value, name, depth, seen):
    """Yields (name, dictionary) for `value` and for the dictionaries in it that contain tensors."""
    seen.add(id(value))
    if any(isinstance(v, Tensor) for v in value.values()):
        yield name, value
    if depth == 0:
        return
    for key, inner in value.items():
        if isinstance(inner, dict) and id(inner) not in seen:
            yield from _dictionaries(inner, f'{name}/{key}' if name else key, depth - 1, seen)


def _clean(name):
    return _WRAPPER.sub('', name)


def _prefixes(names):
    """Returns {prefix of a network: number of names with this prefix}."""
    found = {match[1] for match in map(_FIRST.match, names) if match}
    roots = set()
    for prefix in found:
        outer = prefix[:-len(_BACKBONE)]
        dense = prefix.endswith(_BACKBONE) and any(
            name.startswith(tuple(outer + part for part in _DENSE)) for name in names)
        roots.add(outer if dense else prefix)
    return {root: sum(name.startswith(root) for name in names) for root in sorted(roots)}


def _listed(counts):
    shown = [f'{printable(name) or "no prefix"} ({count})' for name, count in
             list(counts.items())[:10]]
    return ', '.join(shown + ['...'] * (len(counts) > 10))


def _tensors_in(dictionaries):
    return {name or 'the file itself': sum(isinstance(v, Tensor) for v in inner.values())
            for name, inner in dictionaries.items()}


def _rank(name):
    last = name.split('/')[-1]
    known = last in _HOLDERS or not name
    return (not known, _HOLDERS.index(last) if last in _HOLDERS else len(_HOLDERS),
            name.count('/'))


def _choose_holder(dictionaries, wanted):
    """Returns the name of the dictionary that contains the weights."""
    if wanted is not None:
        if wanted not in dictionaries:
            raise CheckpointError(f'no tensors under {printable(wanted)}; tensors are under: '
                                  f'{_listed(_tensors_in(dictionaries))}')
        return wanted
    with_networks = [name for name, inner in dictionaries.items()
                     if _prefixes([_clean(key) for key in inner])]
    names = sorted(with_networks or dictionaries, key=_rank)
    if len(names) > 1 and (_rank(names[0])[0] or _rank(names[0]) == _rank(names[1])):
        raise CheckpointError('networks are under several names, choose by --weights: '
                              f'{_listed(_tensors_in({n: dictionaries[n] for n in names}))}')
    return names[0]


def _choose_prefix(names, wanted):
    counts = _prefixes(names)
    first_parts = collections.Counter(name.split('.')[0] + '.' for name in names)
    if wanted is not None:
        prefix = wanted + '.' * (not wanted.endswith('.') and wanted != '')
        if not any(name.startswith(prefix) for name in names):
            raise CheckpointError(f'no tensor\'s name begins with {printable(prefix)}; they begin '
                                  f'with: {_listed(dict(first_parts.most_common()))}')
        return prefix
    if len(counts) > 1:
        raise CheckpointError(f'{len(counts)} networks, choose by --prefix: {_listed(counts)}')
    return next(iter(counts), '')


def _why_skipped(name, value, copies):
    if name.endswith('num_batches_tracked'):
        return 'a counter that only training needs'
    if name.startswith('auxiliary_head.'):
        return 'a head that only training needs'
    if name in copies:
        return 'mmcv\'s second copy of a weight'
    if isinstance(value, Dropped) and value.name:
        raise value.refusal()
    if not isinstance(value, Tensor):
        return 'not a tensor'
    return None


def _origin(holder, prefix, others):
    parts = []
    if holder:
        averaged = ', the averaged ones, which timm takes first' if holder in _AVERAGED else ''
        parts.append(printable(holder) + averaged)
    if others:
        parts.append(f'beside them {", ".join(map(printable, others))}, which --weights chooses')
    if prefix:
        parts.append(f'prefix {printable(prefix)}')
    return '; '.join(parts)


def _nothing(value):
    """Returns the error for a file without tensors."""
    if isinstance(value, Dropped) and value.name:
        return CheckpointError(f'the file is a whole {printable(value.name)} with its code, which '
                               'is refused: expected the dictionary that its state_dict() gives')
    if not isinstance(value, dict):
        return CheckpointError(f'holds a {type(value).__name__}, expected a dictionary of tensors')
    whole = [inner for key, inner in value.items()
             if key in _HOLDERS and isinstance(inner, Dropped) and inner.name]
    if whole:
        return _nothing(whole[0])
    keys = ', '.join(map(printable, list(value)[:10])) or 'nothing'
    return CheckpointError(f'holds no tensors; it has {keys}')


def read_state_dict(value, weights=None, prefix=None):
    """Returns the StateDict in `value`, the content of a file.

    `weights` names the dictionary with the weights. A dictionary b in a dictionary a is called a/b.
    `prefix` is the text before the model's own names. If one of them is None, it is searched for.
    """
    dictionaries = dict(_dictionaries(value, '', _MAX_DEPTH, set())) if isinstance(
        value, dict) else {}
    if not dictionaries:
        raise _nothing(value)
    holder = _choose_holder(dictionaries, weights)
    found = dictionaries[holder]
    skipped = {key: 'not the weights' for key in value if key != holder.split('/')[0]} \
        if holder else {}
    names = {key: _clean(key) for key in found}
    prefix = _choose_prefix(names.values(), prefix)
    inside = {key: name[len(prefix):] for key, name in names.items() if name.startswith(prefix)}
    is_vmamba = vmamba.is_vmamba(inside.values())
    if is_vmamba:
        inside = {key: vmamba.own_name(name) for key, name in inside.items()}
    copies = {f'ema_{name.replace(".", "_")}' for name in inside.values()}
    tensors, sources = {}, {}
    for key in found:
        if key not in inside:
            skipped[key] = f'not under {prefix}, which others are'
            continue
        name = inside[key]
        why = _why_skipped(name, found[key], copies)
        if why is not None:
            skipped[key] = why
        elif name in tensors:
            raise CheckpointError(f'{printable(key)} and {printable(sources[name])} are both '
                                  f'{printable(name)}')
        else:
            tensor = found[key]
            tensors[name] = vmamba.in_own_shape(name, tensor) if is_vmamba else tensor
            sources[name] = key
    if not tensors:
        raise CheckpointError('holds no weights')
    others = sorted(name for name, inner in dictionaries.items() if name != holder and
                    _prefixes([_clean(key) for key in inner]))
    first_parts = collections.Counter(name.split('.')[0] + '.' for name in names.values())
    choices = (f'tensors are under {_listed(_tensors_in(dictionaries))}; their names begin with '
               f'{_listed(dict(first_parts.most_common()))}')
    facts = {key: inner for key, inner in value.items() if not isinstance(inner, Tensor)}
    return StateDict(tensors, sources, skipped, facts, _origin(holder, prefix, others), choices)
