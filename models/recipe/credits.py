"""Names the creators of the 3D models from which pictures were rendered. Their licences require it.
"""

import collections

import export
import furniture
import render


def of(exemplars, intro):
    """Returns Markdown that begins with the text `intro`. A table then lists the licences and
    creators of the exemplars, which are 3D models, as CC-BY requires.
    """
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
    """Returns the credits of a model that was trained on the exemplars of the split "train"."""
    used = [e for e in render.read_exemplars() if e['split'] == 'train']
    return of(used, 'The weights were trained on pictures of these 3D models.')
