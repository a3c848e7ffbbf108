"""A vision server on a free port of this machine that answers what a test tells it."""

import concurrent.futures
import threading

import grpc

from sfmamba import _messages

_SERVICE = 'sfmamba.v1.VisionService'
_HEALTH = 'grpc.health.v1.Health'


class FakeServer:
    """Answers each call with the next of `answers`: a message, or a pair of a code and trailing
    metadata, or a function of the request that returns either; for ever the last. Whoever watches its health is told
    `serving`.

    Attributes:
      requests: what came, in order.
      metadata: of each.
      timeouts: seconds that each gave.
      address: 'localhost:port'.
      release: calls wait for it; set unless a test clears it.
      came: counts the calls.
    """

    def __init__(self, *answers, credentials=None, serving=True, port=0):
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
        name = f'localhost:{port}'
        port = (self._server.add_secure_port(name, credentials) if credentials
                else self._server.add_insecure_port(name))
        self.address = f'localhost:{port}'
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
