import io
import random
import struct
import unittest
import zipfile

import numpy as np

import checkpoints
from checkpoint.state_dict import read_state_dict
from checkpoint.tensor import CheckpointError
from checkpoint.torch_file import read_torch_file
from checkpoints import Raw, Storage, View, legacy_file, pickled, tensor, zip_file

FORMS = {'zip': zip_file, 'legacy': legacy_file}


def read(data):
    return read_torch_file(io.BytesIO(data), memoryview(data)).value


class ReadTest(unittest.TestCase):
    def each(self):
        for name, form in FORMS.items():
            with self.subTest(name):
                yield form

    def test_tensors_come_back_bit_by_bit(self):
        arrays = {'half': np.arange(6, dtype=np.float16).reshape(2, 3),
                  'single': np.uint32([0x7f800001, 1, 0x80000000]).view(np.float32),
                  'double': np.float64([np.pi]), 'scalar': np.int64(7),
                  'empty': np.empty((0, 4), np.float32)}
        for form in self.each():
            found = read(form({'state_dict': checkpoints.ordered(checkpoints.tensors(arrays))}))
            for name, array in arrays.items():
                got = found['state_dict'][name].array()
                self.assertEqual((got.dtype, got.shape, got.tobytes()),
                                 (array.dtype, array.shape, array.tobytes()))

    def test_bfloat16(self):
        values = np.uint16([0x3f80, 0x7fc1, 0x8000])
        for form in self.each():
            found = read(form({'a': tensor('0', values, 'BF16')}))['a']
            self.assertEqual(found.dtype, 'BF16')
            np.testing.assert_array_equal(found.array(), values)

    def test_views_of_one_storage(self):
        values = np.arange(12, dtype=np.float32)
        storage = Storage('0', 'F32', values.tobytes())
        views = {'tied': View(storage, (12,)), 'transposed': View(storage, (4, 3), (1, 4)),
                 'part': View(storage, (2, 2), (6, 2), 1)}
        for form in self.each():
            found = read(form(views))
            np.testing.assert_array_equal(found['tied'].array(), values)
            np.testing.assert_array_equal(found['transposed'].array(), values.reshape(3, 4).T)
            np.testing.assert_array_equal(found['part'].array(), [[1, 3], [7, 9]])
            self.assertIs(found['tied'].storage, found['part'].storage)

    def test_parameters_are_their_tensors(self):
        data = tensor('0', np.float32([1, 2]))
        hooks = checkpoints.ordered({})
        for form in self.each():
            for name, rest in (('_rebuild_parameter', ()), ('_rebuild_parameter_with_state', ({},))):
                parameter = checkpoints.Call(f'torch._utils.{name}', (data, True, hooks, *rest))
                np.testing.assert_array_equal(read(form({'a': parameter}))['a'].array(), [1, 2])

    def test_unknown_names_in_every_pickle_of_the_file(self):
        evil = Raw(pickled(checkpoints.Call('os.system', ('true',))))
        for form in self.each():
            self.assertEqual(read(form(evil)).name, 'os.system')
        with self.assertRaisesRegex(CheckpointError, r'asks for os\.system'):
            read(evil.code)
        with self.assertRaisesRegex(CheckpointError, 'byte order'):
            read(pickled(checkpoints.LEGACY_MAGIC) + pickled(1001) + evil.code)

    def test_a_storage_of_an_unknown_type(self):
        """If the file is a zip file, the tensors of this storage are dropped. A file in PyTorch's
        older format is refused because of this storage. The size of the storage is unknown there,
        so the next storage cannot be found."""
        values = {'a': View(Storage('0', 'Q8', bytes(4)), (4,)), 'b': tensor('1', np.zeros(2))}
        found = read(zip_file(values))
        self.assertEqual(found['a'].name, 'torch.QInt8Storage')
        np.testing.assert_array_equal(found['b'].array(), [0, 0])
        with self.assertRaisesRegex(CheckpointError, 'QInt8Storage, which is refused'):
            read(legacy_file(values))

    def test_a_file_cut_anywhere(self):
        value = {'a': tensor('0', np.zeros(100, np.float32))}
        for form in self.each():
            data = form(value)
            for tenth in range(10):
                with self.assertRaises(CheckpointError):
                    read(data[:len(data) * tenth // 10])['a'].array()
            with self.assertRaises(CheckpointError):
                read(data[:-1])['a'].array()

    def test_views_beyond_their_storage(self):
        storage = Storage('0', 'F32', bytes(16))
        for view in (View(storage, (5,)), View(storage, (4,), (2,)), View(storage, (4,), (1,), 1),
                     View(storage, (10**9, 10**9), (0, 0)), View(storage, (2, -1))):
            for form in self.each():
                with self.assertRaises(CheckpointError):
                    read(form({'a': view}))

    def test_a_storage_larger_than_the_file(self):
        for form in self.each():
            with self.assertRaisesRegex(CheckpointError, 'storage 0: 1000000000000 elements'):
                read(form({'a': View(Storage('0', 'F32', bytes(16), 10**12), (4,))}))

    def test_a_storage_of_two_types(self):
        for form in self.each():
            with self.assertRaisesRegex(CheckpointError, 'storage 0 has two types'):
                read(form({'a': View(Storage('0', 'F32', bytes(16)), (4,)),
                           'b': View(Storage('0', 'F64', bytes(16)), (2,))}))

    def test_a_storage_of_two_sizes(self):
        for form in self.each():
            with self.assertRaisesRegex(CheckpointError, 'storage 0 has two types or sizes'):
                read(form({'a': View(Storage('0', 'F32', bytes(16)), (4,)),
                           'b': View(Storage('0', 'F32', bytes(16), 3), (3,))}))

    def test_identifiers_that_are_no_storage(self):
        for form, more in ((zip_file, ()), (legacy_file, (None,))):
            kind = checkpoints.Name('torch.FloatStorage')
            for identifier in ('text', (), ('storage',), ('module', kind, 'file', 'source', *more),
                               ('storage', kind, 3, 'cpu', 4, *more),
                               ('storage', 'F32', '0', 'cpu', 4, *more),
                               ('storage', kind, '0', 'cpu', -4, *more),
                               ('storage', kind, '0', 'cpu', None, *more),
                               ('storage', checkpoints.Name('torch.Size'), '0', 'cpu', 4, *more)):
                with self.assertRaises(CheckpointError):
                    read(form(Raw(pickled(Raw(checkpoints.pickled(identifier)[2:-1] + b'Q')))))


class ZipTest(unittest.TestCase):
    def setUp(self):
        self.value = {'a': tensor('0', np.arange(1000, dtype=np.float32))}

    def assert_refused(self, data, message):
        with self.assertRaisesRegex(CheckpointError, message):
            read(data)['a'].array()

    def test_compressed_entries(self):
        self.assert_refused(zip_file(self.value, compression=zipfile.ZIP_DEFLATED), 'compressed')

    def test_an_encrypted_entry(self):
        data = bytearray(zip_file(self.value))
        flags = data.rindex(b'PK\x01\x02', 0, data.index(b'model/data/0', data.index(
            b'PK\x01\x02'))) + 8
        data[flags] |= 1
        self.assert_refused(bytes(data), 'data/0: compressed or encrypted')

    def test_a_flipped_bit(self):
        data = bytearray(zip_file(self.value))
        data[data.index(np.arange(1000, dtype=np.float32).tobytes()) + 100] ^= 4
        self.assert_refused(bytes(data), 'data/0: damaged, its checksum differs')

    def test_big_endian(self):
        self.assert_refused(zip_file(self.value, byteorder=b'big'), 'byte order')

    def test_other_archives(self):
        file = io.BytesIO()
        with zipfile.ZipFile(file, 'w') as archive:
            archive.writestr('readme.txt', 'hello')
        self.assert_refused(file.getvalue(), 'not one that torch.save wrote')

    def test_entries_that_share_their_bytes(self):
        """The archive's directory has many entries that refer to the same large block."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, 'w') as archive:
            archive.writestr('model/data.pkl', bytes(5000))
            info = archive.infolist()[0]
            for i in range(100):
                copy = zipfile.ZipInfo(f'model/data/{i}')
                copy.file_size = copy.compress_size = info.file_size
                copy.header_offset, copy.CRC = info.header_offset, info.CRC
                archive.filelist.append(copy)
        self.assert_refused(file.getvalue(), 'overlap')

    def test_an_entry_whose_place_is_elsewhere(self):
        data = bytearray(zip_file(self.value))
        directory = data.index(b'PK\x01\x02')
        for offset in (7, len(data) - 4, 2**31):
            data[directory + 42:directory + 46] = struct.pack('<I', offset)
            self.assert_refused(bytes(data), 'zip file')


class LegacyTest(unittest.TestCase):
    def test_other_beginnings(self):
        for data, message in (
                (pickled(17), 'not one that torch.save wrote'),
                (pickled(checkpoints.LEGACY_MAGIC) + pickled(1002), 'protocol'),
                (pickled(checkpoints.LEGACY_MAGIC) + pickled(1001) +
                 pickled({'little_endian': False}), 'byte order'),
                (bytes(257) + b'ustar' + bytes(250), 'a tar file'),
                (b'hello, world', 'not a file of PyTorch or safetensors')):
            with self.assertRaisesRegex(CheckpointError, message):
                read(data)

    def test_lists_of_storages_that_do_not_fit(self):
        data = legacy_file({'a': tensor('0', np.zeros(4, np.float32))})
        keys = pickled(['0'])
        for other in (pickled(['1']), pickled([]), pickled(['0', '0']), pickled([3]), pickled('0')):
            with self.assertRaises(CheckpointError):
                read(data.replace(keys, other))
        with self.assertRaisesRegex(CheckpointError, 'its size is not that of the pickle'):
            read(data.replace(keys + struct.pack('<Q', 4), keys + struct.pack('<Q', 5)))


class MutationTest(unittest.TestCase):
    def test_any_damage_is_an_error_or_none(self):
        """For any changed bytes, reading must succeed or raise CheckpointError."""
        value = checkpoints.mmengine(checkpoints.tensors(
            {'a': np.arange(20, dtype=np.float32).reshape(4, 5), 'b': np.float16([1, 2])}), ['c'])
        chance = random.Random(5)
        refused = 0
        for data in (zip_file(value), legacy_file(value)):
            for _ in range(2000):
                changed = bytearray(data)
                for _ in range(chance.randint(1, 4)):
                    changed[chance.randrange(len(data))] = chance.choice(
                        (0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
                try:
                    for found in read_state_dict(read(bytes(changed))).tensors.values():
                        found.array()
                except CheckpointError:
                    refused += 1
        self.assertGreater(refused, 1000)
