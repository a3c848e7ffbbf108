"""The configurations of the default models: two classifiers, a detector and a segmenter.

The detector and the segmenter are the dense models. They start from the backbone of CLASSIFIER. In
all models, EfficientNet-Lite0's layers replace the stages before the token stages. These layers
have weights from ImageNet, which are not trained further.
"""

import torch

# The mean and standard deviation of ImageNet's pictures, RGB in 0..1.
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])

SIZE = 160  # Pixels per side of the classifier's pictures.
CLASSIFIER = dict(lite_trunk=16, dim=28, in_dim=0, depths=(0, 0, 4, 2), num_heads=(4, 8),
                  windows=(SIZE // 16, SIZE // 32))

# The model `photographs` with 1000 classes. It has EfficientNet-Lite0's layers before and after the
# token stage.
PHOTOGRAPHS_SIZE = 224
PHOTOGRAPHS = dict(lite_trunk=32, neck=True, dim=24, in_dim=0, depths=(0, 0, 0, 6),
                   num_heads=(3, 6), windows=(PHOTOGRAPHS_SIZE // 16, PHOTOGRAPHS_SIZE // 32))

SHORT, LONG = 256, 320  # The limits of the sides of the dense models' pictures.
# The windows are so large that one window contains the map of the largest picture.
BACKBONE = dict(CLASSIFIER, windows=(LONG // 16, LONG // 32))
DETECTOR = dict(channels=48, box_stages=1, box_convs=0, box_fcs=2, fc_width=192, mask_convs=2,
                anchor_scale=6, finest_scale=28, rpn_candidates=200, proposals=100)
SEGMENTER_CHANNELS = 48
