import argparse
import collections
import copyreg
import pathlib
import pickle
import struct
import tempfile
import unittest
from unittest import mock

import checkpoints
from checkpoint import pickle_reader
from checkpoint.pickle_reader import PickleReader
from checkpoint.tensor import CheckpointError


def read(code):
    return PickleReader(memoryview(code), 0, lambda identifier: None).read()


class Makes:
    """An object whose pickle is a call of `function`."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


class NamesTest(unittest.TestCase):
    def test_the_list_of_names_is_exactly_this(self):
        # Every further name would be a risk, because the process reads files of strangers.
        self.assertEqual(set(pickle_reader.FUNCTIONS), {
            'collections.OrderedDict', 'argparse.Namespace', 'torch.Size',
            'torch._utils._rebuild_tensor',
            'torch._utils._rebuild_tensor_v2', 'torch._utils._rebuild_parameter',
            'torch._utils._rebuild_parameter_with_state'})
        self.assertEqual(pickle_reader.STORAGE_TYPES, {
            'torch.DoubleStorage': 'F64', 'torch.FloatStorage': 'F32', 'torch.HalfStorage': 'F16',
            'torch.BFloat16Storage': 'BF16', 'torch.LongStorage': 'I64',
            'torch.IntStorage': 'I32', 'torch.ShortStorage': 'I16', 'torch.CharStorage': 'I8',
            'torch.ByteStorage': 'U8', 'torch.BoolStorage': 'BOOL',
            'torch.ComplexFloatStorage': 'C64', 'torch.ComplexDoubleStorage': 'C128',
            'torch.storage.UntypedStorage': 'U8'})


class UnknownTest(unittest.TestCase):
    """If any code in these pickles ran, it would create a file, and the test would fail."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.mark = pathlib.Path(folder.name) / 'mark'
        self.addCleanup(lambda: self.assertFalse(self.mark.exists()))
        self.string = b'X' + struct.pack('<I', len(str(self.mark))) + str(self.mark).encode()

    def assert_refused(self, code, message):
        with self.assertRaisesRegex(CheckpointError, message):
            read(code)

    def assert_dropped(self, code, name):
        """Expects that reading drops the pickle's value and keeps its name."""
        value = read(code)
        self.assertIsInstance(value, pickle_reader.Dropped)
        self.assertEqual(value.name, name)

    def test_what_pythons_own_pickler_writes_of_a_call(self):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.subTest(protocol=protocol):
                code = pickle.dumps(Makes(pathlib.os.mkdir, str(self.mark)), protocol)
                self.assert_dropped(code, 'posix.mkdir')
                code = pickle.dumps(Makes(eval, f'open({str(self.mark)!r}, "w")'), protocol)
                self.assert_dropped(code, 'builtins.eval')

    def test_each_operation_that_names_something(self):
        calls = {'GLOBAL REDUCE': b'cposix\nmkdir\n' + self.string + b'\x85R.',
                 'INST': b'(' + self.string + b'iposix\nmkdir\n.',
                 'INST of text': b"(S'" + str(self.mark).encode() + b"'\niposix\nmkdir\n.",
                 'OBJ': b'(cposix\nmkdir\n' + self.string + b'o.',
                 'NEWOBJ': b'cposix\nmkdir\n' + self.string + b'\x85\x81.',
                 'NEWOBJ_EX': b'cposix\nmkdir\n' + self.string + b'\x85}\x92.',
                 'STACK_GLOBAL': b'\x8c\x05posix\x8c\x05mkdir\x93' + self.string + b'\x85R.',
                 'BUILD': b'cposix\nmkdir\n}b.'}
        for name, code in calls.items():
            with self.subTest(name):
                self.assert_dropped(code, 'posix.mkdir')

    def test_a_name_in_another_module(self):
        for name in ('torch.utils._rebuild_tensor_v2', 'evil.torch._utils._rebuild_tensor_v2',
                     'torch._utils._rebuild_tensor_v2.__globals__', 'collections.namedtuple',
                     'OrderedDict.collections', 'numpy.load', 'argparse.FileType',
                     'mmengine.logging.history_buffer.np', 'torch.load', 'torch.hub.load',
                     'builtins.getattr'):
            with self.subTest(name):
                self.assert_dropped(checkpoints.pickled(checkpoints.Name(name)), name)
                self.assert_dropped(checkpoints.pickled(checkpoints.Call(name, ('x',))), name)

    def test_what_is_made_of_it_is_dropped_too(self):
        evil = checkpoints.Call('os.system', ('true',))
        for name in ('torch.Size', 'torch._utils._rebuild_parameter', 'collections.OrderedDict'):
            self.assert_dropped(checkpoints.pickled(checkpoints.Call(name, (evil,))), 'os.system')
        view = checkpoints.Call('torch._utils._rebuild_tensor_v2', (evil, 0, (1,), (1,)))
        self.assert_dropped(checkpoints.pickled(view), 'os.system')
        more = checkpoints.Call('collections.Counter', ({1: 2},), {'x': 1}, {'y': 2})
        self.assert_dropped(checkpoints.pickled(more), 'collections.Counter')
        self.assertEqual(read(checkpoints.pickled(checkpoints.Call(
            'collections.OrderedDict', (), state=evil, items={'a': 1}))), {'a': 1})

    def test_the_attributes_of_a_namespace(self):
        arguments = argparse.Namespace(model='x', lr=0.5, steps=collections.Counter('a'))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            found = read(pickle.dumps(arguments, protocol))
            self.assertEqual((found['model'], found['lr']), ('x', 0.5))
            self.assertEqual(found['steps'].name, 'collections.Counter')

    def test_extension_codes(self):
        copyreg.add_extension('posix', 'mkdir', 77)
        self.addCleanup(copyreg.remove_extension, 'posix', 'mkdir', 77)
        for code in (b'\x82\x4d', b'\x83\x4d\x00', b'\x84\x4d\x00\x00\x00'):
            self.assert_refused(code + self.string + b'\x85R.', 'extension code 77, .* refused')

    def test_calls_and_states_of_what_is_no_function(self):
        call = checkpoints.Call
        for value, message in (
                (call('torch.FloatStorage', (4,)), r'calls torch\.FloatStorage with arguments'),
                (call('collections.OrderedDict', ([1],)), 'calls collections.OrderedDict with'),
                (call('torch.Size', (3,)), r'calls torch\.Size with'),
                (call('torch._utils._rebuild_tensor_v2', (1, 2, 3, 4)), 'rebuild_tensor_v2 with'),
                (call('torch._utils._rebuild_parameter', (1,)), '_rebuild_parameter with'),
                (call('argparse.Namespace', (1,)), 'Namespace with'),
                (checkpoints.Raw(b'C\x01a)R'), 'calls a Dropped'),
                (checkpoints.Raw(b'K\x01)R'), 'calls a int'),
                (checkpoints.Raw(b'ctorch._utils\n_rebuild_parameter\n}b'), 'sets the state of a '
                 r'torch\._utils\._rebuild_parameter'),
                (checkpoints.Raw(b']}b'), 'sets the state of a list')):
            self.assert_refused(checkpoints.pickled(value), message)

    def test_operations_that_no_tensor_needs(self):
        for code in (b'Pkey\n.', b'\x97.', b'\x98.', b'\xff.', b'\x00'):
            self.assert_refused(code, 'pickle operation .* at byte 0 is refused')
        self.assertIsNone(read(b'\x80\x05N.'))
        self.assert_refused(b'\x80\x06N.', 'protocol 6')


class DamageTest(unittest.TestCase):
    def assert_refused(self, code, message):
        with self.assertRaisesRegex(CheckpointError, message):
            read(code)

    def test_a_pickle_that_ends_early(self):
        code = checkpoints.pickled({'a': [1, 2.5, ('b', None)], 'c': checkpoints.ordered({})})
        for size in range(len(code)):
            self.assert_refused(code[:size], 'the pickle')

    def test_sizes_beyond_the_file(self):
        for code in (b'X\xff\xff\xff\xff', b'\x8d' + b'\xff' * 8, b'\x8e' + b'\xff' * 8,
                     b'T\xff\xff\xff\xff', b'\x8b\xff\xff\xff\x7f'):
            self.assert_refused(code + b'abc', 'ends in the middle')

    def test_values_that_are_not_there(self):
        for code in (b'.', b'R.', b'a.', b's.', b'(a.', b'h\x07.', b'j\xff\xff\xff\xff.',
                     b't.', b'(o.', b'}(K\x01u.', b'](K\x01s.', b'Q'):
            with self.assertRaises(CheckpointError):
                read(code)

    def test_a_memo_of_far_apart_numbers_takes_no_room(self):
        self.assertEqual(read(b'K\x05r\xff\xff\xff\xff0j\xff\xff\xff\xff.'), 5)
        self.assertEqual(read(b'K\x05p4294967295\n0g4294967295\n.'), 5)
        for index in (b'12345678901', b'-1', b'', b'x'):
            self.assert_refused(b'K\x05p' + index + b'\n.', 'index that is not a number')

    def test_deep_nesting(self):
        depth = 300_000
        value = read(b']' * depth + b'a' * (depth - 1) + b'.')
        self.assertIsInstance(value[0][0], list)
        # The deeply nested tuple is a key. Items are dropped if their key is not a string.
        self.assertEqual(read(b'}' + b')' + b'\x85' * depth + b'K\x01s.'), {})

    def test_endless_operations(self):
        with mock.patch.object(pickle_reader, 'MAX_OPERATIONS', 1000):
            self.assert_refused(b'N0' * 600 + b'N.', 'more than 1000 operations')

    def test_text_that_is_not_utf8(self):
        self.assert_refused(b'X\x01\x00\x00\x00\xff.', 'UTF-8')
        self.assert_refused(b'cab\xff\ncd\n.', 'UTF-8')
        self.assert_refused(b'c' + b'a' * 100_000 + b'\nb\n.', 'line without an end')


class ReadTest(unittest.TestCase):
    def test_values_come_back_from_every_binary_protocol(self):
        value = {'a': [1, -2, 300, 70000, -2**40, 2.5], 'b': (None, True, False, ()), 'ö': {'x': 1}}
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            self.assertEqual(read(pickle.dumps(value, protocol)), value)

    def test_whole_numbers_of_every_size(self):
        for code, value in ((b'K\xff', 255), (b'M\xff\xff', 65535), (b'J\xff\xff\xff\xff', -1),
                            (b'\x8a\x02\x00\x80', -2**15), (b'G\x3f\xf8' + bytes(6), 1.5)):
            self.assertEqual(read(code + b'.'), value)

    def test_bytes_of_every_form_are_dropped(self):
        for code in (b'\x8b\x03\0\0\0', b'B\x03\0\0\0', b'C\x03', b'\x8e\x03' + bytes(7),
                     b'\x96\x03' + bytes(7)):
            self.assertIs(read(code + b'abc.'), pickle_reader.DROPPED)
            self.assertEqual(read(code + b'abc0K\x07.'), 7)

    def test_repeated_values_are_one(self):
        shared = [1]
        value = read(pickle.dumps({'a': shared, 'b': shared}, 2))
        self.assertIs(value['a'], value['b'])

    def test_only_string_keys_stay(self):
        self.assertEqual(read(pickle.dumps({'a': 1, 2: 3, (4, 5): 6}, 2)), {'a': 1})

    def test_long_strings_are_dropped(self):
        value = read(pickle.dumps({'cfg': 'x' * 300_000, 'raw': b'y', 'set': {1, 2}}, 4))
        self.assertEqual(value, dict.fromkeys(('cfg', 'raw', 'set'), pickle_reader.DROPPED))
        longest = 'x' * 262144
        self.assertEqual(read(pickle.dumps(longest, 4)), longest)
        self.assertIs(read(pickle.dumps(longest + 'x', 4)), pickle_reader.DROPPED)

    def test_what_is_dropped_is_counted_by_name(self):
        code = checkpoints.pickled(checkpoints.mmengine({}, ['a']))
        reader = PickleReader(memoryview(code), 0, lambda identifier: mock.DEFAULT)
        with mock.patch.dict(pickle_reader.FUNCTIONS,
                             {'torch._utils._rebuild_tensor_v2': lambda args: 'tensor'}):
            value = reader.read()
        self.assertEqual(value['meta']['dataset_meta']['classes'], ('a',))
        self.assertEqual(reader.dropped[checkpoints.HISTORY_BUFFER], 1)
        self.assertEqual(reader.dropped['numpy.core.multiarray._reconstruct'], 1)
        self.assertEqual(reader.dropped['numpy.dtype'], 2)
        self.assertEqual(value['message_hub']['log_scalars']['train/loss'].name,
                         checkpoints.HISTORY_BUFFER)
