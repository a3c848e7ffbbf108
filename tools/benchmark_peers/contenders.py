"""The networks that run.py measures, and the programs that run them.

README.md says what each contender (a program in one setting) is and why that is fair.
"""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import quantize

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'tools' / 'pytorch'), str(ROOT / 'tools')]

from checkpoint.open_weights import ROWS  # noqa: E402

SIZE = 224  # The sides of a classifier's input, in pixels.

# The dense models, whose backbones are SF-Mamba-T's. `windows` are the sides of the windows in
# stages 3 and 4. `size` is the input's height and width with padding. `binary` is our benchmark.
Dense = collections.namedtuple('Dense', 'windows size binary')
DENSE = {'detector': Dense((84, 42), (800, 1344), 'detector_benchmark'),
         'segmenter': Dense((64, 32), (512, 683), 'segmenter_benchmark')}


def family_of(network):
    """Returns the family to which tools/checkpoint/open_weights.py assigns the network, or None."""
    return next((family for family, rows in ROWS.items() if network in rows), None)


class Job:
    """Describes what to measure for one cell of the table.

    `network` is a variant of SF-Mamba's classifiers (T), a network of
    tools/checkpoint/open_weights.py (vmamba_t_s1l8) or a key of DENSE. `binaries` is the folder of
    this project's benchmarks. The exported network is written to `folder`.
    """

    def __init__(self, network, batch, dtype, threads, seconds, binaries, folder):
        self.network, self.batch, self.dtype, self.threads = network, batch, dtype, threads
        self.seconds, self.binaries, self.folder = seconds, binaries, folder

    def model(self):
        """Returns the network in PyTorch. It maps images to logits. A dense model's network maps
        them to four feature maps.
        """
        import deterministic
        import pyramid
        import sf_mamba
        import torch
        torch.set_num_threads(self.threads)
        if self.network in DENSE:
            fields = {**sf_mamba.VARIANTS['T'], 'windows': DENSE[self.network].windows}
            network = pyramid.Backbone(**fields)
        elif family_of(self.network):
            import open_networks
            family = family_of(self.network)
            network = open_networks.NETWORKS[family](1000, **ROWS[family][self.network].fields)
        else:
            network = sf_mamba.make(self.network)
        return deterministic.fill_deterministic(network).eval()

    def input(self):
        import deterministic
        size = DENSE[self.network].size if self.network in DENSE else (SIZE, SIZE)
        return deterministic.deterministic_input(self.batch, 3, *size)

    def onnx_path(self, scan=False):
        end = '_scan' if scan else ''
        return os.path.join(self.folder, f'{self.network}_{self.batch}{end}.onnx')

    def calibration(self):
        """Returns images for the calibration of int8. The weights are random, so only the speed of
        int8 counts.
        """
        return [self.input().numpy()]


class Photographs(Job):
    """A job that runs the default model `photographs` one image at a time. It shows how well int8
    answers for real pictures.
    """

    def __init__(self, threads, folder):
        super().__init__('photographs', 1, 'int8', threads, 0, None, folder)
        self.pictures = quantize.photographs(self.onnx_path(scan=True))

    def input(self):
        import torch
        return torch.from_numpy(self.pictures[0])

    def calibration(self):
        """Returns the pictures that are later classified, which favours the peers."""
        return self.pictures


# Each of the following classes is one program in one setting. A separate process constructs it with
# a Job. Before the measurement, `verify()` stops the whole run if its answers are wrong. One call
# of `run()` then computes `images` images.

class Engine:
    """Runs this project. Its benchmark binary is started again for each measurement.

    Before its idle threads sleep, they spin for as long as in the server (server/main.cc).
    """

    name, setting = 'this project', 'one context'
    contexts = 1
    environment = {**os.environ, 'GOMP_SPINCOUNT': '20000'}

    def __init__(self, job):
        self.job = job

    def measure(self):
        job = self.job
        if job.network in DENSE:
            times = self.call(DENSE[job.network].binary, '--backbone_only', '--rounds=2')
            return 1000 / times['backbone']['wall']
        variant = job.network if family_of(job.network) else f'sf_mamba_{job.network.lower()}'
        answer = self.call('backbone_benchmark', f'--variant={variant}',
                           f'--batch={job.batch}', f'--duration={job.seconds}s',
                           f'--contexts={self.contexts or job.threads}')
        return answer['images_per_second']

    def verify(self, job):
        """Does nothing, because the engine's own tests verify it."""

    def call(self, binary, *flags):
        """Runs a benchmark and returns the JSON that it prints."""
        command = [os.path.join(self.job.binaries, binary), *flags, f'--dtype={self.job.dtype}',
                   f'--threads={self.job.threads}', '--json']
        answer = subprocess.run(command, check=True, capture_output=True, text=True,
                                env=self.environment)
        return json.loads(answer.stdout)


class EngineContexts(Engine):
    """Runs one batch on each thread at the same time, like a server whose cpu_contexts is the
    number of threads."""

    setting, contexts = 'a context a thread', None


class Contender:
    """A program that runs in this Python process."""

    def __init__(self, job):
        self.images, self.seconds = job.batch, job.seconds

    def verify(self, job):
        """Does nothing here, because eager PyTorch is the reference. The other subclasses override
        this method and compare their answers with PyTorch's.
        """

    def measure(self):
        """Returns the images per second of the median call. Makes calls for `seconds`, but at least
        three.
        """
        self.run()
        calls, end = [], time.perf_counter() + self.seconds
        while len(calls) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            calls.append(time.perf_counter() - start)
        return self.images / statistics.median(calls)


class Eager(Contender):
    name, setting = 'PyTorch eager', 'contiguous'
    channels_last = False

    def __init__(self, job):
        super().__init__(job)
        import torch
        self.torch = torch
        self.model, self.input = self.network(job), job.input()
        if self.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.input = self.input.to(memory_format=torch.channels_last)
        self.bf16 = job.dtype == 'bf16'

    def network(self, job):
        return job.model()

    def run(self):
        torch = self.torch
        with torch.inference_mode(), torch.autocast('cpu', torch.bfloat16, enabled=self.bf16):
            return self.model(self.input)


class EagerChannelsLast(Eager):
    setting, channels_last = 'channels_last', True


class Compiled(Eager):
    """Code by torch.compile's Inductor, with folded and packed weights. The network has no scan,
    because the compiler would unroll it.
    """

    name, setting, channels_last = 'torch.compile, no scan', 'channels_last', True

    def __init__(self, job):
        super().__init__(job)
        import torch._inductor.config
        torch._inductor.config.freezing = True
        self.model = self.torch.compile(self.model)

    def verify(self, job):
        check(self.run(), job)

    def network(self, job):
        return without_scan(job)


class OnnxRuntime(Contender):
    name, setting, scan, limit = 'ONNX Runtime, no scan', 'all optimisations', False, None

    def __init__(self, job):
        super().__init__(job)
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = job.threads
        self.session = onnxruntime.InferenceSession(self.network(job), options,
                                                    providers=['CPUExecutionProvider'])
        self.input = job.input().numpy()

    def network(self, job):
        return job.onnx_path(self.scan)

    def verify(self, job):
        check(self.answer(self.input), job, self.scan, self.limit)

    def answer(self, images):
        return self.session.run(None, {'images': images})

    def run(self):
        return self.answer(self.input)


class OnnxRuntimeScan(OnnxRuntime):
    """Runs the whole network, as tools/export_onnx.py writes it."""

    name, scan = 'ONNX Runtime', True


class OpenVino(Contender):
    name, setting, scan = 'OpenVINO, no scan', 'LATENCY hint', False
    hint, limit = 'LATENCY', None

    def __init__(self, job):
        super().__init__(job)
        import openvino
        self.input = job.input().numpy()
        # Without this hint, OpenVINO would compute fp32 networks in bf16 where it can.
        self.compiled = openvino.Core().compile_model(self.network(job), 'CPU', {
            'PERFORMANCE_HINT': self.hint, 'INFERENCE_NUM_THREADS': job.threads,
            'INFERENCE_PRECISION_HINT': self.precision(job)})

    def network(self, job):
        return job.onnx_path(self.scan)

    def precision(self, job):
        return {'fp32': 'f32', 'bf16': 'bf16'}[job.dtype]

    def verify(self, job):
        check(self.answer(self.input), job, self.scan, self.limit)

    def answer(self, images):
        answer = self.compiled([images])
        return [answer[i] for i in range(len(answer))]

    def run(self):
        return self.compiled([self.input], share_inputs=True)


class OpenVinoThroughput(OpenVino):
    """Runs as many requests at once as OpenVINO considers best. One call of run() runs four times
    this number of requests.
    """

    setting, hint = 'THROUGHPUT hint', 'THROUGHPUT'

    def __init__(self, job):
        super().__init__(job)
        import openvino
        self.queue = openvino.AsyncInferQueue(self.compiled)
        self.calls = 4 * len(self.queue)
        self.images = self.calls * job.batch

    def run(self):
        for _ in range(self.calls):
            self.queue.start_async([self.input], share_inputs=True)
        self.queue.wait_all()


class OpenVinoScan(OpenVino):
    name, scan = 'OpenVINO', True


class OpenVinoThroughputScan(OpenVinoThroughput):
    name, scan = 'OpenVINO', True


# The following contenders run the whole networks in int8. Their answers differ from fp32. The table
# of accuracy shows by how much, so the check here only finds gross errors.

class OnnxRuntimeInt8(OnnxRuntimeScan):
    """Quantised statically in the QDQ format, with calibration."""

    name, setting, limit = 'ONNX Runtime int8, static', 'QDQ', 0.5
    quantizer = staticmethod(quantize.onnx_runtime_static)

    def network(self, job):
        return self.quantizer(job.onnx_path(self.scan), job.calibration())


class OnnxRuntimeInt8Dynamic(OnnxRuntimeInt8):
    name, setting = 'ONNX Runtime int8, dynamic', 'products'
    quantizer = staticmethod(quantize.onnx_runtime_dynamic)


class OpenVinoInt8(OpenVinoScan):
    """Quantised by NNCF with its default settings. Operators that are not quantised compute in
    fp32.
    """

    name, limit, rest = 'OpenVINO int8', 0.5, 'f32'
    quantizer = staticmethod(quantize.openvino_default)

    def network(self, job):
        return self.quantizer(job.onnx_path(self.scan), job.calibration())

    def precision(self, job):
        return self.rest


class OpenVinoInt8Throughput(OpenVinoInt8, OpenVinoThroughput):
    setting, hint = OpenVinoThroughput.setting, OpenVinoThroughput.hint


class OpenVinoInt8Bf16(OpenVinoInt8):
    """Like OpenVinoInt8, but operators that are not quantised compute in bf16."""

    setting, rest = 'LATENCY hint, bf16', 'bf16'


class OpenVinoInt8ThroughputBf16(OpenVinoInt8Throughput):
    setting, rest = 'THROUGHPUT hint, bf16', 'bf16'


class OpenVinoInt8FloatConvolutions(OpenVinoInt8):
    name = 'OpenVINO int8, float convolutions'
    quantizer = staticmethod(quantize.openvino_float_convolutions)


class OpenVinoInt8FloatConvolutionsThroughput(OpenVinoInt8FloatConvolutions,
                                              OpenVinoInt8Throughput):
    pass


CONTENDERS = [Engine, EngineContexts, Eager, EagerChannelsLast, Compiled, OnnxRuntime,
              OnnxRuntimeScan, OpenVino, OpenVinoThroughput, OpenVinoScan, OpenVinoThroughputScan,
              OnnxRuntimeInt8, OnnxRuntimeInt8Dynamic, OpenVinoInt8, OpenVinoInt8Throughput,
              OpenVinoInt8Bf16, OpenVinoInt8ThroughputBf16, OpenVinoInt8FloatConvolutions,
              OpenVinoInt8FloatConvolutionsThroughput]
NO_BF16 = {OnnxRuntime, OnnxRuntimeScan}  # Its CPU provider has no bf16 convolutions.
INT8 = [make for make in CONTENDERS if issubclass(make, (OnnxRuntimeInt8, OpenVinoInt8))]
# Contenders that do not run dense models. EngineContexts is useful only for small models. Eager and
# EagerChannelsLast run PyTorch's reference scan, a Python loop over all tokens, which would be an
# unfair comparison. The contenders with a scan need a file of the whole network, which is exported
# only for classifiers.
NO_DENSE = {EngineContexts, Eager, EagerChannelsLast, OnnxRuntimeScan, OpenVinoScan,
            OpenVinoThroughputScan}
RUNTIMES = [Compiled.name, OnnxRuntime.name, OpenVino.name]
WITH_SCAN = [OnnxRuntimeScan.name, OpenVinoScan.name, *(make.name for make in INT8)]


# The files for the other runtimes. tools/export_onnx.py writes the whole network. A second file has
# no scan and gives a bound that favours the runtimes. The scan is replaced by a function that takes
# almost no time. It reads all of the scan's inputs, so that no layer before it is removed.

def scan_stand_in(u, dt, A, B, C, D, bias):
    return u * D + (dt + bias) + (B * C).sum(-1, keepdim=True) + A.sum(-1)


def without_scan(job):
    import sf_mamba
    import vmamba
    sf_mamba.selective_scan = vmamba.selective_scan = scan_stand_in
    return job.model()


def export(job):
    """Writes the network without its scan to job.onnx_path(). For a classifier, also writes the
    whole network.
    """
    import torch
    if job.network not in DENSE:
        export_whole(job)
    with torch.inference_mode():
        torch.onnx.export(without_scan(job), (job.input(),), job.onnx_path(), dynamo=True,
                          opset_version=20, input_names=['images'], external_data=False,
                          verbose=False)


def export_whole(job):
    import export_onnx
    from onnx_export.model_folder import Config, Model, read_config
    family = family_of(job.network)
    if family:
        activation = ROWS[family][job.network].fields.get('activation', '')
        config = Config(family=family, activation=activation, picture={'size': SIZE})
    else:
        variant = {'L3': 'l3_256_21k'}.get(job.network, job.network.lower())
        config = read_config(f'backbone {{ variant: "sf_mamba_{variant}" }}')
    tensors = {key: value.numpy() for key, value in job.model().state_dict().items()
               if not key.endswith('num_batches_tracked')}
    model = Model(config, tensors, [])
    export_onnx.save(export_onnx.network(model, job.batch, SIZE, SIZE),
                     pathlib.Path(job.onnx_path(scan=True)))


def check(answer, job, scan=False, limit=None):
    """Stops the run if a runtime's answer differs from PyTorch's on the same network.

    The difference may be at most `limit` times the largest value. If `limit` is None, the limit
    depends on the precision.
    """
    import torch
    with torch.inference_mode():
        expected = (job.model() if scan else without_scan(job))(job.input())
    if isinstance(expected, torch.Tensor):
        expected = [expected]
    if isinstance(answer, torch.Tensor):
        answer = [answer]
    limit = limit or {'fp32': 1e-3, 'bf16': 5e-2}[job.dtype]
    for i, (got, wanted) in enumerate(zip(answer, expected, strict=True)):
        error = (torch.as_tensor(got) - wanted).abs().max() / wanted.abs().max()
        if not error < limit:
            raise AssertionError(
                f'output {i} differs by {error:.2g} of its maximum, expected less than {limit}')
