"""Makes the requests for the methods Classify, Detect and Segment. A long list of pictures is
divided into several requests, because the server limits the pictures and bytes of a request."""

import dataclasses
import math
import re
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _answers, _messages
from ._errors import VisionError
from ._images import to_image

Pictures = Union[List[Any], Tuple[Any, ...]]  # Several pictures, in annotations.

MAX_MESSAGE_BYTES = 64 << 20  # This is the server's limit.
_ROOM = 256 << 10  # Part of MAX_MESSAGE_BYTES for everything except the pictures.
_TRACEPARENT = re.compile('[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}')


@dataclasses.dataclass(frozen=True)
class Options:
    """The settings that classify(), detect() and segment() accept besides their own parameters.

    Attributes:
      priority: 'HIGH', 'NORMAL' or 'LOW': how urgent the request is while it waits.
      max_queue_wait: seconds after the request's arrival within which its pictures must be in a
        batch. None: only the deadline applies.
      resize: 'STRETCH', 'LETTERBOX' or 'CENTER_CROP' instead of the model's own preprocessing.
        '': the model's own.
      timing: whether answers contain how long each stage of the server took.
      request_id: at most 128 characters. The server writes it to its log.
      traceparent: the caller's span in W3C's format, '00-{trace}-{span}-{flags}'. If its flags
        end in 1, the server's spans become children of this span. '': the server decides. Streams
        do not send it.
    """

    priority: str = 'NORMAL'
    max_queue_wait: Optional[float] = None
    resize: str = ''
    timing: bool = False
    request_id: str = ''
    traceparent: str = ''

    def __post_init__(self) -> None:
        if self.traceparent and not _TRACEPARENT.fullmatch(self.traceparent):
            raise ValueError(f'a traceparent is 00-{{32 digits}}-{{16 digits}}-{{2 digits}} of 0-9a-f, '
                             f'not {self.traceparent!r}')


@dataclasses.dataclass(frozen=True)
class Crops:
    """How a classifier looks at the box of each object.

    Attributes:
      model: '{id}' or 'models/{id}/versions/{n}'. '': the only or default classifier.
      top_k: number of classes. 0 means 1.
      min_score: classes with a lower score are omitted. 0: none is omitted.
      embedding: whether answers also contain the pooled features.
      margin: 0..1. Each side of a box moves outwards by this fraction of the box's size, but
        stays inside the picture.
    """

    model: str = ''
    top_k: int = 0
    min_score: float = 0.0
    embedding: bool = False
    margin: float = 0.0


@dataclasses.dataclass(frozen=True)
class Slide:
    """A window in which a segmenter looks at a resized picture part by part.

    Attributes:
      width, height: size of the window in pixels of the resized picture. 0: the model's short
        side.
      stride_x, stride_y: distances between windows. 0: two thirds of the window's side.
    """

    width: int = 0
    height: int = 0
    stride_x: int = 0
    stride_y: int = 0


@dataclasses.dataclass(frozen=True)
class Method:
    """A method of the server.

    Attributes:
      path: the method's name in gRPC.
      request, response: the classes of its messages.
      parse: makes an answer from a result and its response. None unless the method predicts.
      attempts: the maximum number of attempts of a call.
    """

    path: str
    request: Any
    response: Any
    parse: Optional[Callable[[Any, Any], Any]] = None
    attempts: int = 3


_SERVICE = '/sfmamba.v1.VisionService/'
CLASSIFY = Method(_SERVICE + 'Classify', _messages.ClassifyRequest, _messages.ClassifyResponse,
                  _answers.classification)
DETECT = Method(_SERVICE + 'Detect', _messages.DetectRequest, _messages.DetectResponse,
                _answers.detections)
SEGMENT = Method(_SERVICE + 'Segment', _messages.SegmentRequest, _messages.SegmentResponse,
                 _answers.segmentation)
STREAM_PATH = _SERVICE + 'StreamPredict'
GET_MODEL = Method(_SERVICE + 'GetModel', _messages.GetModelRequest, _messages.Model)
LIST_MODELS = Method(_SERVICE + 'ListModels', _messages.ListModelsRequest,
                     _messages.ListModelsResponse)
CHECK_HEALTH = Method('/grpc.health.v1.Health/Check', _messages.HealthCheckRequest,
                      _messages.HealthCheckResponse, attempts=1)


def _choice(argument: str, message: Any, field: str, got: Any) -> Any:
    """Returns `got`, which must be a value of the field's enum. Errors name the caller's
    `argument`."""
    names = [value.name for value in message.DESCRIPTOR.fields_by_name[field].enum_type.values]
    if isinstance(got, str) and got not in names:
        choices = ', '.join(repr(name) for name in names if not name.endswith('_UNSPECIFIED'))
        raise ValueError(f'{argument}: got {got!r}, expected one of {choices}')
    return got


def _is_bool(value: Any) -> bool:
    return type(value).__name__ in ('bool', 'bool_')  # NumPy's type is accepted too.


def _refuse_bools(name: str, field: Any, value: Any) -> None:
    """Raises TypeError if `value` contains a bool but the field has numbers. protobuf would convert
    True to 1."""
    values = value if isinstance(value, (list, tuple)) else [value]
    others = (field.CPPTYPE_BOOL, field.CPPTYPE_STRING, field.CPPTYPE_MESSAGE)
    if field.cpp_type not in others and any(map(_is_bool, values)):
        raise TypeError(f'{name}: got {value!r}, expected a number')


def _message(kind: Any, **fields: Any) -> Any:
    """Returns a message of class `kind`. Fields that are None are not set. Raises TypeError or
    ValueError with the field's name, which protobuf's own errors do not contain."""
    message = kind()
    for field, value in fields.items():
        _refuse_bools(field, kind.DESCRIPTOR.fields_by_name[field], value)
        try:
            message.MergeFrom(kind(**{field: value}))
        except (TypeError, ValueError) as error:
            wrong = TypeError if isinstance(error, TypeError) else ValueError
            raise wrong(f'{field}: got {value!r}: {error}') from None
    return message


def classify_params(top_k: int, min_score: float, score_type: str, embedding: bool,
                    class_filter: Sequence[int], heat_map: Union[int, str, None]) -> Any:
    score = _choice('score_type', _messages.ClassifyParams, 'score_type', score_type)
    params = _message(_messages.ClassifyParams, top_k=top_k, min_score=min_score, score_type=score,
                      include_embedding=embedding, class_filter=class_filter)
    if _is_bool(heat_map):
        heat_map = 'best' if heat_map else None
    if heat_map is not None:
        params.heat_map.encoding = params.heat_map.VALUES
        if isinstance(heat_map, str) and heat_map != 'best':
            raise ValueError(f"heat_map: got {heat_map!r}, expected 'best' or a class's id")
        if heat_map != 'best':
            params.heat_map.class_id = heat_map
    return params


@dataclasses.dataclass(frozen=True)
class Tiles:
    """Overlapping tiles of a picture, in which a detector looks for small objects.

    Attributes:
      width, height: size of a tile in pixels. 0: the smallest size for which `max_tiles` suffices,
        but at least the model's input size.
      overlap: the common part of neighbouring tiles, as a fraction (0..0.9) of the tile's side.
      whole: whether the detector also looks at the whole picture.
      merge: 'NMS' keeps only the best of the boxes that match. 'GREEDY_NMM' also enlarges the
        best box, so that it encloses the others.
      match: 'IOU' compares the intersection of two boxes with their union, 'IOS' with the smaller
        box.
      match_threshold: boxes match if the ratio of `match` is at least this, 0..1.
      max_tiles: the maximum number of model inputs for one picture. Each tile is a model input,
        and so is the whole picture if `whole` is true. 0: the server's limit.
    """

    width: int = 0
    height: int = 0
    overlap: float = 0.2
    whole: bool = True
    merge: str = 'NMS'
    match: str = 'IOU'
    match_threshold: float = 0.5
    max_tiles: int = 0


def _tiles_message(tiles: Optional[Tiles]) -> Any:
    if tiles is None:
        return None
    return _message(_messages.Tiles, width=tiles.width, height=tiles.height, overlap=tiles.overlap,
                    without_picture=not tiles.whole,
                    merge=_choice('merge', _messages.Tiles, 'merge', tiles.merge),
                    match=_choice('match', _messages.Tiles, 'match', tiles.match),
                    match_threshold=tiles.match_threshold, max_tiles=tiles.max_tiles)


def _crops_message(crops: Optional[Crops]) -> Any:
    if crops is None:
        return None
    return _message(_messages.Crops, model=crops.model, top_k=crops.top_k,
                    min_score=crops.min_score, include_embedding=crops.embedding,
                    margin=crops.margin)


def detect_params(score_threshold: Optional[float], nms_iou_threshold: Optional[float],
                  max_detections: int, masks: bool, class_agnostic_nms: bool,
                  class_filter: Sequence[int], tiles: Optional[Tiles] = None,
                  crops: Optional[Crops] = None) -> Any:
    return _message(
        _messages.DetectParams,
        score_threshold=score_threshold, nms_iou_threshold=nms_iou_threshold,
        max_detections=max_detections, class_filter=class_filter,
        class_agnostic_nms=class_agnostic_nms, tiles=_tiles_message(tiles),
        crops=_crops_message(crops),
        mask_encoding='COCO_RLE' if masks else 'MASK_ENCODING_UNSPECIFIED')


def segment_params(model_size: bool, confidence: bool, class_filter: Sequence[int],
                   slide: Optional[Slide]) -> Any:
    return _message(
        _messages.SegmentParams,
        encoding='RLE_PER_CLASS', output_size='MODEL' if model_size else 'ORIGINAL',
        include_class_areas=True, class_filter=class_filter, include_confidence_map=confidence,
        slide=None if slide is None else _message(_messages.SlidingWindow, **dataclasses.asdict(slide)))


def _request_options(options: Options, partial: bool) -> Any:
    kind = _messages.RequestOptions
    message = _message(
        kind, priority=_choice('priority', kind, 'priority', options.priority),
        resize=_choice('resize', kind, 'resize', options.resize or 'RESIZE_UNSPECIFIED'),
        include_timing=options.timing, allow_partial_results=partial)
    if options.max_queue_wait is not None:
        if not math.isfinite(options.max_queue_wait):
            raise ValueError(f'max_queue_wait: got {options.max_queue_wait}, expected seconds')
        nanos = round(options.max_queue_wait * 1e9)
        message.max_queue_wait.seconds, message.max_queue_wait.nanos = divmod(nanos, 10**9)
    return message


def as_asked(images: Any, answers: List[Any]) -> Any:
    """Returns all answers for a list of pictures. For a single picture, returns its answer or
    raises its error."""
    if isinstance(images, (list, tuple)):
        return answers
    [answer] = answers
    if isinstance(answer, VisionError):
        raise answer
    return answer


def split(sizes: Sequence[int], max_images: int, max_bytes: int) -> Iterator[Tuple[int, int]]:
    """Divides pictures into requests. `sizes` are the pictures' sizes in bytes. Yields the range
    [begin, end) of each request's pictures. A request has as many consecutive pictures as its
    limits allow, but at least one."""
    begin, held = 0, 0
    for index, size in enumerate(sizes):
        if index > begin and (index - begin == max_images or held + size > max_bytes):
            yield begin, index
            begin, held = index, 0
        held += size
    if sizes:
        yield begin, len(sizes)


def requests(method: Method, images: Any, model: str, params: Any, options: Options,
             max_images: int) -> List[Any]:
    """Returns the requests for one picture or for a list of pictures. The requests for a list allow
    partial results.

    Raises the errors of to_image(). Raises ValueError for values that their field does not accept.
    """
    several = isinstance(images, (list, tuple))
    messages = [to_image(image) for image in (images if several else [images])]
    sizes = [message.ByteSize() for message in messages]
    common = _message(method.request, model=model, params=params, request_id=options.request_id,
                      options=_request_options(options, partial=several))
    parts = []
    for begin, end in split(sizes, max_images, MAX_MESSAGE_BYTES - _ROOM):
        part = method.request()
        part.CopyFrom(common)
        part.images.extend(messages[begin:end])
        parts.append(part)
    return parts
