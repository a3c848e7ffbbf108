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
task: CLASSIFICATION
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
input {{
  size: {size}
  crop_pct: 1.0
  resize: CENTER_CROP
}}
weights {{
  size_bytes: {size_bytes}
  sha256: "{sha256}"
}}
'''


def numbers(values):
    return ', '.join(map(str, values))


def load(checkpoint):
    """The trained model, ready to evaluate, and the facts saved beside its weights."""
    saved = torch.load(checkpoint, weights_only=True)
    labels = saved['facts']['labels']
    model = sf_mamba.make('custom', num_classes=len(labels), **train_classifier.MODEL)
    model.load_state_dict(saved['state_dict'])
    return model.eval(), saved['facts']


def config_text(weights, classes):
    model = train_classifier.MODEL
    data = weights.read_bytes()
    return CONFIG.format(dim=model['dim'], in_dim=model['in_dim'], depths=numbers(model['depths']),
                         heads=numbers((1, 2, *model['num_heads'])),
                         windows=numbers(model['windows']), classes=classes,
                         size=train_classifier.SIZE, size_bytes=len(data),
                         sha256=hashlib.sha256(data).hexdigest())


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--checkpoint', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    model, facts = load(args.checkpoint)
    args.out.mkdir(parents=True, exist_ok=True)
    weights = args.out / 'model.safetensors'
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()
               if not key.endswith('num_batches_tracked')}
    safetensors.torch.save_file(tensors, weights)
    weights.chmod(0o644)
    (args.out / 'labels.txt').write_text('\n'.join(facts['labels']) + '\n', encoding='utf-8')
    (args.out / 'config.textproto').write_text(config_text(weights, len(facts['labels'])))
    used = [e for e in render.read_exemplars() if e['split'] == 'train']
    intro = 'The weights were trained on pictures of these 3D models.'
    (args.out / 'CREDITS.md').write_text(credits(used, intro), encoding='utf-8')


if __name__ == '__main__':
    main()
