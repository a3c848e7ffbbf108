"""Tests the SBOM, which is the list of the image's files and packages. deploy/sbom.py makes it for
a folder that deploy/stage.sh has made."""

import copy
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import jsonschema
import yaml

SCHEMA = yaml.safe_load(pathlib.Path('tests/deploy/spdx.yaml').read_text())
SBOM = 'usr/share/sfmamba/sbom.spdx.json'


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=240,
                          env={**os.environ, **environment})


def validate(document):
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


class SbomTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name, 'stage')
        staged = run('deploy/stage.sh', str(cls.folder), 'server/sfmamba_server',
                     'client/sfmamba')
        assert staged.returncode == 0, staged.stderr
        cls.models = pathlib.Path(cls.temporary.name, 'models/tiny/1')
        cls.models.mkdir(parents=True)
        (cls.models / 'config.textproto').write_text('num_classes: 5\n')
        cls.made = cls.make()
        assert cls.made.returncode == 0, cls.made.stderr
        cls.document = json.loads((cls.folder / SBOM).read_text())

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def make(cls, **environment):
        return run('deploy/sbom.py', str(cls.folder), f'--add=models={cls.models.parents[1]}',
                   '--version=1.2.3', '--revision=abc', **environment)

    def files(self):
        """Returns the SBOM's entries of files, by the path in the image."""
        return {file['fileName'].removeprefix('./'): file for file in self.document['files']}

    def packages(self):
        return {package['name']: package for package in self.document['packages']}

    def test_it_is_spdx(self):
        validate(self.document)
        for path, value in [(('files', 0, 'checksums', 0, 'checksumValue'), 'abc'),
                            (('packages', 1, 'filesAnalyzed'), True),
                            (('relationships', 0, 'relatedSpdxElement'), 'the image'),
                            (('creationInfo', 'created'), 'today')]:
            with self.subTest(path=path), self.assertRaises(jsonschema.ValidationError):
                broken = copy.deepcopy(self.document)
                place = broken
                for part in path[:-1]:
                    place = place[part]
                place[path[-1]] = value
                validate(broken)

    def test_ids_are_unique_and_relations_join_what_is_there(self):
        ids = [entry['SPDXID'] for entry in
               [self.document, *self.document['packages'], *self.document['files']]]
        self.assertEqual(len(ids), len(set(ids)))
        joined = {}
        for relation in self.document['relationships']:
            self.assertIn(relation['spdxElementId'], ids)
            self.assertIn(relation['relatedSpdxElement'], ids)
            joined.setdefault(relation['relationshipType'], set()).add(
                relation['relatedSpdxElement'])
        [image] = joined['DESCRIBES']
        self.assertEqual(image, self.packages()['sfmamba-server']['SPDXID'])
        self.assertEqual(joined['CONTAINS'], {file['SPDXID'] for file in self.document['files']})
        others = {package['SPDXID'] for package in self.document['packages']} - {image}
        self.assertEqual(joined['DEPENDS_ON'], others)
        self.assertEqual(joined['OTHER'], others)  # A file of each package is in the image.

    def test_every_file_is_listed_with_its_checksums(self):
        staged = {str(path.relative_to(self.folder)): path
                  for path in self.folder.rglob('*') if path.is_file()}
        del staged[SBOM]
        staged['models/tiny/1/config.textproto'] = self.models / 'config.textproto'
        listed = self.files()
        self.assertEqual(set(listed), set(staged))
        for place in ('usr/bin/sfmamba', 'models/tiny/1/config.textproto'):
            data = staged[place].read_bytes()
            self.assertEqual(listed[place]['checksums'], [
                {'algorithm': 'SHA1', 'checksumValue': hashlib.sha1(data).hexdigest()},
                {'algorithm': 'SHA256', 'checksumValue': hashlib.sha256(data).hexdigest()}])
        sums = sorted(file['checksums'][0]['checksumValue'] for file in listed.values())
        self.assertEqual(self.packages()['sfmamba-server']['packageVerificationCode'],
                         {'packageVerificationCodeValue':
                              hashlib.sha1(''.join(sums).encode()).hexdigest(),
                          'packageVerificationCodeExcludedFiles': [f'./{SBOM}']})

    def test_packages_are_those_that_the_files_come_from(self):
        packages = self.packages()
        self.assertEqual(packages['sfmamba-server']['versionInfo'], '1.2.3')
        self.assertEqual(packages['sfmamba-server']['sourceInfo'], 'revision abc')
        [grpc] = packages['libgrpc29']['externalRefs']
        self.assertRegex(grpc['referenceLocator'], r'^pkg:deb/debian/libgrpc29@1\.51\.1-')
        self.assertIn('pkg:deb/debian/libstdc%2B%2B6@',
                      packages['libstdc++6']['externalRefs'][0]['referenceLocator'])
        self.assertEqual(packages['torch']['versionInfo'], '2.11.0')
        self.assertEqual(packages['torch']['checksums'][0]['algorithm'], 'SHA256')
        for key in ('Debian', 'PyPI'):
            self.assertTrue([package for package in packages.values()
                             if package['SPDXID'].startswith(f'SPDXRef-{key}-')])
        # Every library belongs to a package, and no other file does.
        self.assertEqual(self.made.stderr, '')
        of_a_package = {relation['spdxElementId'] for relation in self.document['relationships']
                        if relation['relationshipType'] == 'OTHER'}
        for place, file in self.files().items():
            self.assertEqual(file['SPDXID'] in of_a_package,
                             place.startswith(('usr/lib/', 'lib64/')), place)

    def test_the_same_files_give_the_same_document(self):
        text = []
        for _ in range(2):
            done = self.make(SOURCE_DATE_EPOCH='1700000000')
            self.assertEqual(done.returncode, 0, done.stderr)
            text.append((self.folder / SBOM).read_text())
        self.assertEqual(text[0], text[1])
        self.assertIn('"created": "2023-11-14T22:13:20Z"', text[0])

    def test_what_is_wrong_is_said(self):
        with tempfile.TemporaryDirectory() as empty:
            done = run('deploy/sbom.py', empty)
            self.assertEqual(done.returncode, 1)
            self.assertIn('usr/share/sfmamba/contents.tsv is not there', done.stderr)
            share = pathlib.Path(empty, 'usr/share/sfmamba')
            share.mkdir(parents=True)
            shutil.copy(self.folder / 'usr/share/sfmamba/contents.tsv', share)
            for given in ('models', 'models=', 'models=/nowhere'):
                done = run('deploy/sbom.py', empty, f'--add={given}')
                self.assertEqual(done.returncode, 1, given)
                self.assertIn(f'--add={given}: expected PLACE=FOLDER', done.stderr)
            # sbom.py must list a library of an unknown package and print a warning.
            libraries = pathlib.Path(empty, 'usr/lib/x86_64-linux-gnu')
            libraries.mkdir(parents=True)
            (libraries / 'libstrange.so').write_text('')
            done = run('deploy/sbom.py', empty)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('libstrange.so is of no known package', done.stderr)
