"""The rows of each task: the request, the schema, and the row of an answer. sfmamba-batch, Ray and
Spark use the same rows."""

import dataclasses
from typing import Any, Callable, Dict, List

import pyarrow as pa

from .._errors import VisionError, from_status
from .._flow import Question
from .._requests import Options
from ..client import Client
from ..client import question as question_of

# This number changes if the columns change. A job can be resumed only with the schema version with
# which it began.
SCHEMA_VERSION = 1

Row = Dict[str, Any]

_STRINGS = pa.list_(pa.string())
_INTS = pa.list_(pa.int32())
_FLOATS = pa.list_(pa.float32())


def _classification(result: Any) -> Row:
    categories = result.categories
    return {'class_ids': [one.class_id for one in categories],
            'labels': [one.label for one in categories],
            'scores': [one.score for one in categories],
            'embedding': list(result.embedding) or None}


def _detections(result: Any) -> Row:
    found = result.detections
    return {'height': result.image_height, 'width': result.image_width,
            'class_ids': [one.class_id for one in found],
            'labels': [one.label for one in found],
            'scores': [one.score for one in found],
            'boxes': [[one.box.x_min, one.box.y_min, one.box.x_max, one.box.y_max]
                      for one in found],
            'masks': ([one.rle.counts for one in found]
                      if all(one.HasField('rle') for one in found) and found else None)}


def _segmentation(result: Any) -> Row:
    areas = {area.class_id: area.pixel_count for area in result.areas}
    classes = result.rle.classes
    return {'height': result.height, 'width': result.width,
            'class_ids': [one.class_id for one in classes],
            'labels': [one.label for one in classes],
            'pixel_counts': [areas.get(one.class_id, 0) for one in classes],
            'masks': [one.rle.counts for one in classes]}


@dataclasses.dataclass(frozen=True)
class Task:
    """One of the tasks 'classify', 'detect' and 'segment', and the rows of its answers.

    Attributes:
      kind: the server's name of the task, as in Model.task, for example 'CLASSIFICATION'.
      method: the client's method for the task.
      columns: the columns of an answer, without `id`, `reason` and `message`.
      row: makes the columns of an answer from a result message.
    """

    kind: str
    method: Callable[..., Any]
    columns: List[pa.Field]
    row: Callable[[Any], Row]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field('id', pa.string(), nullable=False), *self.answer_fields])

    @property
    def answer_fields(self) -> List[pa.Field]:
        """All columns except the id. If the picture failed, all columns except `reason` and
        `message` are null. Otherwise, `reason` and `message` are null."""
        return [*self.columns, pa.field('reason', pa.string()), pa.field('message', pa.string())]

    def question(self, model: str, priority: str = 'LOW', **parameters: Any) -> Question:
        """Returns the Question, which holds the method and the parameters for each picture's
        request. Raises TypeError or ValueError for parameters that the method does not accept."""
        return question_of(self.method, {
            'model': model, 'options': Options(priority=priority), **parameters})

    def answer(self, response: Any) -> Row:
        """Returns the row of a response to a request with one picture."""
        if len(response.results) != 1:
            return self.failure('DATA_LOSS', f'{len(response.results)} results for one picture')
        [result] = response.results
        if result.error.code:
            return self.error(from_status(result.error))
        return {**self.row(result), 'reason': None, 'message': None}

    def error(self, error: VisionError) -> Row:
        # The message may begin with the path of the invalid field, such as 'images[0].encoded: '.
        # This prefix is removed, because each request has only one picture.
        message = error.message[len(error.field):].lstrip(': ') if (
            error.field and error.message.startswith(error.field)) else error.message
        return self.failure(error.reason or error.code.name, message)

    def failure(self, reason: str, message: str) -> Row:
        """Returns the row of a picture that was not answered."""
        return {**{column.name: None for column in self.columns},
                'reason': reason, 'message': message}


TASKS = {
    'classify': Task('CLASSIFICATION', Client.classify, [
        pa.field('class_ids', _INTS), pa.field('labels', _STRINGS), pa.field('scores', _FLOATS),
        pa.field('embedding', _FLOATS)], _classification),
    'detect': Task('DETECTION', Client.detect, [
        pa.field('height', pa.int32()), pa.field('width', pa.int32()),
        pa.field('class_ids', _INTS), pa.field('labels', _STRINGS), pa.field('scores', _FLOATS),
        pa.field('boxes', pa.list_(_FLOATS)), pa.field('masks', _STRINGS)], _detections),
    'segment': Task('SEGMENTATION', Client.segment, [
        pa.field('height', pa.int32()), pa.field('width', pa.int32()),
        pa.field('class_ids', _INTS), pa.field('labels', _STRINGS),
        pa.field('pixel_counts', pa.list_(pa.int64())), pa.field('masks', _STRINGS)],
        _segmentation),
}


class Requests:
    """Makes the requests of one Question, which has the same parameters for all pictures.

    Copying a prepared request takes a tenth of the time of making a new one for each picture.
    """

    def __init__(self, question: Question) -> None:
        self.method = question.method
        self._ready = question.about(b'')
        del self._ready.images[:]

    def about(self, image: Any) -> Any:
        """Returns the request for one picture. `image` is the picture as an Image message."""
        request = self.method.request()
        request.CopyFrom(self._ready)
        request.images.append(image)
        return request

