"""Makes int8 networks for the runtimes from an ONNX file, and measures how far their answers are
from the answers in fp32.

Each quantizer takes the file and images for the calibration, float32 [batch, 3, height, width]. It
returns the name of the file for its runtime.
"""

import os
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tools' / 'pytorch'), str(ROOT / 'tools')]

MODEL = ROOT / 'models' / 'photographs' / '1'
PICTURES = ROOT / 'tests' / 'e2e' / 'testdata' / 'held_out' / 'photographs'


def _prepared(path):
    """Writes the file with shapes and folded constants, which ONNX Runtime's quantizers need.
    Returns the new file's name.
    """
    from onnxruntime.quantization import shape_inference
    prepared = f'{path}.prepared.onnx'
    # Symbolic shape inference does not support Scan.
    shape_inference.quant_pre_process(path, prepared, skip_symbolic_shape=True)
    return prepared


def onnx_runtime_static(path, images):
    """Quantises statically in the QDQ format. Each tensor of activations and each channel of
    weights has one scale. Returns the file's name.
    """
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        rest = iter([{'images': image} for image in images])

        def get_next(self):
            return next(self.rest, None)

    quantized = f'{path}.static.onnx'
    # VNNI instructions multiply unsigned activations.
    quantization.quantize_static(
        _prepared(path), quantized, Reader(), quant_format=quantization.QuantFormat.QDQ,
        per_channel=True, activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8)
    return quantized


def onnx_runtime_dynamic(path, images):
    """Quantises only matrix products, with one scale per call. ONNX Runtime has no fast kernels for
    convolutions that are quantised in this way. Returns the file's name.
    """
    from onnxruntime import quantization
    quantized = f'{path}.dynamic.onnx'
    quantization.quantize_dynamic(_prepared(path), quantized, op_types_to_quantize=['MatMul'],
                                  per_channel=True, weight_type=quantization.QuantType.QInt8)
    return quantized


def _openvino(path, images, name, float_types):
    """Quantises with NNCF's default settings, except operators of the types `float_types`. Returns
    the file's name.
    """
    import nncf
    import openvino
    quantized = f'{path}.{name}.xml'
    if not os.path.exists(quantized):  # Another setting may have written it.
        scope = nncf.IgnoredScope(types=float_types, validate=False)
        openvino.save_model(nncf.quantize(openvino.Core().read_model(path), nncf.Dataset(images),
                                          ignored_scope=scope), quantized, compress_to_fp16=False)
    return quantized


def openvino_default(path, images):
    return _openvino(path, images, 'default', [])


def openvino_float_convolutions(path, images):
    return _openvino(path, images, 'float_convolutions',
                     ['Convolution', 'GroupConvolution', 'BatchNormInference'])


def photographs(path):
    """Writes the default model `photographs` as ONNX, for batches of one image. Returns the inputs
    for the held-out pictures."""
    import export_onnx
    import pictures
    from onnx_export.model_folder import read_model
    model = read_model(MODEL)
    export_onnx.save(export_onnx.network(model, 1, 224, 224), pathlib.Path(path))
    mean, std = (np.float32(model.config.picture[name]) for name in ('mean', 'std'))
    return [((pictures.read(file, 224) / np.float32(255) - mean) / std).transpose(2, 0, 1)[None]
            for file in sorted(PICTURES.glob('*/*'))]


def accuracy(got, expected):
    """Returns the figures that `sfmamba eval --against` prints, for logits [pictures, classes]."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    return {'same_first_class': float((got.argmax(1) == expected.argmax(1)).mean()),
            'logit_rms': float(np.sqrt(((got - expected)**2).mean()) / expected.std())}
