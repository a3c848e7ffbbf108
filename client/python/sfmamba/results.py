"""The server's answers. All are immutable; arrays are the caller's to copy before changing them.

Pixels are those of the oriented picture: x to the right, y down, from the top left corner.
"""

import dataclasses
from typing import List, Optional, Tuple, TypeVar, Union

import grpc
import numpy as np
from numpy.typing import NDArray

from . import _rle
from ._errors import VisionError

Answer = TypeVar('Answer')
Answers = List[Union[Answer, VisionError]]  # For a list of pictures, in their order.


@dataclasses.dataclass(frozen=True)
class Timing:
    """Where a request's time went, in seconds; of several pictures the slowest for each stage.

    Attributes:
      batch_size: pictures that were computed together.
      device: such as 'cpu'.
    """

    decode: float
    preprocess: float
    queue: float
    inference: float
    postprocess: float
    total: float
    batch_size: int
    device: str


@dataclasses.dataclass(frozen=True, eq=False)
class HeatMap:
    """What each part of a picture adds to a class's logit.

    Attributes:
      class_id: of the class.
      values: float32 [H, W] of the network's cells, whose mean is the logit. They cover what the
        model saw of the picture: with its own preprocessing often a square in the middle.
    """

    class_id: int
    values: NDArray[np.float32]


@dataclasses.dataclass(frozen=True, eq=False)
class Classification:
    """The classes of one picture, best first; equal scores by class.

    Attributes:
      labels: K names.
      scores: float32 [K]: 0..1 unless logits were asked for.
      class_ids: int32 [K].
      embedding: float32 [D], the pooled features of the last stage; None unless asked for.
      heat_map: where one class was seen; None unless asked for.
      model: that answered, 'models/{id}/versions/{n}'.
      timing: None unless asked for.
    """

    labels: Tuple[str, ...]
    scores: NDArray[np.float32]
    class_ids: NDArray[np.int32]
    embedding: Optional[NDArray[np.float32]]
    model: str
    timing: Optional[Timing]
    heat_map: Optional[HeatMap] = None


@dataclasses.dataclass(frozen=True, eq=False)
class Detections:
    """The objects of one picture, best first.

    Attributes:
      labels: N names.
      scores: float32 [N], 0..1.
      class_ids: int32 [N].
      boxes: float32 [N, 4]: x_min, y_min, x_max, y_max in pixels, half-open, clipped.
      height, width: of the picture in pixels.
      rles: N strings of COCO's compressed run lengths, as pycocotools takes them with
        `size=[height, width]`; empty if there are no masks.
      model: that answered, 'models/{id}/versions/{n}'.
      timing: None unless asked for.
      crops: N answers of the classifier that was asked for, without model and timing, or the errors
        of those that it did not answer; empty if none was asked for.
    """

    labels: Tuple[str, ...]
    scores: NDArray[np.float32]
    class_ids: NDArray[np.int32]
    boxes: NDArray[np.float32]
    height: int
    width: int
    rles: Tuple[str, ...]
    model: str
    timing: Optional[Timing]
    crops: Tuple[Union[Classification, VisionError], ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def mask(self, index: int) -> NDArray[np.bool_]:
        """The mask of one object, bool [H, W] of the whole picture.

        Raises IndexError if there is none, VisionError (DATA_LOSS) if it cannot be decoded.
        """
        try:
            return _rle.decode_mask(self.rles[index], self.height, self.width)
        except ValueError as error:
            raise VisionError(grpc.StatusCode.DATA_LOSS, f'mask {index}: {error}') from error

    @property
    def masks(self) -> Optional[NDArray[np.bool_]]:
        """All masks, bool [N, H, W]; None if the answer has none. They are decoded at each use
        and take N * H * W bytes: of large pictures take mask(i) one by one."""
        if len(self.rles) != len(self):
            return None
        masks = np.empty((len(self), self.height, self.width), bool)
        for index in range(len(self)):
            masks[index] = self.mask(index)
        return masks


@dataclasses.dataclass(frozen=True)
class ClassArea:
    """How much of a picture a class covers.

    Attributes:
      class_id: its number in the class map.
      label: its name.
      pixel_count: its pixels.
      fraction: of all pixels, 0..1.
    """

    class_id: int
    label: str
    pixel_count: int
    fraction: float


@dataclasses.dataclass(frozen=True, eq=False)
class Segmentation:
    """The class of each pixel of one picture.

    Attributes:
      class_map: int32 [H, W] of class ids; -1 where there is no class, because `class_filter`
        leaves it out.
      areas: of the classes in it, the largest first.
      confidence: float32 [H, W], the softmax probability of each pixel's class in steps of 1/255;
        None unless asked for.
      model: that answered, 'models/{id}/versions/{n}'.
      timing: None unless asked for.
    """

    class_map: NDArray[np.int32]
    areas: Tuple[ClassArea, ...]
    confidence: Optional[NDArray[np.float32]]
    model: str
    timing: Optional[Timing]


@dataclasses.dataclass(frozen=True)
class ModelInfo:
    """A model of the server.

    Attributes:
      name: 'models/{id}/versions/{n}'.
      task: 'CLASSIFICATION', 'DETECTION' or 'SEGMENTATION'.
      state: 'LOADING', 'READY', 'UNLOADING' or 'UNAVAILABLE'.
      state_reason: why, if it is not ready.
      version_labels: names of this version.
      input_sizes: (height, width) in pixels.
      resize: how pictures become inputs: 'center_crop', 'stretch' or 'keep_ratio'; empty unless it
        is ready.
      resize_size: the side that they are resized to before an input is cut out of the middle; 0 for
        'keep_ratio'.
      class_count: its classes.
      labels: their names by class id; empty in a list of models.
      max_batch_size: pictures computed together at most.
      weights_size_bytes: of the weights' file.
      content_sha256: of the weights' file.
      precision: what it computes in, 'FP32', 'BF16' or 'FP16'; empty unless it is ready.
      variant: of the network, such as 'mamba_vision_b'; empty unless it is ready.
      config_source: the files that its configuration comes from; empty unless it is ready.
    """

    name: str
    task: str
    state: str
    state_reason: str
    version_labels: Tuple[str, ...]
    input_sizes: Tuple[Tuple[int, int], ...]
    class_count: int
    labels: Tuple[str, ...]
    max_batch_size: int
    weights_size_bytes: int
    content_sha256: str
    precision: str
    variant: str
    config_source: str
    resize: str
    resize_size: int
