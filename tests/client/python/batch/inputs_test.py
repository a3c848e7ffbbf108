"""Tests the order, ids and bytes of pictures from all kinds of inputs."""

import base64
import io
import json
import os
import tarfile
import unittest

import pyarrow as pa
import pyarrow.parquet as pq
from batch_testing import folder
from sfmamba.batch import inputs
from sfmamba.batch.asking import load
from sfmamba.batch.servers import JobError


def found(path, **columns):
    return inputs.find(str(path), columns.get('id', 'id'), columns.get('image', 'image'))


def read(source, start=0):
    """Returns the ids and bytes of the pictures from number `start` on."""
    return [(name, load(one)) for name, one in source.pictures(start)]


class InputsTest(unittest.TestCase):
    def setUp(self):
        self.folder = folder(self)

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def check(self, source, expected):
        self.assertEqual(read(source), expected)
        self.assertEqual(list(source.ids()), [name for name, _ in expected])
        for start in range(len(expected) + 1):
            self.assertEqual(read(source, start), expected[start:], start)

    def test_a_folder(self):
        for name in ('b.JPG', 'a.png', 'sub/c.webp', 'sub/deep/d.jpeg', 'z.jpg', 'sub/.e.jpg',
                     '.hidden/f.jpg', 'notes.txt'):
            self.write(name, name.encode())
        expected = ['a.png', 'b.JPG', 'z.jpg', 'sub/c.webp', 'sub/deep/d.jpeg']
        self.check(found(self.folder), [(name, name.encode()) for name in expected])

    def test_a_name_that_is_no_utf_8(self):
        with open(os.fsencode(self.folder) + b'/\xff.jpg', 'wb') as file:
            file.write(b'picture')
        self.check(found(self.folder), [('\\xff.jpg', b'picture')])

    def test_a_text_list(self):
        paths = [str(self.write(name, name.encode())) for name in ('b.jpg', 'a.jpg')]
        file = self.write('list.txt', '\n\n'.join(paths).encode())
        self.check(found(file), [(paths[0], b'b.jpg'), (paths[1], b'a.jpg')])

    def test_json_lines(self):
        path = str(self.write('a.jpg', b'one'))
        rows = [{'key': 7, 'file': path},
                {'key': 'b', 'file': {'bytes': base64.b64encode(b'two').decode()}}]
        file = self.write('list.jsonl', '\n'.join(map(json.dumps, rows)).encode())
        self.check(found(file, id='key', image='file'), [('7', b'one'), ('b', b'two')])
        with self.assertRaisesRegex(JobError, 'list.jsonl:1: .*expected an object with id and image'):
            list(found(file).ids())

    def test_parquet_with_bytes_in_several_row_groups_and_files(self):
        expected = [(f'id {number}', b'%d' % number) for number in range(20)]
        for name, part in (('1.parquet', expected[:13]), ('2.parquet', expected[13:])):
            pq.write_table(pa.table({'id': [name for name, _ in part],
                                     'image': [data for _, data in part]}),
                           self.folder / name, row_group_size=5)
        self.check(found(f'{self.folder}/*.parquet'), expected)

    def test_parquet_with_paths_and_with_structures(self):
        path = str(self.write('a.jpg', b'one'))
        pq.write_table(pa.table({
            'key': [1, 2], 'path': [path, path],
            'image': [{'bytes': b'two', 'path': None}, {'bytes': None, 'path': path}]}),
            self.folder / 'list.parquet')
        self.check(found(self.folder / 'list.parquet', id='key', image='path'),
                   [('1', b'one'), ('2', b'one')])
        self.check(found(self.folder / 'list.parquet', id='key'), [('1', b'two'), ('2', b'one')])
        with self.assertRaisesRegex(JobError, 'has the columns key, path, image, and no id'):
            found(self.folder / 'list.parquet')

    def test_webdataset_shards(self):
        for shard in range(2):
            with tarfile.open(self.folder / f'{shard}.tar', 'w') as tar:
                for name in (f'{shard}/a.b.jpg', f'{shard}/a.b.json', f'{shard}/c.png'):
                    member = tarfile.TarInfo(name)
                    member.size = len(name)
                    tar.addfile(member, io.BytesIO(name.encode()))
        self.check(found(f'{self.folder}/*.tar'),
                   [('0/a', b'0/a.b.jpg'), ('0/c', b'0/c.png'), ('1/a', b'1/a.b.jpg'),
                    ('1/c', b'1/c.png')])

    def test_a_filesystem_of_fsspec(self):
        try:
            import fsspec
        except ModuleNotFoundError:
            self.skipTest('fsspec is not installed')
        memory = fsspec.filesystem('memory')
        self.addCleanup(memory.rm, '/photos', recursive=True)
        for name in ('b.jpg', 'a.jpg', 'sub/c.png', '.no.jpg'):
            memory.pipe(f'/photos/{name}', name.encode())
        self.check(found('memory://photos'),
                   [('a.jpg', b'a.jpg'), ('b.jpg', b'b.jpg'), ('sub/c.png', b'sub/c.png')])
        memory.pipe('/photos/list.txt', b'memory://photos/b.jpg\n')
        self.check(found('memory://photos/list.txt'), [('memory://photos/b.jpg', b'b.jpg')])

    def test_what_cannot_be_an_input(self):
        self.write('a.txt', b'')
        self.write('b.tar', b'')
        with self.assertRaisesRegex(JobError, 'neither a folder nor a file'):
            found(self.folder / 'none')
        with self.assertRaisesRegex(JobError, 'files of the kinds .tar, .txt'):
            found(f'{self.folder}/*')

    def test_an_id_that_stands_for_two_pictures_is_refused(self):
        file = self.write('list.txt', b'a.jpg\nb.jpg\nc.jpg\nb.jpg\n')
        with self.assertRaisesRegex(JobError, '1 stand for several, such as b.jpg'):
            inputs.listing(found(file))

    def test_nothing_at_all_is_refused(self):
        with self.assertRaisesRegex(JobError, 'got no picture'):
            inputs.listing(found(self.folder))

    def test_a_list_is_known_again(self):
        before = inputs.listing(found(self.write('list.txt', b'a.jpg\nb.jpg\n')))
        self.assertEqual(before.digest,
                         inputs.listing(found(self.write('list.txt', b'a.jpg\nb.jpg'))).digest)
        self.assertNotEqual(before.digest,
                            inputs.listing(found(self.write('list.txt', b'b.jpg\na.jpg\n'))).digest)
        before.check(1, 'b.jpg')
        with self.assertRaisesRegex(JobError, 'the inputs have changed.*picture 1 is now a.jpg'):
            before.check(1, 'a.jpg')
        with self.assertRaisesRegex(JobError, 'the inputs have changed.*picture 1 is missing'):
            before.check(1, '')


if __name__ == '__main__':
    unittest.main()
