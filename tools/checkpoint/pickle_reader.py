"""Reads the pickles of PyTorch checkpoints without running anything in them.

This is not Python's unpickler. It interprets only the pickle operations that build dictionaries,
lists, tuples, numbers, strings and tensors. It never imports or calls a class or function that a
file names. For a few of them it has functions of its own, see FUNCTIONS. The result of any other
class or function is replaced by a Dropped, because training stores many such values beside the
weights. If a Dropped is among the weights, state_dict.py raises an error that contains the name of
the class or function.
"""

import collections
import struct

from checkpoint.tensor import CheckpointError, Storage, Tensor, checked_tensor, printable

MAX_OPERATIONS = 5_000_000
# In bytes. Longer strings are dropped, because they are neither keys nor settings.
MAX_STRING = 1 << 18
MAX_LINE = 1 << 12  # In bytes.

STORAGE_TYPES = {
    'torch.DoubleStorage': 'F64', 'torch.FloatStorage': 'F32', 'torch.HalfStorage': 'F16',
    'torch.BFloat16Storage': 'BF16', 'torch.LongStorage': 'I64', 'torch.IntStorage': 'I32',
    'torch.ShortStorage': 'I16', 'torch.CharStorage': 'I8', 'torch.ByteStorage': 'U8',
    'torch.BoolStorage': 'BOOL', 'torch.ComplexFloatStorage': 'C64',
    'torch.ComplexDoubleStorage': 'C128', 'torch.storage.UntypedStorage': 'U8',
}


class Dropped:
    """Replaces a value that was not read. `name` is the function or class that would make it. It is
    None for bytes, sets and long texts.
    """

    def __init__(self, name=None):
        self.name = name

    def refusal(self):
        return CheckpointError(f'the pickle asks for {printable(self.name)}, which is refused: '
                               'nothing but tensors is read')


DROPPED = Dropped()


class Namespace(dict):
    """The attributes of an argparse.Namespace, by name."""


class Name:
    """A class or function that the file names and that is in STORAGE_TYPES or FUNCTIONS."""

    def __init__(self, full):
        self.full = full


def _ordered_dict(args):
    return None if args else {}


def _namespace(args):
    return None if args else Namespace()


def _size(args):
    return args[0] if len(args) == 1 and isinstance(args[0], tuple) else None


def _tensor(args):
    fits = len(args) >= 4 and isinstance(args[0], Storage)
    return checked_tensor(*args[:4]) if fits else None


def _parameter(args):
    return args[0] if args and isinstance(args[0], Tensor) else None


# The classes and functions that a file may call. Each is replaced by a function of this module. The
# replacement returns the value for the arguments, or None if it does not accept them.
FUNCTIONS = {
    'collections.OrderedDict': _ordered_dict,
    'argparse.Namespace': _namespace,
    'torch.Size': _size,
    'torch._utils._rebuild_tensor': _tensor,
    'torch._utils._rebuild_tensor_v2': _tensor,
    'torch._utils._rebuild_parameter': _parameter,
    'torch._utils._rebuild_parameter_with_state': _parameter,
}


class PickleReader:
    """Reads one pickle, which begins at `position` in `data`. Afterwards, `position` is the
    pickle's end.

    `load_storage(identifier)` returns the Storage for a persistent identifier, or a Dropped.
    `dropped` counts the calls of unknown names.
    """

    def __init__(self, data, position, load_storage):
        self.data = data
        self.position = position
        self.dropped = collections.Counter()
        self._load_storage = load_storage
        self._stack = []
        self._marks = []  # The stacks below the open marks.
        self._memo = {}

    def read(self):
        for _ in range(MAX_OPERATIONS):
            at = self.position
            code = self._take(1)
            if code == b'.':
                return self._pop()
            handler = _HANDLERS.get(code)
            if handler is None:
                raise CheckpointError(f'pickle operation {code!r} at byte {at} is refused: '
                                      'no checkpoint of tensors needs it')
            handler(self)
        raise CheckpointError(f'the pickle has more than {MAX_OPERATIONS} operations')

    # Methods that read the file.

    def _skip(self, count):
        if count > len(self.data) - self.position:
            raise CheckpointError(f'the pickle ends in the middle, at byte {len(self.data)}')
        self.position += count

    def _take(self, count):
        start = self.position
        self._skip(count)
        return bytes(self.data[start:self.position])

    def _number(self, form):
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self):
        start = self.position
        line, end, _ = bytes(self.data[start:start + MAX_LINE]).partition(b'\n')
        if not end:
            raise CheckpointError(f'the pickle has a line without an end, at byte {start}')
        self.position = start + len(line) + 1
        return line

    @staticmethod
    def _text(raw):
        try:
            return raw.decode('utf-8', 'surrogatepass')
        except UnicodeDecodeError as error:
            raise CheckpointError('the pickle has a string that is not UTF-8') from error

    # Methods that change the stack.

    def _push(self, value):
        self._stack.append(value)

    def _top(self):
        if not self._stack:
            raise CheckpointError(f'the pickle takes a value that is not there, at byte '
                                  f'{self.position}')
        return self._stack[-1]

    def _pop(self):
        value = self._top()
        self._stack.pop()
        return value

    def _pop_mark(self):
        """Removes the last mark and returns the values above it."""
        if not self._marks:
            raise CheckpointError(f'the pickle lacks a mark, at byte {self.position}')
        values = self._stack
        self._stack = self._marks.pop()
        return values

    # Handlers of operations. The operation's first byte has already been read.

    def _mark(self):
        self._marks.append(self._stack)
        self._stack = []

    def _string(self, form):
        size = self._number(form)
        if size > MAX_STRING:
            self._skip(size)
            self._push(DROPPED)
        else:
            self._push(self._text(self._take(size)))

    def _bytes(self, form):
        self._skip(self._number(form))
        self._push(DROPPED)

    def _text_value(self):
        self._line()
        self._push(DROPPED)

    def _long(self):
        self._push(int.from_bytes(self._take(self._number('<B')), 'little', signed=True))

    def _protocol(self):
        version = self._number('<B')
        if version > 5:
            raise CheckpointError(f'pickle protocol {version}: expected 5 or less')

    def _put(self, index):
        self._memo[index] = self._top()

    def _get(self, index):
        if index not in self._memo:
            raise CheckpointError(f'the pickle recalls value {index}, which it never kept')
        self._push(self._memo[index])

    def _text_index(self):
        line = self._line()
        if not line.isdigit() or len(line) > 10:
            raise CheckpointError('the pickle has an index that is not a number')
        return int(line)

    def _extend(self, values):
        target = self._top()
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Dropped):
            raise CheckpointError(f'the pickle appends to a {_kind(target)}')

    def _set_items(self, values):
        target = self._top()
        if len(values) % 2 != 0:
            raise CheckpointError('the pickle has a key without a value')
        if isinstance(target, dict):
            # Tensors have strings as names, so items with other keys are dropped.
            for key, value in zip(values[::2], values[1::2]):
                if isinstance(key, str):
                    target[key] = value
        elif not isinstance(target, Dropped):
            raise CheckpointError(f'the pickle sets items of a {_kind(target)}')

    def _set_item(self):
        value = self._pop()
        key = self._pop()
        self._set_items([key, value])

    def _dict(self):
        values = self._pop_mark()
        self._push({})
        self._set_items(values)

    def _tuple(self, count):
        values = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(values)))

    def _global(self):
        module = self._text(self._line())
        self._name(module, self._text(self._line()))

    def _stack_global(self):
        name = self._pop()
        module = self._pop()
        if not isinstance(module, str) or not isinstance(name, str):
            raise CheckpointError('the pickle names something by other than strings')
        self._name(module, name)

    def _name(self, module, name):
        # Protocols up to 2 use the module names of Python 2.
        module = {'__builtin__': 'builtins', 'copy_reg': 'copyreg'}.get(module, module)
        full = f'{module}.{name}'
        known = full in FUNCTIONS or full in STORAGE_TYPES
        self._push(Name(full) if known else Dropped(full))

    def _call(self, function, args):
        if isinstance(function, Dropped) and function.name:
            self.dropped[function.name] += 1
            return self._push(function)
        if not isinstance(function, Name) or not isinstance(args, tuple):
            raise CheckpointError(f'the pickle calls a {_kind(function)}')
        unknown = [arg for arg in args if isinstance(arg, Dropped) and arg.name]
        value = unknown[0] if unknown else FUNCTIONS.get(function.full, lambda _: None)(args)
        if value is None:
            raise CheckpointError(f'the pickle calls {function.full} with arguments that do not '
                                  'fit it')
        self._push(value)

    def _reduce(self):
        args = self._pop()
        self._call(self._pop(), args)

    def _new_object_ex(self):
        self._pop()  # Keyword arguments.
        self._reduce()

    def _instance(self):
        values = self._pop_mark()
        self._global()
        self._call(self._pop(), tuple(values))

    def _object(self):
        values = self._pop_mark()
        if not values:
            raise CheckpointError('the pickle makes an object of no class')
        self._call(values[0], tuple(values[1:]))

    def _build(self):
        state = self._pop()
        target = self._top()
        if isinstance(target, Namespace) and isinstance(state, dict):
            target.update(state)
            return
        # Only the attributes of a Namespace are kept. Attributes of ordinary dictionaries and of
        # tensors are ignored.
        if not isinstance(target, (dict, Tensor, Dropped)):
            raise CheckpointError(f'the pickle sets the state of a {_kind(target)}')

    def _persistent(self):
        self._push(self._load_storage(self._pop()))

    def _extension(self, form):
        raise CheckpointError(f'the pickle asks for extension code {self._number(form)}, which is '
                              'refused: nothing but tensors is read')


def _kind(value):
    return value.full if isinstance(value, Name) else type(value).__name__


_R = PickleReader
# The handler of each operation, by the operation's code. pickletools.py documents the codes.
_HANDLERS = {
    b'\x80': _R._protocol, b'\x95': lambda r: r._skip(8),
    b'N': lambda r: r._push(None), b'\x88': lambda r: r._push(True),
    b'\x89': lambda r: r._push(False),
    b'J': lambda r: r._push(r._number('<i')), b'K': lambda r: r._push(r._number('<B')),
    b'M': lambda r: r._push(r._number('<H')), b'G': lambda r: r._push(r._number('>d')),
    b'\x8a': _R._long, b'\x8b': lambda r: r._bytes('<I'),
    b'X': lambda r: r._string('<I'), b'\x8c': lambda r: r._string('<B'),
    b'\x8d': lambda r: r._string('<Q'), b'T': lambda r: r._string('<I'),
    b'U': lambda r: r._string('<B'),
    b'B': lambda r: r._bytes('<I'), b'C': lambda r: r._bytes('<B'),
    b'\x8e': lambda r: r._bytes('<Q'), b'\x96': lambda r: r._bytes('<Q'),
    b'I': _R._text_value, b'L': _R._text_value, b'F': _R._text_value,
    b'S': _R._text_value, b'V': _R._text_value,
    b']': lambda r: r._push([]), b')': lambda r: r._push(()), b'}': lambda r: r._push({}),
    b'\x8f': lambda r: r._push(DROPPED),
    b'(': _R._mark, b'0': lambda r: r._pop(), b'1': lambda r: r._pop_mark(),
    b'2': lambda r: r._push(r._top()),
    b'a': lambda r: r._extend([r._pop()]), b'e': lambda r: r._extend(r._pop_mark()),
    b's': _R._set_item, b'u': lambda r: r._set_items(r._pop_mark()),
    b'\x90': lambda r: r._pop_mark(),
    b'l': lambda r: r._push(list(r._pop_mark())), b't': lambda r: r._push(tuple(r._pop_mark())),
    b'd': _R._dict, b'\x85': lambda r: r._tuple(1), b'\x86': lambda r: r._tuple(2),
    b'\x87': lambda r: r._tuple(3),
    b'\x91': lambda r: (r._pop_mark(), r._push(DROPPED)),
    b'q': lambda r: r._put(r._number('<B')), b'r': lambda r: r._put(r._number('<I')),
    b'p': lambda r: r._put(r._text_index()), b'\x94': lambda r: r._put(len(r._memo)),
    b'h': lambda r: r._get(r._number('<B')), b'j': lambda r: r._get(r._number('<I')),
    b'g': lambda r: r._get(r._text_index()),
    b'c': _R._global, b'\x93': _R._stack_global, b'R': _R._reduce, b'\x81': _R._reduce,
    b'\x92': _R._new_object_ex, b'i': _R._instance, b'o': _R._object, b'b': _R._build,
    b'Q': _R._persistent,
    b'\x82': lambda r: r._extension('<B'), b'\x83': lambda r: r._extension('<H'),
    b'\x84': lambda r: r._extension('<i'),
}
