"""Makes the tables of the server from the figures of tests/gpu/server/measure.py."""

import engine_tables
from results import latest
from tables import number, table

MOST_THREADS = 6


def render(lines):
    steps = latest(lines, 'server_step', 'step')
    if not steps:
        return '## The server\n\nIt was not measured.'
    texts = ['## The server', says(lines), rates(lines), threads(lines), overload(lines)]
    failed = [f'- {line["step"]}: {line["status"]}' for line in steps
              if line['status'] != 'passed']
    texts.append('\n'.join(failed))
    for line in latest(lines, 'server_ceiling'):
        texts.append(f'With a model that answers at once:\n\n```\n{line["text"].strip()}\n```')
    return '\n\n'.join(text for text in texts if text)


def says(lines):
    """Returns sentences about the figures of the server that are in no table."""
    texts = []
    for line in latest(lines, 'server_ready'):
        texts.append(f'SF-Mamba-T in bf16, batches to {line["max_batch_size"]}, {line["slots"]} '
                     f'slots on {line["device"]}: READY after {line["seconds"]:.1f} s.')
    for kind, what in (('server_answers', 'SF-Mamba-T, bf16 beside fp32 on the CPU'),
                       ('server_models', 'The default classifier, fp32 beside the CPU')):
        for line in latest(lines, kind):
            texts.append(f'{what}: logits deviate by at most {line["deviation"]:.4f} of their '
                         f'standard deviation, {line["same_first"]} of {line["pictures"]} '
                         'pictures have the same first class.')
    for line in latest(lines, 'server_models'):
        for device, seconds in line.get('ready_seconds', {}).items():
            texts.append(f'The default models are READY on {device} after {seconds:.1f} s.')
    for line in latest(lines, 'server_reload'):
        texts.append(f'{line["loads"]} times a second model was loaded, in '
                     f'{max(line["load_seconds"], default=0):.1f} s at most, while half of the '
                     f'peak was asked: {line["failed"]} requests failed, p99 '
                     f'{line["p99_ms"]:.1f} ms.')
    for line in latest(lines, 'server_stop'):
        texts.append(f'After SIGTERM under load it ended with {line["code"]} in '
                     f'{line["seconds"]:.1f} s.')
    return ' '.join(texts)


def loads(lines):
    return latest(lines, 'server_load', 'case')


def peak(lines):
    return next((line['images_per_second'] for line in loads(lines)
                 if line['step'] == 'uint8'), None)


def steady(lines):
    """Returns the images per second of the engine without pauses, for the model that the server
    runs.
    """
    found = [engine_tables.without_pauses(line) for line in lines
             if line['benchmark'] == 'engine' and line['variant'] == 'sf_mamba_t' and
             line['batch'] == 128 and line['precision'] == 'bf16']
    return max((value for value in found if value), default=None)


def part(value, whole):
    return f'{100 * value / whole:.0f} %' if value and whole else '-'


def rates(lines):
    rows = [[line['case'], number(line['rate']), number(line['images_per_second']),
             part(line['images_per_second'], steady(lines)), f'{line["mean_batch_size"]:.1f}',
             f'{line["p50_ms"]:.2f}', f'{line["p99_ms"]:.2f}', number(line['server_us'])]
            for line in loads(lines) if line['step'] != 'overload']
    return table(['load', 'requests/s asked', 'images/s', 'of the engine without pauses',
                  'mean batch', 'p50 ms', 'p99 ms', "server's CPU us an image"],
                 rows) if rows else ''


def threads(lines):
    rows = []
    for line in loads(lines):
        if line['step'] in ('uint8', 'jpeg', 'fp32'):
            found = list(line['threads_us'].items())[:MOST_THREADS]
            rows.append([line['case'], ', '.join(f'{name} {cost:.1f}' for name, cost in found)])
    return table(['load', 'CPU us an image, by thread'], rows) if rows else ''


def overload(lines):
    rows = [[line['case'], number(line['rate']), number(line['goodput']),
             part(line['goodput'], peak(lines)), line['late'],
             f'{line["p99_ms"]:.1f}', codes(line['codes'])]
            for line in loads(lines) if line['step'] == 'overload']
    return table(['deadline 100 ms', 'asked/s', 'in time/s', 'of the peak', 'late', 'p99 ms',
                  'answers'], rows) if rows else ''


def codes(counts):
    return ', '.join(f'{code} {count}' for code, count in counts.items())
