"""Who made the 3D models that pictures were rendered of, as their licences ask."""

import collections

import export
import furniture
import render


def of(exemplars, intro):
    """Creators and licences of the named 3D models, as CC-BY asks; Markdown."""
    groups = collections.defaultdict(list)
    for e in exemplars:
        groups[furniture.LICENCES[e['library']], e['library'], e['creator']].append(e['name'])
    lines = [export.HEADING, intro, '', '| licence | library | creator | models |',
             '|---|---|---|---|']
    for (licence, library, creator), names in sorted(groups.items()):
        counted = ', '.join(f'{name} ({n})' if n > 1 else name
                            for name, n in sorted(collections.Counter(names).items()))
        lines.append(f'| {licence} | {library} | {creator} | {counted} |')
    lines += ['', 'Changed: each model was rendered to pictures. The libraries are those of Sweet Home',
              '3D (www.sweethome3d.com), as packaged by Debian in sweethome3d-furniture 1.8.',
              'Licences: https://creativecommons.org/licenses/by/3.0/,',
              'https://creativecommons.org/licenses/by/3.0/us/ and',
              'https://creativecommons.org/publicdomain/zero/1.0/.', '']
    return '\n'.join(lines)


def of_training():
    """Of what is trained on the exemplars of split "train"."""
    used = [e for e in render.read_exemplars() if e['split'] == 'train']
    return of(used, 'The weights were trained on pictures of these 3D models.')
