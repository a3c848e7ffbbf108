"""Writes the two model directories of train_heads.py's checkpoint, or of one for each.

    python export_heads.py --detector RUN/checkpoint.pt --segmenter RUN/checkpoint.pt \\
        --models ../../models --version 1

Each gets model.safetensors (fp16), labels.txt, config.textproto and CREDITS.md. The model
cards, README.md, are written by hand.
"""

import argparse
import pathlib

import torch

import detector
import export
import train_heads

KEEP_RATIO = f'''input {{
  resize: KEEP_RATIO
  short_side: {train_heads.SHORT}
  long_side: {train_heads.LONG}
}}'''
DETECTOR = '''detector {{
  architecture: MASK_RCNN
  channels: {channels}
  fc_width: {fc_width}
  anchor_scale: {anchor_scale}
  rpn_candidates: {rpn_candidates}
  proposals: {proposals}
  finest_scale: {finest_scale}
  box_stds {{ values: [{stds}] }}
}}'''
SEGMENTER = f'''segmenter {{
  channels: {train_heads.SEGMENTER_CHANNELS}
}}'''
DETECTOR_ID, SEGMENTER_ID = 'everyday_detector', 'everyday_segmenter'


def load(checkpoint):
    """The trained Heads, ready to evaluate, and the facts saved beside their weights."""
    saved = torch.load(checkpoint, weights_only=True)
    heads = train_heads.Heads(len(saved['facts']['labels']))
    heads.load_state_dict(saved['state_dict'])
    return heads.eval(), saved['facts']


def part(prefix, module):
    """The tensors of a part of a model, under its prefix."""
    return {prefix + key: value for key, value in module.state_dict().items()}


def half(tensors):
    """The tensors in fp16; an error if one does not fit."""
    result = {key: value.half() for key, value in tensors.items()
              if not key.endswith('num_batches_tracked')}
    for key, value in result.items():
        if not value.isfinite().all():
            raise ValueError(f'{key} is out of the range of fp16')
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--detector', type=pathlib.Path, required=True, help='a checkpoint')
    parser.add_argument('--segmenter', type=pathlib.Path, required=True, help='a checkpoint')
    parser.add_argument('--models', type=pathlib.Path, required=True)
    parser.add_argument('--version', type=int, required=True)
    args = parser.parse_args()

    heads, facts = load(args.detector)
    tensors = {**part('backbone.', heads.backbone), **part('', heads.detector)}
    config = detector.Config(**train_heads.DETECTOR)
    settings = DETECTOR.format(**train_heads.DETECTOR, stds=export.numbers(config.box_stds[0]))
    export.write(args.models / DETECTOR_ID / str(args.version), 'DETECTION', train_heads.BACKBONE,
                 half(tensors), facts['labels'], KEEP_RATIO + '\n' + settings)

    heads, facts = load(args.segmenter)
    tensors = {**part('backbone.', heads.backbone), **part('decode_head.', heads.decode_head)}
    export.write(args.models / SEGMENTER_ID / str(args.version), 'SEGMENTATION',
                 train_heads.BACKBONE, half(tensors), ['background', *facts['labels']],
                 KEEP_RATIO + '\n' + SEGMENTER)


if __name__ == '__main__':
    main()
