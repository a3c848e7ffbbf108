"""The steps of measure.py. Each step gets its Session, emits lines and raises an error if something
is wrong.
"""

import pathlib
import shutil
import subprocess
import time

import answers
from server_process import Server, ServerError, microseconds_an_image, write_model

PICTURES, DEFAULT_MODELS = 'client/samples', 'models'
JPEG = f'{PICTURES}/coffee.jpg'  # 600 x 400 pixels.
# The largest allowed deviation of bf16 from fp32, in standard deviations of the logits.
MOST_DEVIATION = 0.2
RATES = (0.1, 0.3, 0.5, 0.7, 0.9)  # Fractions of the peak rate.
OVERLOADS = (2, 10)
DEADLINE = '100ms'  # The deadline of requests in an overload.
LOADS = 5  # How often a second model is loaded during requests to the first.


def options(session, **given):
    """Returns the flags of a bench. They suit a machine with 16 cores, or a rehearsal."""
    tiny = session.options.tiny
    flags = {'model': 't', 'threads': 1 if tiny else 6, 'channels': 1 if tiny else 12,
             'duration': '300ms' if tiny else '8s', 'warmup': '100ms' if tiny else '2s', **given}
    return [f'--{name}={value}' for name, value in flags.items()]


def bench(session, case, *arguments, **flags):
    """Sends requests to the server and emits a line. Returns the client's report."""
    step = case.split(' ')[0]
    before = session.server.thread_times()
    report = session.output(session.client('bench', *arguments, '--json',
                                           *options(session, **flags)))
    after = session.server.thread_times()
    # The threads' times also include the requests of the warm-up, which were sent at the same rate.
    whole = 1 + report['warmup_s'] / max(report['elapsed_s'], 1e-3)
    images = report['images_per_request'] * max(report['requests'], 1) * whole
    threads = microseconds_an_image(before, after, images)
    session.emit({
        'benchmark': 'server_load', 'step': step, 'case': case,
        'images_per_second': report['images_per_s'], 'goodput': report['goodput_per_s'],
        'rate': report['rate'], 'images_per_request': report['images_per_request'],
        'p50_ms': report['latency_ms']['p50'], 'p99_ms': report['latency_ms']['p99'],
        'mean_batch_size': report['mean_batch_size'], 'in_time': report['in_time'],
        'late': report['late'], 'failed': report['failed'], 'codes': report['codes'],
        'not_sent': report['not_sent'], 'stage_means_ms': report['stage_means_ms'],
        'threads_us': threads, 'server_us': round(sum(threads.values()), 1)})
    return report


def check_all_answered(report):
    if report['failed'] or not report['in_time']:
        raise AssertionError(f'expected that all are answered, got {report["codes"]}')


def closed(session, case, *arguments, **flags):
    concurrency = 8 if session.options.tiny else 1024
    report = bench(session, case, *arguments, concurrency=concurrency, **flags)
    check_all_answered(report)
    return report


def ready(session):
    """Emits how long the server took to be ready. Session.run() has started it."""
    said = session.server.said()['model is ready']
    session.emit({'benchmark': 'server_ready', 'seconds': session.server.seconds_to_ready,
                  'model_seconds': said.get('seconds'), 'device': said.get('device'),
                  'slots': 3, 'max_batch_size': 128})


def classified(session, server, pictures):
    return session.output(session.client('classify', *pictures, '--model=t', '--top_k=1000',
                                         '--json', server=server))


def check_answers(session):
    """Compares the server's answers with the answers of the same weights in fp32 on this machine's
    CPU.
    """
    golden_models = session.work / 'golden'
    write_model(golden_models, 't', 't', precision='FP32', tiny=session.options.tiny)
    pictures = sorted(str(path) for path in pathlib.Path(PICTURES).glob('*.jpg'))
    with Server(session.folder, golden_models, session.work / 'golden.log', '--device=cpu') as cpu:
        cpu.start(session.left())
        expected = classified(session, cpu, pictures)
    got = classified(session, session.server, pictures)
    deviation, same = answers.deviation(got, expected, 1000)
    session.emit({'benchmark': 'server_answers', 'pictures': len(pictures),
                  'deviation': deviation, 'same_first': same})
    if deviation > MOST_DEVIATION:
        raise AssertionError(f'a logit is off by {deviation:.3f} standard deviations, expected '
                             f'at most {MOST_DEVIATION}')


def models(session):
    """Runs the models of deploy/run.sh in fp32, on this device and on the CPU. Compares their
    answers.
    """
    pictures = sorted(str(path) for path in pathlib.Path(PICTURES).glob('*.jpg'))
    # The models are copied. The files may be links, which the server does not follow.
    copied, found, ready = session.work / 'default_models', [], {}
    shutil.copytree(DEFAULT_MODELS, copied, dirs_exist_ok=True)
    for device in (session.options.device, 'cpu'):
        with Server(session.folder, copied, session.work / f'models_{device}.log',
                    f'--device={device}', '--startup_models=photographs,everyday,'
                    'everyday_detector,everyday_segmenter',
                    '--default_precision=FP32') as server:
            server.start(session.left())
            ready[device] = round(server.seconds_to_ready, 2)
            found.append(session.output(session.client(
                'classify', *pictures, '--model=everyday', '--top_k=20', '--json',
                server=server)))
            for verb in ('detect', 'segment'):
                answer = session.output(session.client(
                    verb, pictures[-1], '--json', server=server))
                if len(answer) != 1:
                    raise AssertionError(f'{verb}: expected one answer, got {answer}')
    deviation, same = answers.deviation(*found, 20)
    session.emit({'benchmark': 'server_models', 'pictures': len(pictures),
                  'deviation': deviation, 'same_first': same, 'ready_seconds': ready})
    if deviation > MOST_DEVIATION:
        raise AssertionError(f'everyday: a logit is off by {deviation:.3f} standard deviations')


def uint8(session):
    session.peak = closed(session, 'uint8 tensors', '--tensor=uint8')['images_per_s']


def fp32(session):
    closed(session, 'fp32 tensors', '--tensor=fp32')


def jpeg(session):
    closed(session, 'jpeg 600x400', JPEG)


def peak(session):
    if not session.peak:
        raise AssertionError('the peak is unknown: the step uint8 did not pass')
    return session.peak


def rates(session):
    """Measures the latency and the batch sizes at several rates."""
    for part in RATES:
        bench(session, f'rates {part:.0%} of the peak', '--tensor=uint8',
              rate=part * peak(session), **brief(session))


def requests(session):
    """Measures the latency for several numbers of images per request, at half of the peak rate."""
    for images in (1, 8, 32):
        bench(session, f'requests of {images} images', '--tensor=uint8', images=images,
              rate=peak(session) / 2 / images, **brief(session))


def brief(session):
    return {} if session.options.tiny else {'duration': '5s', 'warmup': '1s'}


def overload(session):
    """Measures the goodput if clients request more than the server can answer."""
    for times in OVERLOADS:
        bench(session, f'overload {times} times', '--tensor=uint8', rate=times * peak(session),
              deadline=DEADLINE, **brief(session))


def reload(session):
    """Loads and unloads the model "s" again and again while the model "t" gets requests. No request
    may fail.
    """
    seconds = 1 if session.options.tiny else 20
    client = session.client('bench', '--tensor=uint8', '--json', *options(
        session, rate=peak(session) / 2, duration=f'{seconds}s', warmup='0s'))
    loads, times = 0, []
    try:
        while loads < LOADS and client.poll() is None:
            begin = time.monotonic()
            admin(session, 'load', 's')
            times.append(round(time.monotonic() - begin, 2))
            admin(session, 'unload', 's')
            loads += 1
    finally:
        report = session.output(client)
    session.emit({'benchmark': 'server_reload', 'loads': loads, 'load_seconds': times,
                  'p99_ms': report['latency_ms']['p99'], 'codes': report['codes'],
                  'in_time': report['in_time'], 'failed': report['failed']})
    if not loads:
        raise AssertionError('no model was loaded while the other one was asked')
    check_all_answered(report)


def admin(session, action, model):
    """Loads or unloads a model and waits until this is done."""
    client = session.client('admin', action, model, '--deadline=60s')
    try:
        out, error = client.communicate(timeout=session.left())
    except subprocess.TimeoutExpired:
        client.kill()
        client.communicate()
        raise ServerError(f'{action} {model} took too long') from None
    if client.returncode:
        raise ServerError(f'{action} {model}: {(error or out).strip()[-300:]}')


def sigterm(session):
    """Sends SIGTERM while a client sends requests. The server must end by itself with status 0. The
    client's answers are not checked.
    """
    client = session.client('bench', '--tensor=uint8', '--json', *options(
        session, rate=peak(session) / 2, duration='60s', warmup='0s'))
    time.sleep(0.5 if session.options.tiny else 3)
    code, seconds = session.server.stop(min(session.left(), 40))
    client.kill()
    client.communicate()
    session.emit({'benchmark': 'server_stop', 'code': code, 'seconds': round(seconds, 2)})
    if code:
        raise ServerError(f'SIGTERM: expected exit code 0, got {code}: '
                          f'{session.server.last_line()}')


def ceiling(session):
    """Compares the server, with a model that answers at once, with a server that only echoes."""
    seconds, what = ('0.1', 'tensor') if session.options.tiny else ('3', 'tensor')
    done = subprocess.run([str(session.folder / 'serving_ceiling_benchmark'), seconds, '1', what],
                          capture_output=True, text=True, timeout=session.left(),
                          env=session.environment)
    session.emit({'benchmark': 'server_ceiling', 'code': done.returncode,
                  'text': (done.stdout or done.stderr)[-3000:]})
    if done.returncode:
        raise AssertionError(f'it ended with {done.returncode}: {done.stderr[-300:]}')


STEPS = {'ready': ready, 'answers': check_answers, 'uint8': uint8, 'jpeg': jpeg, 'fp32': fp32,
         'rates': rates, 'requests': requests, 'overload': overload, 'reload': reload,
         'sigterm': sigterm, 'models': models, 'ceiling': ceiling}
