import hashlib
import io
import struct
import unittest

import numpy as np

from checkpoint.safetensors_file import read_safetensors, stored_type, write_safetensors
from checkpoint.tensor import CheckpointError, Storage, checked_tensor
from checkpoints import safetensors_file


class SafetensorsTest(unittest.TestCase):
    def setUp(self):
        self.arrays = {'b.weight': np.arange(6, dtype=np.float32).reshape(2, 3),
                       'a': np.float16([1, np.nan]), 'n': np.int64(3),
                       'z': np.uint16([0x3f80]), 'empty': np.empty((3, 0), np.float64)}

    def assert_refused(self, data, message):
        with self.assertRaisesRegex(CheckpointError, message):
            read_safetensors(memoryview(data))

    def test_reads_what_is_there(self):
        found = read_safetensors(memoryview(safetensors_file(self.arrays)))
        self.assertEqual(found.keys(), self.arrays.keys())
        for name, array in self.arrays.items():
            self.assertEqual(found[name].array().tobytes(), array.tobytes())
            self.assertEqual(found[name].shape, array.shape)
        self.assertEqual(found['z'].dtype, 'BF16')

    def test_writes_what_it_reads(self):
        del self.arrays['n']
        found = read_safetensors(memoryview(safetensors_file(self.arrays)))
        file = io.BytesIO()
        types = {name: stored_type(tensor, None) for name, tensor in found.items()}
        size, digest = write_safetensors(file, found, types)
        self.assertEqual(size, len(file.getvalue()))
        self.assertEqual(digest, hashlib.sha256(file.getvalue()).hexdigest())
        again = read_safetensors(memoryview(file.getvalue()))
        # F64 was converted, because the server does not read it.
        self.assertEqual(again['empty'].dtype, 'F32')
        for name in ('a', 'b.weight', 'z'):
            self.assertEqual(again[name].dtype, found[name].dtype)
            self.assertEqual(again[name].array().tobytes(), self.arrays[name].tobytes())

    def test_data_begins_at_a_multiple_of_eight(self):
        values = np.float32([1])
        one = checked_tensor(Storage('F32', 1, values.tobytes), 0, (1,))
        for length in range(1, 9):
            file = io.BytesIO()
            write_safetensors(file, {'x' * length: one}, {'x' * length: 'F32'})
            self.assertEqual(struct.unpack('<Q', file.getvalue()[:8])[0] % 8, 0)
            self.assertEqual(file.getvalue()[-4:], values.tobytes())

    def test_a_type_too_narrow_is_not_used(self):
        def tensor(values):
            array = np.float32(values)
            return checked_tensor(Storage('F32', array.size, array.tobytes), 0, array.shape)
        self.assertEqual(stored_type(tensor([1, 2]), 'F16'), 'F16')
        self.assertEqual(stored_type(tensor([1, 1e6]), 'F16'), 'F32')
        self.assertEqual(stored_type(tensor([1, 1e6]), 'BF16'), 'BF16')
        self.assertEqual(stored_type(tensor([1, np.inf]), 'F16'), 'F16')

    def test_a_file_cut_anywhere(self):
        data = safetensors_file(self.arrays)
        for size in range(8, len(data)):
            with self.assertRaises(CheckpointError):
                read_safetensors(memoryview(data[:size]))

    def test_headers_that_lie(self):
        def spoil(**fields):
            return safetensors_file(self.arrays, lambda header: {
                **header, 'a': {**header['a'], **fields}})
        self.assert_refused(spoil(shape=[3]), 'tensor a: .* beyond its storage')
        self.assert_refused(spoil(shape=[1]), 'tensor a: 4 bytes, expected 1 elements of F16')
        self.assert_refused(spoil(shape=[-2]), 'tensor a: .* whole numbers')
        self.assert_refused(spoil(shape='ab'), 'tensor a: .* whole numbers')
        self.assert_refused(spoil(shape=[2**40, 2**40]), 'tensor a: .* beyond its storage')
        self.assert_refused(spoil(dtype='F17'), 'tensor a: unknown dtype F17')
        self.assert_refused(spoil(dtype=['F16']), 'tensor a: unknown dtype')
        self.assert_refused(spoil(data_offsets=[24, 10**9]), 'tensor a: data_offsets beyond')
        self.assert_refused(spoil(data_offsets=[28, 24]), 'tensor a: data_offsets')
        self.assert_refused(spoil(data_offsets=[0, 4]), 'overlap or leave a gap')
        self.assert_refused(spoil(more=1), 'tensor a: expected dtype, shape and data_offsets')

    def test_places_that_do_not_fit(self):
        def places(*offsets, shape=(1,), dtype='U8'):
            return safetensors_file({}, lambda _: {
                str(i): {'dtype': dtype, 'shape': shape, 'data_offsets': list(place)}
                for i, place in enumerate(offsets)}) + b'12'
        self.assertEqual(len(read_safetensors(memoryview(places((0, 1), (1, 2))))), 2)
        self.assert_refused(places((0, 1), (0, 1)), 'overlap or leave a gap at byte 1')
        self.assert_refused(places((0, 2), (1, 2)), 'tensor 0: 2 bytes, expected 1')
        self.assert_refused(places((1, 2)), 'overlap or leave a gap at byte 0')
        self.assert_refused(places((0, 1)), '1 bytes behind')
        whole = safetensors_file({}, lambda _: {
            'a': {'dtype': 'U8', 'shape': [2], 'data_offsets': [0, 2]},
            'b': {'dtype': 'U8', 'shape': [1], 'data_offsets': [1, 2]}}) + b'12'
        self.assert_refused(whole, 'overlap or leave a gap at byte 2')
        self.assert_refused(places((0, 2), shape=(0,), dtype='F32'),
                            'tensor 0: 2 bytes, expected 0 elements of F32')

    def test_headers_that_are_none(self):
        for text, message in ((b'{"a":', 'JSON'), (b'{"a":1,"a":1}', 'twice'), (b'{"a":3}', 'a: '),
                              (b'{' + b'"a":[' * 100_000, 'JSON'), (b'{"\xff":1}', 'JSON')):
            self.assert_refused(struct.pack('<Q', len(text)) + text, message)
        self.assert_refused(struct.pack('<Q', 2**63) + b'{}', 'reaches beyond the file')
        self.assert_refused(safetensors_file(self.arrays) + b'x', '1 bytes behind')
