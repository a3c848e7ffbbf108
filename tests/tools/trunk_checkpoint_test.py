"""Tests checkpoints of tools/pytorch for models that use the first layers of EfficientNet-Lite0."""

import numpy as np

import checkpoints
from checkpoint.network import Backbone, Network, expected_tensors
from conversion import ConvertTest
from parameters import parameters

LABELS = ['cat', 'dog', 'cup']
DEEP = Network('CLASSIFICATION', Backbone(24, 0, (0, 0, 0, 2), False, trunk=32), 3,
               neck=(320, 1280))
WIDE = Network('CLASSIFICATION', Backbone(28, 0, (0, 0, 2, 2), False, trunk=16), 3)
HEADS = ('--num_heads', '3,6')


class TrunkTest(ConvertTest):
    def checkpoint(self, network, **more):
        """Returns the checkpoint that training.py writes for a student. `more` are its additional
        tensors."""
        self.arrays = parameters(expected_tensors(network))
        state = checkpoints.tensors({**{f'model.{k}': v for k, v in self.arrays.items()},
                                     'model.norm.num_batches_tracked': np.int64(4), **more})
        return checkpoints.zip_file({'state_dict': checkpoints.ordered(state),
                                     'facts': {'labels': LABELS, 'depth': 2},
                                     'figures': {'agreement_top1': 0.5}, 'position': (3, 96, 1.5)})

    def test_a_classifier_of_photographs(self):
        self.convert(self.checkpoint(DEEP, spread=np.ones((3, 192), np.float32)), *HEADS)
        self.assert_converted(self.arrays)
        self.assertIn('skipped  spread  not under model., which others are', self.printed)
        self.assertEqual(self.labels, LABELS)
        self.assertEqual(self.config.split('weights')[0], '''\
# proto-file: sfmamba/v1/config.proto
# proto-message: sfmamba.v1.ModelConfig
task: CLASSIFICATION
backbone {
  variant: "custom"
  stem: EFFICIENTNET_LITE0_STRIDE32
  dim: 24
  depths: [0, 0, 0, 2]
  layer_scale: false
  tokens: DATA
  num_heads: [1, 1, 3, 6]
  windows: [14, 7]
}
num_classes: 3
input {
  size: 224
  crop_pct: 1.0
}
classifier {
  channels: 320
  features: 1280
}
''')

    def test_a_classifier_without_convolutions_behind_its_stages(self):
        guess = {'guess.weight': np.ones((5, 224), np.float32)}
        self.convert(self.checkpoint(WIDE, **guess), '--num_heads', '4,8', '--input_size', '160')
        self.assert_converted(self.arrays)
        for line in ('  stem: EFFICIENTNET_LITE0\n', '  windows: [10, 5]\n', '  size: 160\n'):
            self.assertIn(line, self.config)
        self.assertNotIn('classifier {', self.config)

    def test_the_weights_alone(self):
        self.arrays = parameters(expected_tensors(WIDE))
        self.convert(checkpoints.safetensors_file(self.arrays), *HEADS)
        self.assert_converted(self.arrays)
        self.assertEqual(self.labels, ['class_0', 'class_1', 'class_2'])

    def test_the_heads_are_asked_for_and_missing_layers_named(self):
        self.assert_refused(self.checkpoint(DEEP), r'dim 24, a trunk of stride 32, .*--num_heads')
        self.arrays = parameters(expected_tensors(DEEP))
        del self.arrays['trunk.blocks.3.expand.conv.weight']
        self.assertEqual(self.run_it(checkpoints.safetensors_file(self.arrays), *HEADS), 1)
        self.assertIn('missing  trunk.blocks.3.expand.conv.weight', self.printed)

    def test_a_segmenter_needs_its_configuration(self):
        network = Network('SEGMENTATION', WIDE.backbone, 3, segmenter_channels=16)
        self.assert_refused(self.checkpoint(network), 'segmenter on a trunk, .*--export writes it',
                            *HEADS)
