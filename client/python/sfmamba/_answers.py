"""Converts messages of the server to the dataclasses of results.py."""

import zlib
from typing import Any, List, Optional, Union

import grpc
import numpy as np
from numpy.typing import NDArray

from . import _messages, _rle
from ._errors import VisionError, from_status, seconds
from .results import (ClassArea, Classification, Detections, HeatMap, ModelInfo, Segmentation,
                      Timing)


def _timing(response: Any) -> Optional[Timing]:
    if not response.HasField('timing'):
        return None
    timing = response.timing
    stages = ('decode', 'preprocess', 'queue', 'inference', 'postprocess', 'total')
    return Timing(**{stage: seconds(getattr(timing, stage)) for stage in stages},
                  batch_size=timing.batch_size, device=timing.device)


def _heat_map(message: Any) -> HeatMap:
    values = np.array(message.values, np.float32)
    return HeatMap(message.class_id, values.reshape(message.height, message.width))


def classification(result: Any, response: Any) -> Classification:
    """Converts a ClassifyResult and the ClassifyResponse that contains it."""
    categories = result.categories
    return Classification(
        labels=tuple(category.label for category in categories),
        scores=np.array([category.score for category in categories], np.float32),
        class_ids=np.array([category.class_id for category in categories], np.int32),
        embedding=np.array(result.embedding, np.float32) if result.embedding else None,
        heat_map=_heat_map(result.heat_map) if result.HasField('heat_map') else None,
        model=response.model, timing=_timing(response))


def detections(result: Any, response: Any) -> Detections:
    """Converts a DetectResult and the DetectResponse that contains it."""
    found = result.detections
    height, width = result.image_height, result.image_width
    boxes = [(one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max) for one in found]
    return Detections(
        labels=tuple(one.label for one in found),
        scores=np.array([one.score for one in found], np.float32),
        class_ids=np.array([one.class_id for one in found], np.int32),
        boxes=np.array(boxes, np.float32).reshape(len(found), 4),
        height=height, width=width,
        rles=(tuple(one.rle.counts for one in found)
              if all(one.HasField('rle') for one in found) else ()),
        model=response.model, timing=_timing(response),
        crops=tuple(_answer(one.crop, _messages.ClassifyResponse(), classification)
                    for one in found if one.HasField('crop')))


def segmentation(result: Any, response: Any) -> Segmentation:
    """Converts a SegmentResult and the SegmentResponse that contains it. Raises ValueError if the
    map cannot be decoded."""
    height, width = result.height, result.width
    return Segmentation(
        class_map=class_map(result.rle.classes, height, width),
        areas=tuple(ClassArea(area.class_id, area.label, area.pixel_count, area.fraction)
                    for area in result.areas),
        confidence=(grey_png(result.confidence_png, height, width).astype(np.float32) / 255
                    if result.confidence_png else None),
        model=response.model, timing=_timing(response))


def class_map(classes: Any, height: int, width: int) -> NDArray[np.int32]:
    """Returns the map of ClassRle messages as int32 [height, width]. It is -1 where there is no
    class. Raises ValueError if the messages cannot be decoded or overlap."""
    begins, ends, ids = [], [], []
    for one in classes:
        if (one.rle.height, one.rle.width) != (height, width):
            raise ValueError('a class has another size than the map')
        edges = np.cumsum(_rle.runs(one.rle.counts, height * width))
        begins.append(edges[0::2][:edges.size // 2])
        ends.append(edges[1::2])
        ids.append(np.full(edges.size // 2, one.class_id, np.int32))
    empty = np.zeros(0, np.int64)
    begin, end = np.concatenate([empty, *begins]), np.concatenate([empty, *ends])
    order = np.lexsort((end, begin))
    # Between consecutive runs lie gaps, which have length 0 if the runs touch.
    edges = np.concatenate([[0], np.stack([begin[order], end[order]], 1).ravel(),
                            [height * width]])
    lengths = np.diff(edges)
    if lengths.min() < 0:
        raise ValueError('classes overlap')
    values = np.full(lengths.size, -1, np.int32)
    values[1::2] = np.concatenate([np.zeros(0, np.int32), *ids])[order]
    return np.repeat(values, lengths).reshape(width, height).T


def grey_png(data: bytes, height: int, width: int) -> NDArray[np.uint8]:
    """Returns uint8 [height, width] of an 8-bit grey PNG without filters, as the server writes
    them. Raises ValueError for any other data."""
    if data[:8] != b'\x89PNG\r\n\x1a\n':
        raise ValueError('this is no PNG')
    header, packed, at = b'', [], 8
    while at + 8 <= len(data):
        length, kind = int.from_bytes(data[at:at + 4], 'big'), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + length]
        if kind == b'IHDR':
            header = body
        elif kind == b'IDAT':
            packed.append(body)
        at += length + 12
    wanted = width.to_bytes(4, 'big') + height.to_bytes(4, 'big') + bytes([8, 0, 0, 0, 0])
    size = height * (width + 1)
    try:
        rows = zlib.decompressobj().decompress(b''.join(packed), size)
    except zlib.error as error:
        raise ValueError('the PNG is corrupt') from error
    if header != wanted or len(rows) != size:
        raise ValueError(f'this is no 8-bit grey PNG of {height} x {width}')
    lines = np.frombuffer(rows, np.uint8).reshape(height, width + 1)
    if lines[:, 0].any():
        raise ValueError('the PNG has filters')
    return lines[:, 1:]


def model_info(model: Any) -> ModelInfo:
    """Converts a Model."""
    return ModelInfo(
        name=model.name, task=_messages.Model.Task.Name(model.task),
        state=_messages.Model.State.Name(model.state), state_reason=model.state_reason,
        version_labels=tuple(model.version_labels),
        input_sizes=tuple((size.height, size.width) for size in model.input.buckets),
        class_count=model.class_count, labels=tuple(known.label for known in model.classes),
        max_batch_size=model.max_batch_size, weights_size_bytes=model.weights_size_bytes,
        content_sha256=model.content_sha256, precision=model.precision,
        variant=model.variant, config_source=model.config_source,
        resize=model.input.resize, resize_size=model.input.resize_size)


def answers(response: Any, parse: Any, count: int) -> List[Union[Any, VisionError]]:
    """Returns an element for each of the `count` results. It is the value of `parse`, or the
    picture's error.

    Raises VisionError (DATA_LOSS) if the response has another number of results.
    """
    if len(response.results) != count:
        raise VisionError(grpc.StatusCode.DATA_LOSS,
                          f'{len(response.results)} results for {count} pictures')
    return [_answer(result, response, parse) for result in response.results]


def _answer(result: Any, response: Any, parse: Any) -> Any:
    if result.error.code:
        return from_status(result.error)
    try:
        return parse(result, response)
    except ValueError as error:
        return VisionError(grpc.StatusCode.DATA_LOSS, f'the answer is malformed: {error}')
