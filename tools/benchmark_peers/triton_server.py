#!/usr/bin/env python3
"""Serves a classifier with Triton, through PyTriton. tools/export_onnx.py writes the classifier.

    pip install nvidia-pytriton onnxruntime opencv-python-headless
    tools/benchmark_peers/triton_server.py photographs.onnx --port 9501
    tools/benchmark_loadgen.py --server 127.0.0.1:9501 --serve_as photographs --protocol kserve PICTURES

The input is a picture's bytes and the output is `logits`, as with this project's server over
KServe. OpenCV decodes and resizes the pictures of one batch, one after another. ONNX Runtime
computes the batch on all CPU cores. Triton batches dynamically.
"""

import argparse
import json
import os
import pathlib

import cv2
import numpy
import onnxruntime
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


class Classifier:
    """Classifies pictures. First resizes them to squares as the file's metadata say. If `resize` is
    CENTER_CROP, only the central square is used. Its side is crop_pct times the short side.
    """

    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options,
                                                    providers=['CPUExecutionProvider'])
        self.about = self.session.get_modelmeta().custom_metadata_map
        if self.about['resize'] not in ('CENTER_CROP', 'STRETCH'):
            raise SystemExit(f"{path}: expected resize CENTER_CROP or STRETCH, got {self.about['resize']}")
        self.size = int(self.about['size'])
        self.mean = numpy.array(json.loads(self.about['mean']), numpy.float32)
        self.std = numpy.array(json.loads(self.about['std']), numpy.float32)

    def prepare(self, data):
        """Converts a picture's bytes to float32 [3, size, size]."""
        picture = cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR)
        height, width = picture.shape[:2]
        if self.about['resize'] == 'CENTER_CROP':
            side = int(min(height, width) * float(self.about['crop_pct']))
            top, left = (height - side) // 2, (width - side) // 2
            picture = picture[top:top + side, left:left + side]
        shrinks = picture.shape[0] > self.size
        picture = cv2.resize(picture, (self.size, self.size),
                             interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC)
        values = (picture[:, :, ::-1].astype(numpy.float32) / 255 - self.mean) / self.std
        return values.transpose(2, 0, 1)

    @batch
    def infer(self, image):
        """Maps bytes [N, 1] to logits [N, classes]."""
        images = numpy.stack([self.prepare(row[0]) for row in image])
        return self.session.run(['logits'], {'images': images})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('onnx', type=pathlib.Path)
    parser.add_argument('--port', type=int, default=9501)
    parser.add_argument('--max_batch_size', type=int, default=8)
    parser.add_argument('--delay_us', type=int, default=0, help='that a batch waits for more')
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    classifier = Classifier(arguments.onnx, len(os.sched_getaffinity(0)))
    classes = classifier.session.get_outputs()[0].shape[1]
    config = TritonConfig(grpc_port=arguments.port, http_port=arguments.port + 1,
                          metrics_port=arguments.port + 2)
    with Triton(config=config) as triton:
        triton.bind(model_name=arguments.onnx.stem, infer_func=classifier.infer,
                    inputs=[Tensor(name='image', dtype=bytes, shape=(1,))],
                    outputs=[Tensor(name='logits', dtype=numpy.float32, shape=(classes,))],
                    config=ModelConfig(
                        max_batch_size=arguments.max_batch_size,
                        batcher=DynamicBatcher(max_queue_delay_microseconds=arguments.delay_us)))
        triton.serve()


if __name__ == '__main__':
    main()
