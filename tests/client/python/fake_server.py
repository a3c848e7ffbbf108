"""A vision server on a free port of this machine. The test determines its answers."""

import concurrent.futures
import threading

import grpc

from sfmamba import _messages

_SERVICE = 'sfmamba.v1.VisionService'
_HEALTH = 'grpc.health.v1.Health'


class FakeServer:
    """Answers each call with the next element of `answers`, and further calls with the last one.

    An answer is a message, or a pair of a code and trailing metadata. It may also be a function
    that gets the request and returns one of these. A Watch call for health gets `serving`.

    Attributes:
      requests: the requests, in the order of arrival.
      metadata: the metadata of each request.
      timeouts: the timeout of each request in seconds.
      address: '127.0.0.1:port'.
      release: an event for which calls wait. It is set unless a test clears it.
      came: a semaphore that each call releases.
    """

    def __init__(self, *answers, credentials=None, serving=True, host='127.0.0.1', port=0):
        self.answers = list(answers)
        self.requests, self.metadata, self.timeouts = [], [], []
        self.release = threading.Event()
        self.release.set()
        self.came = threading.Semaphore(0)
        self._status = 1 if serving else 2
        self._lock = threading.Lock()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        self._server.add_generic_rpc_handlers((
            self._handlers(_SERVICE, Classify='Classify', Detect='Detect', Segment='Segment',
                           GetModel='GetModel', ListModels='ListModels'),
            self._handlers(_HEALTH, Check='HealthCheck')))
        name = f'{host}:{port}'
        port = (self._server.add_secure_port(name, credentials) if credentials
                else self._server.add_insecure_port(name))
        self.address = f'127.0.0.1:{port}'
        self._server.start()

    def stop(self):
        self.release.set()
        self._server.stop(0).wait()

    def _handlers(self, service, **methods):
        handlers = {
            method: grpc.unary_unary_rpc_method_handler(
                self._answer,
                request_deserializer=getattr(_messages, f'{message}Request').FromString,
                response_serializer=lambda response: response.SerializeToString())
            for method, message in methods.items()}
        if service == _HEALTH:
            handlers['Watch'] = grpc.unary_stream_rpc_method_handler(
                self._watch, response_serializer=lambda response: response.SerializeToString())
        return grpc.method_handlers_generic_handler(service, handlers)

    def _watch(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        yield _messages.HealthCheckResponse(status=self._status)
        ended.wait()

    def _answer(self, request, context):
        with self._lock:
            self.requests.append(request)
            self.metadata.append(dict(context.invocation_metadata()))
            self.timeouts.append(context.time_remaining())
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.came.release()
        self.release.wait()
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, tuple):
            code, trailers = answer
            context.set_trailing_metadata(trailers)
            context.abort(code, 'told so')
        return answer
