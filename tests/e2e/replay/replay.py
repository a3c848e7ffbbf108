"""Records the server's answers to the requests of cases.py, and compares two recordings.

    tests/e2e/replay/run.sh record SERVER FILE
    tests/e2e/replay/run.sh compare BEFORE AFTER [--removed FILE]

Make one recording with the binary before a change and one with the binary after it, on one
machine. Each line of a recording is about one request. It contains the request, the status,
headers and body of its answer, the counters that the request changed, and the log lines that it
caused. Ids and times are replaced by words such as <id> and <time>.

The file of `--removed`, for example removed.tsv, lists requests that the change is meant to answer
differently, because it removes a feature. Each of its lines is the request as in the recording, a
tab, and a JSON object with the expected parts of the new answer. Other parts are not compared.
"""

import collections
import hashlib
import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

import cases

PROTOS = ['sfmamba/v1/vision.proto', 'sfmamba/v1/admin.proto', 'inference/grpc_service.proto',
          'grpc/health/v1/health.proto', 'google/rpc/error_details.proto', 'google/rpc/status.proto']
# Patterns of ids, times and other values that differ between two replays, with the texts that
# replace them.
KINDS = [(re.compile(pattern), replacement) for pattern, replacement in [
    (rb'\b[0-9a-f]{32}\b', b'<id>'),
    (rb'\b[0-9a-f]{16}\b', b'<span>'),
    (rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?', b'<time>'),
    (rb'"(\w*_(ms|us|ns|seconds)|loadTime|milliseconds|time|ts|duration|rss|pid|port)": ?"?[-0-9.e+s]+"?', rb'"\1":<number>'),
    (rb'(Date: )[^\r\n]+', rb'\1<time>'),
    (rb'127\.0\.0\.1:\d+', b'<address>'),
]]
# Metrics that may differ between two replays. Some measure time or memory, and some change without
# a request. batches_total differs because its label, the reason for which a batch starts, depends
# on time.
NOT_COUNTED = re.compile(
    r'_seconds|_bucket|_sum|^process_|memory|busy|profile|connections|spans|batches_total')


def plain(data):
    """Returns the text with ids and times replaced by words such as <id> and <time>."""
    for kind, replacement in KINDS:
        data = kind.sub(replacement, data)
    return data


def sorted_details(data):
    """Sorts the members and the error details of a JSON text, because the server writes them in
    random order. Returns a text without error details unchanged.
    """
    def in_order(value):
        if isinstance(value, list):
            return [in_order(one) for one in value]
        if not isinstance(value, dict):
            return value
        value = {key: in_order(value[key]) for key in sorted(value)}
        if isinstance(value.get('details'), list):
            value['details'].sort(key=json.dumps)
        return value
    try:
        return json.dumps(in_order(json.loads(data))).encode() if b'"details"' in data else data
    except ValueError:
        return data


def shown(data):
    """Returns the text that a recording contains for `data`. Short text remains readable, with its
    error details sorted and its ids and times replaced. Anything else becomes a length and a
    digest.
    """
    data = plain(sorted_details(data))
    try:
        words = data.decode()
        if len(words) < 2000:
            return words
    except UnicodeDecodeError:
        pass
    return f'{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}'


class Messages:
    """Decodes messages of the protos by service and method."""

    def __init__(self, protos='proto'):
        with tempfile.NamedTemporaryFile() as file:
            subprocess.run(['protoc', f'-I{protos}', '--include_imports', f'-o{file.name}', *PROTOS],
                           check=True)
            files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(file.name).read_bytes())
        self._pool = descriptor_pool.DescriptorPool()
        for one in files.file:
            self._pool.Add(one)

    def encode(self, service, method, message):
        if isinstance(message, bytes):
            return message
        kind = self._pool.FindServiceByName(service).FindMethodByName(method).input_type
        filled = json_format.ParseDict(message, message_factory.GetMessageClass(kind)(),
                                       descriptor_pool=self._pool)
        return filled.SerializeToString(deterministic=True)

    def decode_status(self, data):
        """Decodes the trailer grpc-status-details-bin."""
        kind = self._pool.FindMessageTypeByName('google.rpc.Status')
        status = message_factory.GetMessageClass(kind).FromString(data)
        return shown(json_format.MessageToJson(status, indent=None,
                                               descriptor_pool=self._pool).encode())

    def decode(self, service, method, data):
        """Returns the response as text, without its times."""
        try:
            kind = self._pool.FindServiceByName(service).FindMethodByName(method).output_type
        except KeyError:
            return shown(data)
        message = message_factory.GetMessageClass(kind).FromString(data)
        self._forget_times(message)
        return shown(json_format.MessageToJson(message, indent=None,
                                               descriptor_pool=self._pool).encode())

    def _forget_times(self, message):
        for field, value in message.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.full_name in ('google.protobuf.Duration',
                                                'google.protobuf.Timestamp'):
                message.ClearField(field.name)
            elif field.message_type.GetOptions().map_entry:
                continue
            else:
                for one in value if field.is_repeated else [value]:
                    self._forget_times(one)


class Server:
    def __init__(self, binary, folder):
        self._process = subprocess.Popen(
            [binary, f'--model_repository={folder}', '--host=127.0.0.1', '--port=0',
             '--http_port=0', '--metrics_port=0', '--model_control=explicit'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._lines = []
        self._mutex = threading.Lock()
        self._ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        if not self._ready.wait(120):
            raise RuntimeError(f'{binary} does not serve')

    def _read(self):
        for line in self._process.stdout:
            if b'"listening"' in line:
                said = json.loads(line)
                self.port, self.http_port = said['port'], said['http_port']
                self.metrics_port = said['metrics_port']
            if b'"serving"' in line:
                self._ready.set()
            with self._mutex:
                self._lines.append(line)

    def lines(self):
        """Returns the log lines that were written since the last call of lines()."""
        with self._mutex:
            lines, self._lines = self._lines, []
        # Skips lines that say how many log lines the server left out. This number depends on time.
        return [plain(line).decode().rstrip() for line in lines if b'lines_left_out' not in line]

    def counters(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.metrics_port, timeout=30)
        connection.request('GET', '/metrics')
        page = connection.getresponse().read().decode()
        connection.close()
        found = {}
        for line in page.splitlines():
            if line.startswith('#'):
                continue
            name, _, value = line.rpartition(' ')
            if name.split('{')[0].endswith('_total') and not NOT_COUNTED.search(name):
                found[name] = float(value)
        return found

    def close(self):
        self._process.terminate()
        self._process.wait()


class Recorder:
    def __init__(self, server, messages):
        self._server = server
        self._messages = messages
        self._channel = grpc.insecure_channel(f'127.0.0.1:{server.port}',
                                              [('grpc.max_receive_message_length', -1)])

    def record(self, case):
        before = self._server.counters()
        self._server.lines()
        answer = {'grpc': self._grpc, 'stream': self._stream, 'http': self._http,
                  'raw': self._raw}[case['way']](case)
        after = self._settled()
        answer['counted'] = {name: value - before.get(name, 0) for name, value in after.items()
                             if value != before.get(name, 0)}
        answer['logged'] = self._server.lines()
        return answer

    def _settled(self):
        """Waits until the server's counters no longer change, and returns them."""
        last = self._server.counters()
        for _ in range(20):
            time.sleep(0.02)
            now = self._server.counters()
            if now == last:
                break
            last = now
        return last

    def _grpc(self, case):
        call = self._channel.unary_unary(f'/{case["service"]}/{case["method"]}')
        request = self._messages.encode(case['service'], case['method'], case['message'])
        try:
            response, done = call.with_call(request, timeout=case.get('timeout', 30))
            body = self._messages.decode(case['service'], case['method'], response)
        except grpc.RpcError as error:
            done, body = error, None
        return {**self._ended(done), 'body': body}

    def _stream(self, case):
        call = self._channel.stream_stream(f'/{case["service"]}/{case["method"]}')
        requests = [self._messages.encode(case['service'], case['method'], message)
                    for message in case['messages']]
        responses = call(iter(requests), timeout=30)
        bodies = []
        try:
            for response in responses:
                bodies.append(self._messages.decode(case['service'], case['method'], response))
        except grpc.RpcError:
            pass
        return {**self._ended(responses), 'body': bodies}

    def _ended(self, call):
        def text(key, value):
            if key == 'grpc-status-details-bin':
                return self._messages.decode_status(value)
            return shown(value if isinstance(value, bytes) else value.encode())

        def texts(metadata):
            return sorted((key, text(key, value)) for key, value in metadata or ())
        return {'status': call.code().name, 'message': plain((call.details() or '').encode()).decode(),
                'headers': texts(call.initial_metadata()),
                'trailers': texts(call.trailing_metadata())}

    def _http(self, case):
        connection = http.client.HTTPConnection('127.0.0.1', self._server.http_port, timeout=30)
        connection.request(case['method'], case['target'], case['body'], case['headers'])
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return {'status': response.status,
                'headers': sorted((key, plain(f'{key}: {value}'.encode()).decode())
                                  for key, value in response.getheaders()),
                'body': shown(body)}

    def _raw(self, case):
        with socket.create_connection(('127.0.0.1', self._server.http_port), timeout=30) as peer:
            peer.sendall(case['bytes'])
            peer.settimeout(1)  # If no answer comes within a second, none will come.
            answer = b''
            try:
                while data := peer.recv(1 << 16):
                    answer += data
            except OSError:
                pass
        return {'body': shown(answer)}


def name_of(case):
    """Returns the request's name in a recording. The same request always has the same name."""
    words = dict(case)
    for key, value in words.items():
        if isinstance(value, (dict, list)):
            value = json.dumps(value, sort_keys=True, default=lambda data: data.hex())
        if isinstance(value, bytes) or len(str(value)) > 200:
            data = value if isinstance(value, bytes) else str(value).encode()
            value = f'{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}'
        words[key] = value
    return ' '.join(f'{key}={value}' for key, value in words.items())


def record(binary, file):
    with tempfile.TemporaryDirectory() as folder:
        for model in pathlib.Path('models').iterdir():
            if (model / '1').is_dir():
                subprocess.run(['cp', '-rL', model, folder], check=True)
        server = Server(binary, folder)
        try:
            recorder = Recorder(server, Messages())
            with open(file, 'w', encoding='utf-8') as out:
                times = collections.Counter()
                for case in cases.all_cases():
                    name = name_of(case)
                    times[name] += 1
                    answer = recorder.record(case)
                    out.write(json.dumps({'request': f'{name} #{times[name]}', **answer}) + '\n')
        finally:
            server.close()


def compare(before, after, removed=None):
    """Prints the requests whose answers in `after` are not as expected. The expected answer is in
    `removed` if this has the request, and in `before` otherwise. Returns True if there are such
    requests, or if the two recordings do not have the same requests.
    """
    def read(path):
        lines = pathlib.Path(path).read_text(encoding='utf-8').splitlines()
        return {answer.pop('request'): answer for answer in map(json.loads, lines)}
    old, new = read(before), read(after)
    differ = 0
    for request, answer in {**old, **(removed or {})}.items():
        found = new.get(request, {})
        if any(found.get(key) != value for key, value in answer.items()):
            differ += 1
            print(request)
            for key, value in answer.items():
                other = found.get(key)
                if other != value:
                    print(f'  {key}\n    before {value}\n    after  {other}')
    print(f'{len(old)} requests, {differ} differ')
    return differ > 0 or old.keys() != new.keys()


def main(arguments):
    if len(arguments) == 3 and arguments[0] == 'record':
        record(arguments[1], arguments[2])
        return 0
    if len(arguments) in (3, 5) and arguments[0] == 'compare':
        lines = pathlib.Path(arguments[4]).read_text().splitlines() if len(arguments) == 5 else []
        removed = dict(line.split('\t') for line in lines)
        return compare(arguments[1], arguments[2],
                       {request: json.loads(answer) for request, answer in removed.items()})
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
