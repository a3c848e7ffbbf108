#!/usr/bin/env python3
"""Lists what an image holds, as an SBOM: SPDX 2.3 in JSON.

    deploy/sbom.py FOLDER [--add PLACE=FOLDER]... [--name NAME] [--version V] [--revision R]

FOLDER is what deploy/stage.sh made; its list of contents says which files are Debian's. The
wheels that other libraries come from stand, with their checksums, in setup.sh and
cuda-runtime.txt. --add lists the files of another folder as the image has them below PLACE. The
document goes to usr/share/sfmamba/sbom.spdx.json in FOLDER. The same files give the same
document but for its date, which is SOURCE_DATE_EPOCH where that is set.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
CONTENTS = 'usr/share/sfmamba/contents.tsv'
SBOM = 'usr/share/sfmamba/sbom.spdx.json'
IMAGE = 'SPDXRef-Image'
OURS = {'usr/bin/sfmamba', 'usr/bin/sfmamba_server'}


def fail(message):
    sys.exit(f'sbom: {message}')


def wheels():
    """name -> (version, sha256) of each wheel whose libraries may be staged."""
    text = (HERE / 'cuda-runtime.txt').read_text()
    text += re.search(r"^WHEELS='(.*?)'", (HERE / 'setup.sh').read_text(), re.M | re.S)[1]
    return {name: (version, digest) for name, version, digest in
            re.findall(r'([\w-]+)==(\S+) --hash=sha256:(\w{64})', text)}


def wheel_of(library, names):
    """The wheel that a library which is not Debian's comes from; None if that is unknown."""
    stem = library.removeprefix('lib').lower()
    if stem.startswith(('torch', 'c10', 'gomp', 'caffe2', 'shm')):
        return 'torch'
    for name in sorted(names, key=len, reverse=True):
        word = re.sub(r'^nvidia-(cuda-)?|-cu\d+$', '', name)
        word = {'runtime': 'cudart'}.get(word, word)
        if stem.startswith((word, f'cu{word}')):
            return name
    return None


def checksums(path):
    """(SHA1, SHA256) of a file."""
    digests = hashlib.sha1(), hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(1 << 20):
            for digest in digests:
                digest.update(block)
    return tuple(digest.hexdigest() for digest in digests)


def listed(folder):
    """place -> Debian's (package, version), or None, of each file that was staged."""
    found = {}
    path = folder / CONTENTS
    if not path.is_file():
        fail(f'{path} is not there: is {folder} what deploy/stage.sh made?')
    for line in path.read_text().splitlines():
        place, _, package, version = line.split('\t')
        found[place] = None if package == '-' else (package, version)
    return found


def files_of(folder, added):
    """(place, path) of each file, ordered by place."""
    roots = [('', folder)] + added
    return sorted((os.path.join(below, path.relative_to(root)), path)
                  for below, root in roots for path in root.rglob('*')
                  if path.is_file() and (below or path != folder / SBOM))


def identifier(kind, text):
    """An SPDX identifier: letters, digits, dots and hyphens, and one for each text."""
    readable = re.sub(r'[^A-Za-z0-9.-]', '-', text)
    return f'SPDXRef-{kind}-{readable}-{hashlib.sha256(text.encode()).hexdigest()[:8]}'


def quoted(text):
    """As part of a package's URL."""
    return urllib.parse.quote(text, safe='')


def package(key, name, version, purl, origin='NOASSERTION', sha256=None):
    entry = {
        'SPDXID': key, 'name': name, 'versionInfo': version, 'downloadLocation': origin,
        'filesAnalyzed': False, 'licenseConcluded': 'NOASSERTION',
        'licenseDeclared': 'NOASSERTION', 'copyrightText': 'NOASSERTION',
        'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
                          'referenceLocator': purl}],
    }
    if sha256:
        entry['checksums'] = [{'algorithm': 'SHA256', 'checksumValue': sha256}]
    return entry


def origin_of(place, debian, known):
    """The package that a file was copied from; None for what is built here."""
    if debian:
        name, version = debian
        return package(identifier('Debian', name), name, version,
                       f'pkg:deb/debian/{quoted(name)}@{quoted(version)}'
                       '?arch=amd64&distro=bookworm')
    wheel = wheel_of(os.path.basename(place), known) if '/lib' in place else None
    if wheel is None:
        return None
    version, digest = known[wheel]
    return package(identifier('PyPI', wheel), wheel, version, f'pkg:pypi/{wheel}@{version}',
                   sha256=digest)


def created():
    epoch = os.environ.get('SOURCE_DATE_EPOCH')
    now = (datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch
           else datetime.datetime.now(datetime.timezone.utc))
    return now.strftime('%Y-%m-%dT%H:%M:%SZ')


def document(folder, added, name, version, revision):
    debian = listed(folder)
    known = wheels()
    files, packages, relations = [], {}, []

    def relate(one, kind, other, **more):
        relations.append({'spdxElementId': one, 'relationshipType': kind,
                          'relatedSpdxElement': other, **more})

    relate('SPDXRef-DOCUMENT', 'DESCRIBES', IMAGE)
    for place, path in files_of(folder, added):
        sha1, sha256 = checksums(path)
        key = identifier('File', place)
        files.append({
            'SPDXID': key, 'fileName': f'./{place}',
            'checksums': [{'algorithm': 'SHA1', 'checksumValue': sha1},
                          {'algorithm': 'SHA256', 'checksumValue': sha256}],
            'licenseConcluded': 'NOASSERTION', 'copyrightText': 'NOASSERTION',
        })
        relate(IMAGE, 'CONTAINS', key)
        origin = origin_of(place, debian.get(place), known)
        if origin:
            packages[origin['SPDXID']] = origin
            relate(key, 'OTHER', origin['SPDXID'], comment='The file is a copy from the package.')
        elif '/lib' in place and place not in OURS and place != CONTENTS:
            print(f'sbom: {place} is of no known package', file=sys.stderr)
    for key in packages:
        relate(IMAGE, 'DEPENDS_ON', key)
    # SPDX 2.3, 7.9: over the files' SHA1, sorted.
    sums = ''.join(sorted(file['checksums'][0]['checksumValue'] for file in files))
    whole = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    image = {
        'SPDXID': IMAGE, 'name': name, 'versionInfo': version,
        'downloadLocation': 'NOASSERTION', 'filesAnalyzed': True,
        'packageVerificationCode': {
            'packageVerificationCodeValue': hashlib.sha1(sums.encode()).hexdigest(),
            'packageVerificationCodeExcludedFiles': [f'./{SBOM}']},
        'primaryPackagePurpose': 'CONTAINER', 'sourceInfo': f'revision {revision}',
        'licenseConcluded': 'NOASSERTION', 'licenseDeclared': 'NOASSERTION',
        'copyrightText': 'NOASSERTION',
    }
    return {
        'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT',
        'name': f'{name}-{version}',
        'documentNamespace': f'https://spdx.org/spdxdocs/{name}-{version}-{whole}',
        'creationInfo': {'created': created(), 'creators': ['Tool: sfmamba-sbom']},
        'packages': [image, *packages.values()], 'files': files, 'relationships': relations,
    }


def main():
    parser = argparse.ArgumentParser(description='Lists what an image holds, in SPDX 2.3.')
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--add', action='append', default=[], metavar='PLACE=FOLDER')
    parser.add_argument('--name', default='sfmamba-server')
    parser.add_argument('--version', default='0.1.0')
    parser.add_argument('--revision', default='unknown')
    flags = parser.parse_args()
    added = []
    for each in flags.add:
        place, _, folder = each.partition('=')
        if not (place and folder and pathlib.Path(folder).is_dir()):
            fail(f'--add={each}: expected PLACE=FOLDER with a folder that is there')
        added.append((place, pathlib.Path(folder)))
    made = document(flags.folder, added, flags.name, flags.version, flags.revision)
    (flags.folder / SBOM).write_text(json.dumps(made, indent=1) + '\n')
    print(f'sbom: {len(made["files"])} files of {len(made["packages"]) - 1} packages')


if __name__ == '__main__':
    main()
