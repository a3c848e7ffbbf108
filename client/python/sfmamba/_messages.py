"""The classes of the server's messages.

They are made from descriptors that the build compiles, in their own descriptor pool. So other
packages in the process may register google.rpc, grpc.health.v1 and sfmamba.v1 in any version, for
example googleapis-common-protos.
"""

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _load() -> descriptor_pool.DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet.FromString(
        (pathlib.Path(__file__).parent / 'messages.binpb').read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:  # Imported files come before the files that import them.
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _load()


def _message(name: str) -> Any:
    factory: Any = message_factory
    descriptor = _POOL.FindMessageTypeByName(name)
    if hasattr(factory, 'GetMessageClass'):
        return factory.GetMessageClass(descriptor)
    # protobuf before version 4.22 needs this.
    return factory.MessageFactory(_POOL).GetPrototype(descriptor)


Status = _message('google.rpc.Status')
ErrorInfo = _message('google.rpc.ErrorInfo')
RetryInfo = _message('google.rpc.RetryInfo')
BadRequest = _message('google.rpc.BadRequest')

HealthCheckRequest = _message('grpc.health.v1.HealthCheckRequest')
HealthCheckResponse = _message('grpc.health.v1.HealthCheckResponse')

Image = _message('sfmamba.v1.Image')
PixelBuffer = _message('sfmamba.v1.PixelBuffer')
Tensor = _message('sfmamba.v1.Tensor')
RequestOptions = _message('sfmamba.v1.RequestOptions')
ClassifyParams = _message('sfmamba.v1.ClassifyParams')
ClassifyRequest = _message('sfmamba.v1.ClassifyRequest')
ClassifyResponse = _message('sfmamba.v1.ClassifyResponse')
Tiles = _message('sfmamba.v1.Tiles')
Crops = _message('sfmamba.v1.Crops')
DetectParams = _message('sfmamba.v1.DetectParams')
DetectRequest = _message('sfmamba.v1.DetectRequest')
DetectResponse = _message('sfmamba.v1.DetectResponse')
SlidingWindow = _message('sfmamba.v1.SlidingWindow')
SegmentParams = _message('sfmamba.v1.SegmentParams')
SegmentRequest = _message('sfmamba.v1.SegmentRequest')
SegmentResponse = _message('sfmamba.v1.SegmentResponse')
StreamPredictRequest = _message('sfmamba.v1.StreamPredictRequest')
StreamPredictResponse = _message('sfmamba.v1.StreamPredictResponse')
GetModelRequest = _message('sfmamba.v1.GetModelRequest')
ListModelsRequest = _message('sfmamba.v1.ListModelsRequest')
ListModelsResponse = _message('sfmamba.v1.ListModelsResponse')
Model = _message('sfmamba.v1.Model')
