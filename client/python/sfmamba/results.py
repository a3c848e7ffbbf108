"""The server's answers. All are immutable. Copy arrays before changing them.

Pixel coordinates refer to the oriented picture. x points to the right and y down, from the top
left corner.
"""

import dataclasses
from typing import List, Optional, Tuple, TypeVar, Union

import grpc
import numpy as np
from numpy.typing import NDArray

from . import _rle
from ._errors import VisionError

Answer = TypeVar('Answer')
Answers = List[Union[Answer, VisionError]]  # One per picture of a list, in order.


@dataclasses.dataclass(frozen=True)
class Timing:
    """How long each stage of a request took, in seconds. For several pictures, each stage has the
    time of its slowest picture.

    Attributes:
      batch_size: number of pictures that were computed together.
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
    """What each part of a picture contributes to a class's logit.

    Attributes:
      class_id: the class.
      values: float32 [H, W], one value per cell of the network's last feature map. Their mean is
        the logit. The map covers the network's input, which may show only a part of the picture.
        For example, 'center_crop' cuts a square out of the middle of the picture.
    """

    class_id: int
    values: NDArray[np.float32]


@dataclasses.dataclass(frozen=True, eq=False)
class Classification:
    """The classes of one picture, best first. Equal scores are ordered by class.

    Attributes:
      labels: K names.
      scores: float32 [K]: 0..1 unless logits were requested.
      class_ids: int32 [K].
      embedding: float32 [D], the pooled features of the last stage. None unless requested.
      heat_map: where one class was seen. None unless requested.
      model: the model that answered, 'models/{id}/versions/{n}'.
      timing: None unless requested.
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
      boxes: float32 [N, 4]: x_min, y_min, x_max, y_max in pixels, half-open, clipped to the
        picture.
      height, width: size of the picture in pixels.
      rles: N strings of COCO's compressed run lengths, as pycocotools accepts them with
        `size=[height, width]`. Empty if there are no masks.
      model: the model that answered, 'models/{id}/versions/{n}'.
      timing: None unless requested.
      crops: N answers of the classifier in the request, without model and timing. If the
        classifier has failed for an object, the object has an error instead. Empty if the request
        has no classifier.
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
        """Returns the mask of one object, bool [H, W] of the whole picture.

        Raises IndexError if there is no mask, and VisionError (DATA_LOSS) if it cannot be decoded.
        """
        try:
            return _rle.decode_mask(self.rles[index], self.height, self.width)
        except ValueError as error:
            raise VisionError(grpc.StatusCode.DATA_LOSS, f'mask {index}: {error}') from error

    @property
    def masks(self) -> Optional[NDArray[np.bool_]]:
        """All masks, bool [N, H, W]. None if the answer has no masks. They are decoded at each use
        and take N * H * W bytes. For large pictures, use mask(i) for one object at a time."""
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
      pixel_count: the number of its pixels.
      fraction: the class's part of all pixels, 0..1.
    """

    class_id: int
    label: str
    pixel_count: int
    fraction: float


@dataclasses.dataclass(frozen=True, eq=False)
class Segmentation:
    """The class of each pixel of one picture.

    Attributes:
      class_map: int32 [H, W] of class ids. It is -1 for a pixel whose class `class_filter`
        excludes.
      areas: the area of each class in the map, the largest first.
      confidence: float32 [H, W], the softmax probability of each pixel's class in steps of 1/255.
        None unless requested.
      model: the model that answered, 'models/{id}/versions/{n}'.
      timing: None unless requested.
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
      state_reason: why the model is not ready.
      version_labels: labels of this version, such as 'stable'.
      input_sizes: (height, width) in pixels.
      resize: how pictures become inputs: 'center_crop', 'stretch' or 'keep_ratio'. Empty unless
        the model is ready.
      resize_size: the length in pixels to which pictures are resized before an input is cut out
        of the middle. 'center_crop' resizes the short side to this length, and 'stretch' resizes
        both sides. 0 for 'keep_ratio'.
      class_count: number of classes.
      labels: names of the classes by class id. Empty in a list of models.
      max_batch_size: the most pictures that are computed together.
      weights_size_bytes: size of the weights' file.
      content_sha256: SHA-256 of the weights' file.
      precision: the number format of computations, 'FP32', 'BF16' or 'FP16'. Empty unless the
        model is ready.
      variant: the network's variant, such as 'mamba_vision_b'. Empty unless the model is ready.
      config_source: the files that contain the model's configuration. Empty unless the model is
        ready.
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
