"""Writes small checkpoints in the forms of other programs and converts them.

    write_models.py DIR

Creates DIR/classification, DIR/detection, DIR/segmentation, DIR/trunk, DIR/vmamba and
DIR/vmamba_detection. converted_model_test loads them with the server's code.
"""

import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / 'tools')]

import checkpoints  # noqa: E402
import convert_checkpoint  # noqa: E402
from checkpoint import vmamba as vmamba_tensors  # noqa: E402
from checkpoint.network import Backbone, Detector, Network, expected_tensors  # noqa: E402
from parameters import parameters  # noqa: E402

BACKBONE = Backbone(dim=16, in_dim=8, depths=(1, 2, 3, 2), layer_scale=True)


def classification():
    network = Network('CLASSIFICATION', BACKBONE, 10)
    arrays = parameters(expected_tensors(network))
    arrays['norm.num_batches_tracked'] = np.int64(4)
    return checkpoints.legacy_file(
        checkpoints.tensors({'module.' + key: array for key, array in arrays.items()}))


def detection():
    detector = Detector(box_stages=3, box_convs=4, box_fcs=1, mask_convs=4, channels=16,
                        fc_width=32)
    network = Network('DETECTION', BACKBONE, 3, detector)
    state = checkpoints.tensors(parameters(expected_tensors(network)))
    return checkpoints.zip_file(checkpoints.mmengine(state, ['cat', 'dog', 'traffic light']))


def segmentation():
    network = Network('SEGMENTATION', BACKBONE, 150, None, 16)
    arrays = parameters(expected_tensors(network))
    arrays['auxiliary_head.conv_seg.bias'] = np.zeros(150, np.float32)
    return checkpoints.zip_file({'state_dict': checkpoints.tensors(arrays)})


def trunk():
    network = Network('CLASSIFICATION', Backbone(24, 0, (0, 0, 0, 2), False, trunk=32), 3,
                      neck=(8, 16))
    arrays = parameters(expected_tensors(network))
    state = checkpoints.tensors({'model.' + key: array for key, array in arrays.items()})
    return checkpoints.zip_file({'state_dict': state, 'facts': {'labels': ['cat', 'dog', 'cup']}})


VMAMBA = vmamba_tensors.Backbone(dim=16, ratio=2, depths=(1, 1, 2, 1))


def vmamba():
    """Returns a classifier in the form of VMamba's authors. The averaged weights are in
    `model_ema`."""
    arrays = parameters(expected_tensors(Network('CLASSIFICATION', VMAMBA, 10)))
    other = {name: np.zeros_like(array) for name, array in arrays.items()}
    return checkpoints.zip_file({
        'model': checkpoints.tensors(other), 'epoch': 296,
        'model_ema': {name: checkpoints.tensor(f'ema{i}', array)
                      for i, (name, array) in enumerate(arrays.items())}})


def vmamba_detection():
    detector = Detector(box_stages=1, box_convs=0, box_fcs=2, mask_convs=4, channels=16,
                        fc_width=32)
    network = Network('DETECTION', VMAMBA, 3, detector)
    state = checkpoints.tensors(parameters(expected_tensors(network)))
    return checkpoints.zip_file(checkpoints.mmengine(state, ['cat', 'dog', 'traffic light']))


HEADS = ('--num_heads', '4,8', '--tokens', 'swap')
FLAGS = {classification: HEADS, detection: HEADS, segmentation: HEADS, trunk: HEADS, vmamba: (),
         vmamba_detection: ()}


def main():
    out = pathlib.Path(sys.argv[1])
    for make, flags in FLAGS.items():
        folder = out / make.__name__
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = folder / 'checkpoint.pth'
        checkpoint.write_bytes(make())
        status = convert_checkpoint.main([str(checkpoint), '--out', str(folder), '--force',
                                          '--quiet', *flags])
        checkpoint.unlink()
        if status != 0:
            return status
    return 0


if __name__ == '__main__':
    sys.exit(main())
