"""Times PyTorch on a GPU with the device's clock, in the same way as kernels/cuda/gpu_timer_cuda.cc
times this project's kernels.
"""

import subprocess

LAUNCHES = 10  # The number of launches in one CUDA graph.
REPEATS, FEWEST_REPEATS, LIMIT = 200, 5, 0.2
FLUSH_BYTES = 256 << 20  # Larger than any L2 cache.


def captured(run, launches=1):
    """Captures `launches` calls of `run` as a CUDA graph. Returns the function that replays it."""
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            run()
    return graph.replay


def quantiles(times):
    times = sorted(times)
    at = lambda share: times[round(share * (len(times) - 1))]
    return {'p10': at(0.1), 'median': at(0.5), 'p90': at(0.9)}


def events(run, prepare, repeats):
    """Returns the milliseconds of each run, measured with events of the device. `prepare` is not
    included.
    """
    import torch
    pairs = []
    for _ in range(repeats):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        prepare()
        pair[0].record()
        run()
        pair[1].record()
        pairs.append(pair)
    torch.cuda.synchronize()
    return [start.elapsed_time(stop) for start, stop in pairs]


def repeats(milliseconds, limit, most=REPEATS):
    """Returns how many runs of `milliseconds` each fit into `limit` seconds, within bounds."""
    return int(min(max(limit * 1e3 / max(milliseconds, 1e-6), FEWEST_REPEATS), most))


def measured(run, prepare=lambda: None, limit=LIMIT, most=REPEATS):
    """Returns quantiles of the time of one run, in milliseconds."""
    events(run, prepare, 1)
    return quantiles(events(run, prepare, repeats(events(run, prepare, 1)[0], limit, most)))


def clocks():
    """Returns the GPU's clock and power at this moment, or zeros without nvidia-smi."""
    try:
        said = subprocess.run(['nvidia-smi', '--query-gpu=clocks.sm,power.draw',
                               '--format=csv,noheader,nounits'],
                              capture_output=True, text=True, timeout=10).stdout
        mhz, watts = said.splitlines()[0].split(',')
        return {'sm_mhz': int(mhz), 'watts': round(float(watts))}
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return {'sm_mhz': 0, 'watts': 0}


def warm_and_cold(run):
    """Returns times of one launch in microseconds. `us`, `us_p10` and `us_p90` are quantiles of a
    tenth of the time of a CUDA graph with ten launches. `us_cold` is the median time of a single
    launch after the L2 cache was flushed.
    """
    import torch
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device='cuda')
    warm = measured(captured(run, LAUNCHES))
    cold = measured(captured(run), flush.zero_)
    scaled = {key: value * 1e3 / LAUNCHES for key, value in warm.items()}
    return {'us': scaled['median'], 'us_p10': scaled['p10'], 'us_p90': scaled['p90'],
            'us_cold': cold['median'] * 1e3}


def replayed(replay, seconds):
    """Replays a CUDA graph without pauses for about `seconds`. Returns the milliseconds of one
    replay, and the GPU's clocks during the replays.
    """
    import torch
    count = repeats(measured(replay, limit=0.1)['median'], seconds, most=1 << 20)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        replay()
    meanwhile = clocks()  # Most of the replays are still in the queue.
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / count, meanwhile
