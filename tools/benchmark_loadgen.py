#!/usr/bin/env python3
"""Drives a server over gRPC with LoadGen, the load generator and referee of MLPerf.

    pip install mlcommons-loadgen ./client/python
    tools/benchmark_loadgen.py --model models/photographs/1 --logs /tmp/loadgen client/samples
    tools/benchmark_loadgen.py --variant sf_mamba_t --logs /tmp/loadgen client/samples
    tools/benchmark_loadgen.py --server HOST:8001 --serve_as photographs PICTURES  # One that runs.

With --protocol kserve, tritonclient sends the requests, as it does to Triton
(benchmark_peers/triton_server.py).

Starts a server with one classifier, unless --server names one. LoadGen sends picture files to it in
three ways:

  SingleStream  one picture after another; the median time is "a lone request" below
  Offline       all pictures at once, in requests of --images_a_request, several at a time
  Server        one picture per request, with Poisson arrivals. Latency counts from the time at
                which a request was due. The --rates are fractions of Offline's rate. Reports the
                highest one that LoadGen calls VALID. VALID means that 99 % of the answers come
                within --latency_factor times the time of a lone request

LoadGen decides when a request is due, measures, and judges. This program only passes requests on.
The accuracy run asks for each picture once. If each picture is in a folder named by its class, an
answer is right if it is this class. If the pictures are not in such folders, an answer is right if
it equals the answer to a lone request. Prints a table, and writes it to --logs with LoadGen's own
summaries. A request that fails makes its run invalid. If this program starts the server, both run
on one machine. The client then takes a part of the machine's CPU time.
"""

import argparse
import array
import collections
import json
import pathlib
import queue
import re
import struct
import sys
import tempfile
import threading

import numpy

import benchmark_load

NO_CLASS = -1  # The class of a request that failed.
SUFFIXES = {'.jpg', '.jpeg', '.png', '.webp'}


def parse_args(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('pictures', type=pathlib.Path, help='a folder, or one with a folder a class')
    parser.add_argument('--server', help='HOST:PORT of a server that runs; else one is started')
    parser.add_argument('--protocol', choices=('sfmamba', 'kserve'), default='sfmamba')
    parser.add_argument('--serve_as', default=benchmark_load.MODEL, help='the model asked for')
    parser.add_argument('--model', default=str(benchmark_load.ROOT / 'models/photographs/1'),
                        help='directory of a version of a classifier')
    parser.add_argument('--variant', help='random weights of this variant, in place of --model')
    parser.add_argument('--server_bin',
                        default=str(benchmark_load.ROOT / 'bazel-bin/server/sfmamba_server'))
    parser.add_argument('--client_bin',
                        default=str(benchmark_load.ROOT / 'bazel-bin/client/sfmamba'))
    parser.add_argument('--server_flag', action='append', default=[], help='repeat for several')
    parser.add_argument('--port', type=int, default=9401)
    parser.add_argument('--max_batch_size', type=int, default=8)
    parser.add_argument('--seconds', type=float, default=20, help='of each run, at least')
    parser.add_argument('--images_a_request', type=int, default=8, help='of Offline')
    parser.add_argument('--in_flight', type=int, default=8, help='requests of Offline')
    parser.add_argument('--latency_factor', type=float, default=4,
                        help="Server's 99 %% must be within this many lone requests")
    parser.add_argument('--rates', type=float, nargs='+',
                        default=[1, 0.975, 0.95, 0.925, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5],
                        help="of Server, as parts of Offline's, tried in turn until one is valid")
    parser.add_argument('--logs', type=pathlib.Path, help="folder for LoadGen's logs")
    return parser.parse_args(argv)


def most(limit, part=0.99, arrivals=200_000):
    """Returns the highest load that an ideal server answers within `limit`, divided by the peak.

    The ideal server never waits to fill a batch. It computes one picture after another, in the
    order of arrival. Each picture takes the same time. This is an M/D/1 queue. The fraction `part`
    of the pictures must be answered within `limit`. The unit of time is the time of one picture at
    the peak.
    """
    random = numpy.random.default_rng(0)
    gaps = random.exponential(size=arrivals)

    def within(load):
        # This is Lindley's recursion. A picture's wait is the height of a walk above its lowest
        # point so far. The steps of the walk are (service time - gap).
        walk = numpy.cumsum(1 - gaps / load)
        waits = walk - numpy.minimum.accumulate(numpy.minimum(walk, 0))
        return numpy.quantile(waits, part) + 1 <= limit

    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


class Pictures:
    """The pictures of a folder in the form of LoadGen's query sample library."""

    def __init__(self, folder):
        self.paths = sorted(path for path in folder.rglob('*')
                            if path.suffix.lower() in SUFFIXES and not path.name.startswith('.'))
        if not self.paths:
            sys.exit(f'{folder}: expected pictures, found none')
        self.labels = [path.parent.name if path.parent != folder else None for path in self.paths]
        self.bytes = {}

    def __len__(self):
        return len(self.paths)

    def load(self, indices):
        self.bytes.update((i, self.paths[i].read_bytes()) for i in indices)

    def unload(self, indices):
        for i in indices:
            self.bytes.pop(i, None)


class Client:
    """Sends requests with this project's own protocol."""

    def __init__(self, address, model):
        import sfmamba
        self.client = sfmamba.Client(address, timeout=60)
        self.model = model
        self.labels = list(self.client.model(model).labels)

    def classify(self, images):
        """Returns the best class of each picture. The pictures are given as the bytes of files.
        Raises an exception if a picture has no answer.
        """
        answers = self.client.classify(images, model=self.model, top_k=1)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [int(answer.class_ids[0]) for answer in answers]


class KserveClient:
    """Sends requests with the Open Inference Protocol, which Triton also supports."""

    labels = ()

    def __init__(self, address, model):
        import tritonclient.grpc
        self.triton = tritonclient.grpc
        self.client = self.triton.InferenceServerClient(address)
        self.model = model
        # The input has the shape [pictures] or [pictures, 1]. Each element is an encoded picture.
        self.sides = len(self.client.get_model_metadata(model).inputs[0].shape)

    def classify(self, images):
        shape = [len(images), 1][:self.sides]
        tensor = self.triton.InferInput('image', shape, 'BYTES')
        tensor.set_data_from_numpy(numpy.array(images, dtype=numpy.object_).reshape(shape))
        best = self.triton.InferRequestedOutput('logits', class_count=1)
        answer = self.client.infer(self.model, [tensor], outputs=[best], client_timeout=60)
        # Each row is "value:index", and ":label" may follow.
        return [int(row.split(b':')[1]) for row in answer.as_numpy('logits').reshape(-1)]


class SystemUnderTest:
    """Answers LoadGen's queries by calling the server on `threads` threads, which this object
    starts.

    `classify` takes a list of pictures, each as the bytes of a file, and returns the best class of
    each. If `classify` raises an exception, all queries of this call count as failed. `failed`
    counts them by error.
    """

    def __init__(self, loadgen, pictures, classify, threads, images_a_request):
        self.loadgen, self.pictures, self.classify = loadgen, pictures, classify
        self.failed = collections.Counter()
        self.images_a_request = images_a_request
        self.requests = queue.SimpleQueue()
        self.threads = [threading.Thread(target=self.work) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def issue(self, samples):
        for i in range(0, len(samples), self.images_a_request):
            self.requests.put(samples[i:i + self.images_a_request])

    def work(self):
        while (samples := self.requests.get()) is not None:
            try:
                classes = self.classify([self.pictures.bytes[s.index] for s in samples])
            except Exception as error:  # LoadGen needs an answer to each query.
                self.failed[f'{type(error).__name__}: {error}'] += len(samples)
                classes = [NO_CLASS] * len(samples)
            answers = [array.array('i', [best]) for best in classes]
            responses = []
            for sample, answer in zip(samples, answers):
                address, items = answer.buffer_info()
                responses.append(self.loadgen.QuerySampleResponse(
                    sample.id, address, items * answer.itemsize))
            self.loadgen.QuerySamplesComplete(responses)

    def stop(self):
        for _ in self.threads:
            self.requests.put(None)
        for thread in self.threads:
            thread.join()


def parse_summary(text):
    """Parses the "name : value" lines of LoadGen's summary."""
    lines = (re.fullmatch(r'\s*(.+?)\s*:\s*(\S.*?)\s*', line) for line in text.splitlines())
    return {line[1]: line[2] for line in lines if line}


def answered_classes(text):
    """Returns {index of a picture: its class} from LoadGen's log of answers."""
    return {entry['qsl_idx']: struct.unpack('<i', bytes.fromhex(entry['data']))[0]
            for entry in json.loads(text)}


class Referee:
    """Runs LoadGen's scenarios one after another."""

    def __init__(self, args, loadgen, client, pictures, folder):
        self.args, self.loadgen, self.client = args, loadgen, client
        self.pictures, self.folder = pictures, folder
        self.failed = collections.Counter()

    def run(self, name, scenario, threads, images_a_request=1, accuracy=False, rate=None,
            latency=None):
        """Runs a scenario. Returns LoadGen's summary as a dictionary, and the number of failed
        queries.
        """
        lg = self.loadgen
        settings = lg.TestSettings()
        settings.scenario = getattr(lg.TestScenario, scenario)
        settings.mode = lg.TestMode.AccuracyOnly if accuracy else lg.TestMode.PerformanceOnly
        settings.min_duration_ms = int(1000 * self.args.seconds)
        settings.max_duration_ms = int(6000 * self.args.seconds)
        settings.min_query_count = 1
        if scenario == 'Server':
            settings.server_target_qps = rate
            settings.server_target_latency_ns = int(1e9 * latency)
            settings.server_target_latency_percentile = 0.99
        if scenario == 'Offline' and rate:
            settings.offline_expected_qps = rate
        if scenario == 'SingleStream' and latency:
            settings.single_stream_expected_latency_ns = int(1e9 * latency)
        output = lg.LogOutputSettings()
        output.outdir = str(self.folder)
        output.prefix = f'{name}_'
        output.copy_summary_to_stdout = False
        log = lg.LogSettings()
        log.log_output = output
        log.enable_trace = False
        sut = SystemUnderTest(lg, self.pictures, self.client.classify, threads, images_a_request)
        handle = lg.ConstructSUT(sut.issue, lambda: None)
        library = lg.ConstructQSL(len(self.pictures), len(self.pictures),
                                  self.pictures.load, self.pictures.unload)
        try:
            lg.StartTestWithLogSettings(handle, library, settings, log)
        finally:
            sut.stop()
            lg.DestroyQSL(library)
            lg.DestroySUT(handle)
        self.failed += sut.failed
        summary = parse_summary((self.folder / f'{name}_summary.txt').read_text())
        return summary, sum(sut.failed.values())

    def accuracy(self, names):
        """Returns (number of right answers, number of pictures, what counted as right). `names` are
        the labels of the model's classes.
        """
        self.run('accuracy', 'Offline', self.args.in_flight, self.args.images_a_request,
                 accuracy=True)
        answers = answered_classes((self.folder / 'accuracy_accuracy.json').read_text())
        if all(label in names for label in self.pictures.labels):
            wanted = [names.index(label) for label in self.pictures.labels]
            rule = "its folder's name"
        else:
            wanted = [self.client.classify([path.read_bytes()])[0] for path in self.pictures.paths]
            rule = "a lone request's answer"
        right = sum(answers.get(i) == best for i, best in enumerate(wanted))
        return right, len(wanted), rule


def measure(args, loadgen, client, folder):
    """Runs all scenarios and returns the lines of the report."""
    pictures = Pictures(args.pictures)
    referee = Referee(args, loadgen, client, pictures, folder)
    client.classify([pictures.paths[0].read_bytes()])  # The first call connects.

    lone, lone_failed = referee.run('single', 'SingleStream', 1)
    median = int(lone['50.00 percentile latency (ns)']) / 1e9
    guess = args.images_a_request / median
    offline, offline_failed = referee.run('offline', 'Offline', args.in_flight,
                                          args.images_a_request, rate=guess)
    peak = float(offline['Samples per second'])
    limit = args.latency_factor * median
    rows = [('SingleStream', f'{1 / median:.1f}', f'{1000 * median:.1f} (median)',
             lone['Result is'], lone_failed),
            ('Offline', f'{peak:.1f}', '-', offline['Result is'], offline_failed)]
    for part in args.rates:
        server, failed = referee.run(f'server_{part:g}', 'Server', threads=64, rate=part * peak,
                                     latency=limit)
        valid = server['Result is'] == 'VALID' and failed == 0
        p99 = int(server['99.00 percentile latency (ns)']) / 1e6
        rows.append((f'Server at {part:g} of Offline',
                     server['Completed samples per second'], f'{p99:.1f} (p99)',
                     server['Result is'], failed))
        if valid:
            break
    right, asked, rule = referee.accuracy(client.labels)
    lines = ['| scenario | images/s | latency, ms | LoadGen says | failed |', '|---' * 5 + '|']
    lines += ['| ' + ' | '.join(map(str, row)) + ' |' for row in rows]
    lines += ['', f"Server's limit: 99 % within {1000 * limit:.1f} ms, {args.latency_factor:g} "
                  f'lone requests; the best there is at this rate of Poisson arrivals is '
                  f'{most(limit * peak):.2f} of Offline.',
              f'Accuracy: {right} of {asked} pictures have {rule}.']
    lines += [f'{count} failed: {what}' for what, count in referee.failed.items()]
    return lines


def main():
    args = parse_args()
    try:
        import mlperf_loadgen
    except ImportError as error:
        sys.exit(f'{error}: pip install mlcommons-loadgen')
    with tempfile.TemporaryDirectory() as repository:
        folder = args.logs or pathlib.Path(repository)
        folder.mkdir(parents=True, exist_ok=True)
        server = None
        if not args.server:
            models = pathlib.Path(repository) / 'models'
            benchmark_load.write_model(args, models)
            server = benchmark_load.Server(args, models)
        address = args.server or f'127.0.0.1:{args.port}'
        try:
            make_client = KserveClient if args.protocol == 'kserve' else Client
            lines = measure(args, mlperf_loadgen, make_client(address, args.serve_as), folder)
        finally:
            if server:
                server.stop()
        print('\n'.join(lines))
        (folder / 'loadgen.md').write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
