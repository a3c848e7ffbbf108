"""Renders kustomizations as far as deploy/kubernetes uses them: resources,
components, JSON patches and generated ConfigMaps, whose names get no hash here."""

import copy
import pathlib

import yaml


def _documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def apply_patch(document, operations):
    """The document after the operations of a JSON patch (RFC 6902)."""
    document = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [part.replace('~1', '/').replace('~0', '~')
                          for part in operation['path'].split('/')[1:]]
        place = document
        for part in parents:
            place = place[int(part) if isinstance(place, list) else part]
        value = copy.deepcopy(operation.get('value'))
        if isinstance(place, list):
            if operation['op'] == 'add':
                place.insert(len(place) if last == '-' else int(last), value)
                continue
            last = int(last)
        if operation['op'] in ('replace', 'remove'):
            place[last]  # Must be there.
        if operation['op'] == 'remove':
            del place[last]
        elif operation['op'] in ('add', 'replace'):
            place[last] = value
        else:
            raise ValueError(f'unknown operation {operation["op"]}')
    return document


def render(folder, given=()):
    """The resources of a folder's kustomization, added to those `given`."""
    folder = pathlib.Path(folder)
    resources = list(given)
    kustomization = yaml.safe_load((folder / 'kustomization.yaml').read_text())
    for field, value in kustomization.items():
        if field in ('apiVersion', 'kind', 'patches', 'components'):
            continue
        if field == 'resources':
            for name in value:
                path = folder / name
                resources += render(path) if path.is_dir() else _documents(path)
        elif field == 'configMapGenerator':
            for entry in value:
                data = {name: (folder / name).read_text() for name in entry['files']}
                resources.append({'apiVersion': 'v1', 'kind': 'ConfigMap',
                                  'metadata': {'name': entry['name']}, 'data': data})
        else:
            raise ValueError(f'{folder}: {field} is not supported here')
    for name in kustomization.get('components', []):
        resources = render(folder / name, resources)
    for patch in kustomization.get('patches', []):
        operations = yaml.safe_load((folder / patch['path']).read_text())
        target = patch['target']
        hit = [resource for resource in resources
               if resource['kind'] == target['kind']
               and resource['metadata']['name'] == target['name']]
        if not hit:
            raise ValueError(f'{folder}: nothing is a {target}')
        resources = [apply_patch(resource, operations) if resource in hit else resource
                     for resource in resources]
    return resources
