"""Writes a model directory that the server loads, from a training checkpoint.

    python export.py --checkpoint RUN/checkpoint.pt --out models/everyday/1

Writes model.safetensors (fp32), labels.txt, config.textproto and CREDITS.md. The model
card, README.md, is written by hand.
"""

import argparse
import collections
import hashlib
import pathlib

import safetensors.torch
import torch

import furniture
import render
import sf_mamba
import train_classifier

CONFIG = '''# proto-file: sfmamba/v1/config.proto
# proto-message: sfmamba.v1.ModelConfig
task: {task}
backbone {{
  variant: "custom"
  dim: {dim}
  in_dim: {in_dim}
  depths: [{depths}]
  num_heads: [{heads}]
  windows: [{windows}]
  layer_scale: false
  tokens: DATA
}}
num_classes: {classes}
{settings}
weights {{
  size_bytes: {size_bytes}
  sha256: "{sha256}"
}}
'''
CLASSIFIER = '''input {{
  size: {size}
  crop_pct: 1.0
  resize: CENTER_CROP
}}'''


def numbers(values):
    return ', '.join(map(str, values))


def load(checkpoint):
    """The trained model, ready to evaluate, and the facts saved beside its weights."""
    saved = torch.load(checkpoint, weights_only=True)
    labels = saved['facts']['labels']
    model = sf_mamba.make('custom', num_classes=len(labels), **train_classifier.MODEL)
    model.load_state_dict(saved['state_dict'])
    return model.eval(), saved['facts']


def config_text(task, model, classes, settings, weights):
    """config.textproto of a `model` as in train_classifier.MODEL with its weights' file."""
    data = weights.read_bytes()
    return CONFIG.format(task=task, dim=model['dim'], in_dim=model['in_dim'],
                         depths=numbers(model['depths']),
                         heads=numbers((1, 2, *model['num_heads'])),
                         windows=numbers(model['windows']), classes=classes, settings=settings,
                         size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def credits(exemplars, intro):
    """Creators and licences of the named models, as CC-BY asks."""
    groups = collections.defaultdict(list)
    for e in exemplars:
        groups[furniture.LICENCES[e['library']], e['library'], e['creator']].append(e['name'])
    lines = ['# Credits', '', intro, '', '| licence | library | creator | models |',
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


def write(out, task, model, tensors, labels, settings):
    """Writes the folder of a model that was trained on the exemplars of split "train"."""
    out.mkdir(parents=True, exist_ok=True)
    weights = out / 'model.safetensors'
    tensors = {key: value.contiguous() for key, value in tensors.items()
               if not key.endswith('num_batches_tracked')}
    safetensors.torch.save_file(tensors, weights)
    weights.chmod(0o644)
    (out / 'labels.txt').write_text('\n'.join(labels) + '\n', encoding='utf-8')
    (out / 'config.textproto').write_text(
        config_text(task, model, len(labels), settings, weights), encoding='utf-8')
    used = [e for e in render.read_exemplars() if e['split'] == 'train']
    intro = 'The weights were trained on pictures of these 3D models.'
    (out / 'CREDITS.md').write_text(credits(used, intro), encoding='utf-8')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--checkpoint', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    model, facts = load(args.checkpoint)
    write(args.out, 'CLASSIFICATION', train_classifier.MODEL, model.state_dict(), facts['labels'],
          CLASSIFIER.format(size=train_classifier.SIZE))


if __name__ == '__main__':
    main()
