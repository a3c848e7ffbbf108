"""Converts pictures in the forms that Python has to the server's Image messages."""

import dataclasses
import io
import os
from typing import Any, Optional, Protocol, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _messages
from .results import ModelInfo

_FORMATS = {1: 'GRAY8', 3: 'RGB8', 4: 'RGBA8'}  # Formats by number of channels.
_ORIENTATION = 0x0112  # The tag of EXIF's orientation.
_TENSOR_TYPES = {np.dtype(np.float32): 'FP32', np.dtype(np.float16): 'FP16'}


class BinaryFile(Protocol):
    """A file that is open in binary mode. It is read to its end."""

    def read(self) -> bytes: ...


class PilImage(Protocol):
    """The methods of a PIL image that are used here."""

    @property
    def mode(self) -> str: ...

    def convert(self, mode: str) -> Any: ...


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture with additional settings.

    Attributes:
      source: the picture, in any other form that the client's methods accept.
      crop: the part to use, (x_min, y_min, x_max, y_max) as fractions (0..1) of the oriented
        picture.
      ignore_orientation: whether to use the pixels as stored, although EXIF says that the picture
        is rotated.
    """

    source: 'Source'
    crop: Optional[Tuple[float, float, float, float]] = None
    ignore_orientation: bool = False


@dataclasses.dataclass(frozen=True)
class Resized:
    """A picture that the client resizes, so that the server receives fewer bytes and need not
    decode them. Needs Pillow.

      model = client.model('photographs')
      client.classify(sfmamba.Resized('cat.jpg', model), model='photographs')

    For a PNG, a lossless WebP, an array or a PIL image, the pixels are equal to those that the
    server would compute itself. For a JPEG they differ by a few levels if the server decodes it at
    a smaller scale.

    Attributes:
      source: a path, bytes, a binary file, a uint8 array or a PIL image.
      model: the classifier to which the picture will be sent.
    """

    source: Any
    model: ModelInfo


Source = Union[str, 'os.PathLike[str]', bytes, bytearray, memoryview, BinaryFile, PilImage,
               NDArray[Any], Picture, Resized]


def several(images: Any) -> Any:
    """Returns `images`, which must be several pictures. Raises TypeError for one picture, because
    iterating over it would give the characters of a path, the lines of a file or rows of pixels."""
    if isinstance(images, np.ndarray):
        one = images.ndim < 3 or (images.ndim == 3 and (images.dtype != np.uint8
                                                        or images.shape[2] in _FORMATS))
    else:
        one = (isinstance(images, (str, os.PathLike, bytes, bytearray, memoryview, Picture, Resized))
               or hasattr(images, 'read') or hasattr(images, 'convert'))
    if one:
        raise TypeError('images: got one picture, expected several, such as a list of them')
    return images


def readable_again(source: Any) -> Any:
    """Returns `source`. If `source` is an open file, returns its bytes instead, because a retry
    could not read the file a second time. Raises TypeError if the file is open in text mode."""
    if not hasattr(source, 'read') or hasattr(source, 'convert'):
        return source
    data = source.read()
    if not isinstance(data, bytes):
        raise TypeError('the file must be open in binary mode')
    return data


def to_image(source: Any) -> Any:
    """Returns the Image message of a path, bytes, an open binary file, an array, a PIL image or a
    Picture.

    Raises OSError if a file cannot be read, and TypeError or ValueError for any other problem.
    """
    if isinstance(source, Picture):
        image = _to_image(source.source, not source.ignore_orientation)
        if source.crop is not None:
            image.crop.x_min, image.crop.y_min, image.crop.x_max, image.crop.y_max = source.crop
        if source.ignore_orientation:
            image.orientation = _messages.Image.IGNORE
        return image
    return _to_image(source, True)


def _to_image(source: Any, oriented: bool) -> Any:
    if isinstance(source, Picture):
        return to_image(source)
    if isinstance(source, Resized):
        return _resized(source.source, source.model)
    if isinstance(source, (str, os.PathLike)):
        with open(source, 'rb') as file:
            return _messages.Image(encoded=file.read())
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _messages.Image(encoded=bytes(source))
    if isinstance(source, np.ndarray):
        return _from_array(source)
    if hasattr(source, 'convert') and hasattr(source, 'mode'):  # The source is a PIL image.
        return _from_array(_pil_pixels(source, oriented))
    if hasattr(source, 'read'):
        return _messages.Image(encoded=readable_again(source))
    raise TypeError('a picture is a path, bytes, a binary file, a NumPy array or a PIL image, '
                    f'not {type(source).__name__}')


def _pil_pixels(image: Any, oriented: bool) -> NDArray[np.uint8]:
    """Returns the pixels that the server would find in the image's file. If `oriented`, they are
    rotated as the EXIF data say."""
    # Pillow before 11 opens a PNG of 16-bit grey with mode I.
    deep = image.mode.startswith('I;16') or (image.mode == 'I'
                                             and getattr(image, 'format', None) == 'PNG')
    if oriented and hasattr(image, 'getexif') and image.getexif().get(_ORIENTATION, 1) != 1:
        from PIL import ImageOps  # Available, because the image is Pillow's.
        image = ImageOps.exif_transpose(image)
    if deep:
        return (np.asarray(image) >> 8).astype(np.uint8)
    return np.asarray(image if image.mode in ('L', 'RGB', 'RGBA') else image.convert('RGB'))


def _resized(source: Any, model: ModelInfo) -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ModuleNotFoundError('Resized needs Pillow: pip install pillow', name='PIL') from None
    if model.resize not in ('center_crop', 'stretch') or model.task != 'CLASSIFICATION':
        raise ValueError('a picture is resized for a classifier that is ready, '
                         f'not for {model.name}')
    if isinstance(source, (bytes, bytearray, memoryview)):
        source = Image.open(io.BytesIO(source))
    elif isinstance(source, np.ndarray):
        source = Image.fromarray(source)
    elif not hasattr(source, 'convert'):
        source = Image.open(source)
    image = Image.fromarray(_pil_pixels(source, True)).convert('RGB')
    [(side, _)], size = model.input_sizes, model.resize_size
    width = height = size
    if model.resize == 'center_crop':
        short = min(image.size)
        width, height = (size * length // short for length in image.size)
    left, top = round((width - side) / 2), round((height - side) / 2)  # Halves are rounded to even.
    image = image.resize((width, height), Image.BICUBIC).crop((left, top, left + side, top + side))
    planes = np.asarray(image).transpose(2, 0, 1)
    return _messages.Image(tensor=_messages.Tensor(data_type='UINT8', shape=planes.shape,
                                                   data=planes.tobytes()))


def _from_array(array: NDArray[Any]) -> Any:
    if array.dtype == np.uint8:
        pixels = array[:, :, np.newaxis] if array.ndim == 2 else array
        if pixels.ndim == 3 and pixels.shape[2] in _FORMATS and pixels.size:
            height, width, channels = pixels.shape
            return _messages.Image(pixels=_messages.PixelBuffer(
                width=width, height=height, format=_FORMATS[channels], data=pixels.tobytes()))
    kind = _TENSOR_TYPES.get(array.dtype.newbyteorder('='))
    if kind and array.ndim == 3 and array.shape[0] == 3:
        data = array.astype(array.dtype.newbyteorder('<'), copy=False).tobytes()
        return _messages.Image(tensor=_messages.Tensor(data_type=kind, shape=array.shape,
                                                       data=data))
    raise ValueError('an array is uint8 [H, W], [H, W, 3] (RGB) or [H, W, 4] (RGBA), or a '
                     "preprocessed float32 or float16 [3, H, W], not "
                     f'{array.dtype} {list(array.shape)}')
