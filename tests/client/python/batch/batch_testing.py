"""A fake server for tests of sfmamba-batch, and pictures for it."""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import grpc

sys.path.append(str(pathlib.Path(__file__).parents[1]))

from fake_server import FakeServer  # noqa: E402
from sfmamba import _messages  # noqa: E402

MODEL = 'models/fake/versions/1'
COMMAND = str(pathlib.Path(sys.executable).with_name('sfmamba-batch'))
# The number of pictures in the longest jobs.
PICTURES = int(os.environ.get('BATCH_PICTURES', '300'))
PATIENCE = 60 + PICTURES / 20  # In seconds.


def details(code, reason='', delay=None, field=''):
    """Returns a google.rpc.Status with this code and these details. `delay` is in seconds."""
    status = _messages.Status(code=code.value[0], message=f'{field}: told so' if field else 'told so')

    def add(detail):
        status.details.add(type_url=f'type.googleapis.com/{detail.DESCRIPTOR.full_name}',
                           value=detail.SerializeToString())
    if reason:
        add(_messages.ErrorInfo(reason=reason, domain='sfmamba.serving'))
    if delay is not None:
        retry = _messages.RetryInfo()
        retry.retry_delay.nanos = round(delay * 1e9)
        add(retry)
    if field:
        add(_messages.BadRequest(field_violations=[{'field': field}]))
    return status


def refusal(code, reason='', delay=None, field=''):
    """Returns the answer with which FakeServer refuses a whole call."""
    status = details(code, reason, delay, field)
    return code, (('grpc-status-details-bin', status.SerializeToString()),)


class BatchServer(FakeServer):
    """Serves one classifier. Its answers depend only on the pictures' bytes.

    Attributes:
      asked: the bytes of each picture, in the order of arrival.
      refuse: a function that is called with each ClassifyRequest. If it returns None, the server
        answers with classes. Otherwise, the returned value is the answer.
      health: 1 if the server serves, 2 if it does not.
    """

    def __init__(self, refuse=lambda request: None, weights='a', name=MODEL, port=0):
        self.asked = []
        self.refuse = refuse
        self.health = 1
        self.weights = weights
        self.name = name
        self._answered = threading.Condition()
        super().__init__(self._any, port=port)

    def wait_for(self, count):
        """Waits until `count` pictures have arrived."""
        with self._answered:
            assert self._answered.wait_for(lambda: len(self.asked) >= count, PATIENCE)

    def _any(self, request):
        kind = type(request).__name__
        if kind == 'HealthCheckRequest':
            return _messages.HealthCheckResponse(status=self.health)
        if kind in ('GetModelRequest', 'ListModelsRequest'):
            model = _messages.Model(name=self.name, task='CLASSIFICATION', state='READY',
                                    content_sha256=self.weights)
            if kind == 'ListModelsRequest':
                return _messages.ListModelsResponse(models=[model])
            if request.name not in (self.name, self.name.split('/')[1],
                                    self.name.partition('/versions')[0]):
                return refusal(grpc.StatusCode.NOT_FOUND, 'MODEL_NOT_FOUND')
            return model
        refused = self.refuse(request)
        data = request.images[0].encoded
        with self._answered:
            self.asked.append(data)
            self._answered.notify_all()
        return refused if refused is not None else classified(data)


def classified(data):
    """Returns the answer to a picture with these bytes. The answer is an error if the bytes begin
    with "bad"."""
    response = _messages.ClassifyResponse(model=MODEL)
    result = response.results.add()
    if data.startswith(b'bad'):
        result.error.CopyFrom(details(grpc.StatusCode.INVALID_ARGUMENT, 'IMAGE_DECODE_FAILED',
                                      field='images[0].encoded'))
        return response
    digest = hashlib.sha256(data).digest()
    for place in range(2):
        result.categories.add(class_id=digest[place], label=f'class {digest[place]}',
                              score=digest[place + 2] / 256)
    return response


def folder(test):
    found = tempfile.TemporaryDirectory()
    test.addCleanup(found.cleanup)
    return pathlib.Path(found.name)


def add_pictures(root, count, bad=()):
    """Writes `count` files: 00000.jpg, 00001.jpg and so on. A file contains a short text instead of
    a picture. All texts differ. Files with a number in `bad` contain a text that begins with
    "bad", which the server refuses."""
    root.mkdir(exist_ok=True)
    for number in range(count):
        text = f'bad {number}' if number in bad else f'picture {number}'
        (root / f'{number:05}.jpg').write_text(text)


def server(test, *arguments, **named):
    """Starts a BatchServer, which is stopped at the end of the test."""
    started = BatchServer(*arguments, **named)
    test.addCleanup(started.stop)
    return started


def begin(*arguments):
    """Starts sfmamba-batch in a new process."""
    return subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run(*arguments):
    """Runs sfmamba-batch. Returns its exit code, output and errors."""
    with begin(*arguments) as process:
        out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def data_files(output):
    """Returns the bytes of each output file part-*, by file name."""
    return {path.name: path.read_bytes() for path in output.glob('part-*')}


def wait_until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)
