"""Records the results that tests of sliding windows expect.

See tests/testing/testdata/heads/README.md.

    python record_slide.py --models ../../models --picture ../../client/samples/scene_01.jpg
"""

import argparse
import pathlib

import cv2
import numpy as np
import safetensors.torch
import torch

import configs
import upernet

FOLDER = pathlib.Path(__file__).parents[2] / 'tests/testing/testdata/heads'
CLASSES = 7
# (height, width) of the picture, the window, the stride and the map.
SIZES = (((100, 136), (57, 57), (38, 38), (75, 102)),
         ((41, 90), (64, 33), (50, 7), (83, 181)),  # The window is higher than the picture.
         ((37, 23), (96, 96), (96, 96), (37, 23)))  # One window, cut to the picture.


def record_windows():
    """Returns, for each row of SIZES, random logits of windows and the results that follow from
    them: the mean logits of the first two classes, the map of classes and its confidences.
    """
    torch.manual_seed(0)
    t = {}
    for i, (size, crop, stride, picture) in enumerate(SIZES):
        quarter = [(min(c, s) + 3) // 4 for c, s in zip(crop, size)]
        logits = 2 * torch.randn(len(upernet.windows_of(size, crop, stride)), CLASSES, *quarter)
        windows = iter(logits)
        mean = upernet.slide(lambda _, windows=windows: next(windows)[None], size, crop, stride)
        probabilities = upernet.resize(mean, picture).softmax(dim=1)[0]
        t[f'{i}.sizes'] = torch.tensor([size, crop, stride, picture])
        t[f'{i}.logits'] = logits
        t[f'{i}.mean'] = mean[0, :2].contiguous()
        t[f'{i}.map'] = upernet.class_map(mean, size, picture)[0].byte()
        t[f'{i}.confidence'] = (255 * probabilities.max(dim=0).values).round().byte()
    return t


def record_network(models, picture):
    """Returns a small picture and the default segmenter's results for it, computed in windows. The
    picture is enlarged as the segmenter's config.textproto says.
    """
    folder = models / 'everyday_segmenter/1'
    labels = (folder / 'labels.txt').read_text(encoding='utf-8').splitlines()
    model = upernet.Segmenter(configs.BACKBONE, configs.SEGMENTER_CHANNELS, len(labels)).eval()
    tensors = safetensors.torch.load_file(folder / 'model.safetensors')
    model.load_state_dict({key: value.float() for key, value in tensors.items()}, strict=False)
    image = cv2.cvtColor(cv2.imread(str(picture)), cv2.COLOR_BGR2RGB)
    image = cv2.resize(image, (136, 90), interpolation=cv2.INTER_AREA)
    size, crop, stride = (212, 320), (128, 160), (70, 90)
    resized = cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR)
    x = (torch.from_numpy(resized) / 255 - configs.MEAN) / configs.STD
    x = x.permute(2, 0, 1)[None].float()
    mean = upernet.slide(lambda w: model(x[..., w[0]:w[2], w[1]:w[3]]), size, crop, stride)
    shape = image.shape[:2]
    print(np.bincount(upernet.class_map(mean, size, shape).flatten(), minlength=len(labels)))
    return {'picture': torch.from_numpy(image),
            'sizes': torch.tensor([size, crop, stride, shape]),
            'mean': mean[0, :, ::8, ::8].contiguous(),  # Every eighth pixel.
            'map': upernet.class_map(mean, size, shape)[0].byte()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--models', type=pathlib.Path, required=True)
    parser.add_argument('--picture', type=pathlib.Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with torch.inference_mode():
        network = record_network(args.models, args.picture)
        t = record_windows()
    t.update({f'network.{key}': value for key, value in network.items()})
    safetensors.torch.save_file(t, FOLDER / 'slide.safetensors')


if __name__ == '__main__':
    main()
