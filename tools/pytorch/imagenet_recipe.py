"""How SF-Mamba's variants T, S and B are trained from scratch on ImageNet-1k. The comments name the
source of each setting.

[M] MambaVision's published configuration, github.com/NVlabs/MambaVision (Apache-2.0),
mambavision/configs/mambavision_{tiny,small,base}_1k.yaml, with the defaults of train.py and
models/mamba_vision.py. [P] MambaVision's paper (arXiv 2407.08083). [O] our own. SF-Mamba (arXiv
2603.16423) compares itself with MambaVision at equal size. Its code is not published, and its own
settings are not known here.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torchvision.transforms import InterpolationMode, v2

EPOCHS, COOLDOWN = 310, 10  # [M]: a cosine, then epochs at the lowest rate. [P]: 300.
BATCH = 4096                 # [P]. [M]: 128 per GPU.
RATE, FIRST_RATE, LEAST_RATE = 5e-3, 1e-6, 5e-6  # [M], for that batch.
HORIZON = 5000               # [M]: weights averaged with a decay of 0.9998 per step.
SMOOTHING = 0.1              # [M]
MIXUP, CUTMIX = 0.8, 1.0     # [M]: their alphas. Every batch has one of the two.
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)  # [M]: the share of the area and the shape of crops.
ERASED = 0.25                # [M]: the share of pictures that get a rectangle of noise.
# [M]: timm's rand-m9-mstd0.5-inc1. It draws two operations for each picture. Each is applied with
# probability 0.5, and its magnitude varies around 9 of 10. [O]: The operations and their ranges are
# torchvision's. The magnitude does not vary. It is number 27 of the numbers 0 to 30.
OPERATIONS, MAGNITUDE, BINS = 2, 27, 31
TEMPERATURE, MESA_SCALE = 3, 50  # [M]: kdloss() in train.py.


@dataclasses.dataclass(frozen=True)
class Recipe:
    warmup: int          # Epochs.
    weight_decay: float
    drop_path: float     # See sf_mamba.Config.
    mesa: float          # The weight of mesa_loss().
    mesa_after: float    # The share of the training after which it counts.


RECIPES = {'T': Recipe(20, 0.05, 0.2, 0.5, 0.25),   # [M]
           'S': Recipe(20, 0.05, 0.2, 1.0, 0.25),
           'B': Recipe(35, 0.075, 0.3, 1.0, 0.3)}


def schedule(recipe):
    """Returns a function from the progress of a training, in 0..1, to the fraction of the peak
    learning rate. If a training has fewer epochs than EPOCHS + COOLDOWN, all phases are shortened
    in proportion.
    """
    least, first = LEAST_RATE / RATE, FIRST_RATE / RATE

    def share(progress):
        epoch = progress * (EPOCHS + COOLDOWN)
        if epoch < recipe.warmup:
            return first + (1 - first) * epoch / recipe.warmup
        cosine = math.cos(math.pi * min(epoch / EPOCHS, 1))
        return least + (1 - least) * (1 + cosine) / 2
    return share


def augmentation(size):
    """Returns the transform of a PIL picture to uint8 [3,size,size]: crop, mirror image,
    RandAugment."""
    crops = v2.RandomChoice([v2.RandomResizedCrop(size, SCALE, RATIO, mode)
                             for mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)])
    one = v2.RandomApply([v2.RandAugment(1, MAGNITUDE, BINS, fill=(124, 116, 104))], 0.5)
    return v2.Compose([crops, v2.RandomHorizontalFlip(), *[one] * OPERATIONS, v2.PILToTensor()])


def mixing(classes):
    """Returns a function from normalised pictures and classes [n] to mixed pictures and shares
    [n,classes]."""
    return v2.RandomChoice([v2.MixUp(alpha=MIXUP, num_classes=classes),
                            v2.CutMix(alpha=CUTMIX, num_classes=classes)])


def erase(pictures):
    """Puts noise into a rectangle of some of the normalised pictures."""
    eraser = v2.RandomErasing(ERASED, value='random')
    return torch.stack([eraser(picture) for picture in pictures])


def mesa_loss(logits, averaged):
    """Computes the loss of MESA (arXiv 2205.14083). It is the distance between the logits of the
    trained weights and `averaged`, the logits of their moving average on the same pictures.
    """
    return MESA_SCALE * F.kl_div((logits / TEMPERATURE).log_softmax(1),
                                 (averaged / TEMPERATURE).softmax(1), reduction='batchmean')
