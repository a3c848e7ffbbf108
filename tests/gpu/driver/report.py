"""Writes gpu.md, a page for people, from gpu.jsonl.

  python3 tests/gpu/driver/report.py gpu.jsonl > gpu.md

If a figure was measured more than once, the last one is used.
"""

import collections
import math
import sys

import engine_tables
import ncu
import paper
import parts
import results
import server_tables
import torch_tables
from results import latest
from tables import cell, number, ratio, table, us

# The bits of NVML for the reasons that limit the clocks. Being idle is not among these reasons.
THROTTLING = {0x4: 'power cap', 0x8: 'hardware slowdown', 0x20: 'heat', 0x40: 'heat (hardware)',
              0x80: 'power brake'}
MOST_NAMES = 20  # At most this many failed tests are listed.
MOST_KERNELS = 12  # At most this many kernels of a pass are listed.
OWN_KERNELS = ('lane', 'fold', 'chunk')
LAUNCH_US = 1.5  # The launch of a kernel below this time takes longer than its memory accesses.


def render(lines, left):
    """Returns the page. `left` contains the reasons why parts were not run, by their names."""
    sections = [header, correctness, clocks, engine_tables.render, server_tables.render, scans,
                fold_table, peers, torch_tables.ladder, torch_tables.attention, kernels, passes]
    texts = [guarded(section, lines) for section in sections]
    texts.append(guarded(what_ran, lines, left))
    return '\n\n'.join(text for text in texts if text) + '\n'


def guarded(section, *arguments):
    """Calls a section. If it raises an error, returns a text with the error, so that the other
    sections are still written.
    """
    try:
        return section(*arguments)
    except Exception as error:
        return (f'## {section.__name__}\n\nThis section could not be written: '
                f'{type(error).__name__}: {error}')


def header(lines):
    settings = latest(lines, 'setting')
    if not settings:
        return '# On a GPU\n\nThe setting was not measured.'
    one = settings[-1]
    text = (f'# {one["device"]}\n\n{one["multiprocessors"]} multiprocessors at up to '
            f'{one["clock_mhz"]:.0f} MHz, copies {one["copy_bytes_per_s"] / 1e12:.2f} TB/s (read '
            f'and written), driver {one["driver"] or "unknown"}, scan kernels {one["build"]}')
    for peer in latest(lines, 'peer_setting')[-1:]:
        text += f'; torch {peer["torch"]}, CUDA {peer["cuda"]}, cuDNN {peer["cudnn"]}'
    return text + '.'


def correctness(lines):
    rows, names = [], []
    for line in latest(lines, 'tests', 'part', 'step'):
        own = line['part'] if line['part'] == line['step'] else f'{line["part"]}: {line["step"]}'
        failed = line['failed'] + [f'{name} (crashed)' for name in line['crashed']]
        if line['cut']:
            failed.append(f'{line["cut"]} (running at the limit)')
        rows.append([own, line['passed'], len(failed), len(line['skipped']),
                     '-' if line['findings'] is None else line['findings']])
        names += [f'- {own}: {name}' for name in failed]
    if not rows:
        return '## Correctness\n\nNo test was run.'
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = [f'- and {len(names) - MOST_NAMES} more']
    text = '## Correctness\n\n' + table(
        ['part', 'passed', 'failed', 'skipped', "sanitizer's findings"], rows)
    return '\n\n'.join([text] + (['\n'.join(names)] if names else []))


def clocks(lines):
    """Reports the GPU's clocks, and the parts in which something limited them."""
    waiting, rows = [], []
    for line in lines:
        if line['benchmark'] == 'clocks':
            waiting.append(line)
        elif line['benchmark'] == 'part':
            rows += [(line['part'], one) for one in waiting if one['sm_mhz']]
            waiting = []
    rows += [('the last part', one) for one in waiting if one['sm_mhz']]
    if not rows:
        return '## Clocks\n\nThey could not be read.'
    text = '; '.join(f'{when} SM {spread(rows, when, "sm_mhz")} MHz, memory '
                     f'{spread(rows, when, "memory_mhz")} MHz' for when in ('before', 'after')
                     if any(one['when'] == when for _, one in rows))
    hot = max(one['celsius'] for _, one in rows)
    watts = max(one['watts'] for _, one in rows)
    throttled = sorted({f'{part} ({THROTTLING[bit]})' for part, one in rows
                        for bit in THROTTLING if one['reasons'] & bit})
    verdict = f'Throttled: {", ".join(throttled)}.' if throttled else 'Never throttled.'
    return f'## Clocks\n\nOf all parts, {text}; at most {hot} C and {watts:.0f} W. {verdict}'


def spread(rows, when, key):
    values = sorted(one[key] for _, one in rows if one['when'] == when)
    return f'{values[0]}' if values[0] == values[-1] else f'{values[0]} to {values[-1]}'


def scans(lines):
    found = latest(lines, 'scan', 'case', 'shape', 'kernel', 'plan', 'rows')
    texts = [folds_of(name, found) for name in paper.SCANS]
    rows = []
    for line in found:
        if line['group'] == 'paper':
            continue
        rows.append([line['case'], line['shape'], line['kernel'], line['plan'],
                     f'{us(line["us"])} ({us(line["us_p10"])}, {us(line["us_p90"])})',
                     us(line['us_cold']), f'{line["ns_per_value"]:.4f}',
                     f'{100 * line["share_of_bound"]:.0f} %'])
    if not found:
        return '## The scan\n\nIt was not measured.'
    texts.append(table(['scan', 'shape', 'kernel', 'plan', 'warm us (p10, p90)', 'cold us',
                        'ns per value', 'of the bound'], rows) if rows else '')
    intro = ("bf16; microseconds, warm; in brackets the speed-up over one row a sequence. The "
             "paper's times are in its own unit, on an A100.")
    return '\n\n'.join(['## The scan', intro] + [text for text in texts if text])


def folds_of(name, found):
    """Makes a table for one of the paper's shapes. It has a row for each kernel and a column for
    each B1.
    """
    channels, length, times = paper.SCANS[name]
    kernels = collections.defaultdict(dict)
    for line in found:
        if line['case'] == name:
            rows = line['rows'] or paper.FOLDS[-1]
            best = kernels[line['kernel']].get(rows, math.inf)
            kernels[line['kernel']][rows] = min(best, line['us'])
    if not kernels:
        return ''
    lines = [['the paper'] + [f'{time:.4f} ({times[-1] / time:.2f}x)' for time in times]]
    for kernel, own in kernels.items():
        whole = own.get(paper.FOLDS[-1])
        lines.append([kernel] + [
            us(own.get(rows)) + (f' ({whole / own[rows]:.2f}x)' if whole and rows in own else '')
            for rows in paper.FOLDS])
    return table([f'{name}: 128 x {length}, {channels} channels, B1 =', *paper.FOLDS], lines)


def fold_table(lines):
    found = latest(lines, 'fold', 'shape')
    if not found:
        return '## Fold table\n\nNothing was tuned.'
    rows = [[line['shape'], f'{line["kernel"]}, {line["plan"]}', us(line['us']),
             us(line['default_us']), ratio(line['default_us'], line['us']),
             ratio(line['unfolded_us'], line['us'])]
            for line in found if shown(line['shape'])]
    gains = [line['default_us'] / line['us'] for line in found]
    mean = math.exp(sum(map(math.log, gains)) / len(gains))
    return (f'## Fold table\n\n{len(found)} shapes; tuning gains {100 * (mean - 1):.1f} % over the '
            f'default plan on average. At 128 sequences:\n\n' +
            table(['shape', 'plan', 'us', 'default us', 'over the default', 'over no folding'],
                  rows or [['-'] * 6]))


def shown(shape):
    return shape.startswith('bf16') and ' 128 x ' in shape


def peers(lines):
    settings = latest(lines, 'peer_setting')
    models = peer_models(lines)
    peer_scans = peer_scan_rows(lines)
    if settings:
        why = settings[-1]['mamba_ssm_missing']
        text = (f"PyTorch's scan is none at all, as mamba-ssm is missing ({why})." if why else
                f"PyTorch's scan is that of mamba-ssm {settings[-1]['mamba_ssm']}.")
    else:
        text = 'PyTorch was not measured.'
    text += ' Both sides are timed on the GPU alone; ours from end to end too.'
    return '\n\n'.join(['## Peers', text] + [one for one in (models, peer_scans) if one])


def peer_models(lines):
    own = engine_tables.by_case(lines)
    grouped = collections.defaultdict(dict)
    for line in latest(lines, 'peer_model', 'variant', 'precision', 'batch', 'setting'):
        grouped[line['variant'], line['precision'], line['batch']][line['setting']] = line
    rows = []
    for key, settings in grouped.items():
        fits = [line for line in settings.values() if not line['note']]
        compiled = settings.get('compile')
        best = min(fits, key=lambda line: line['ms'], default=None)
        speed = best and best['images_per_second']
        ours = own.get(key)
        alone = ours and engine_tables.gpu_alone(ours)
        end_to_end = ours and ours['images_per_second']
        rows.append([*key, number(speed), best['setting'] if best else 'none fits',
                     number(compiled and compiled['images_per_second']), number(alone),
                     number(end_to_end), ratio(alone, speed), ratio(end_to_end, speed)])
    return table(['model', 'precision', 'batch', 'PyTorch, images/s', 'its setting',
                  'torch.compile', 'ours, GPU alone', 'ours, end to end', 'ratio alone',
                  'ratio end to end'], rows) if rows else ''


def peer_scan_rows(lines):
    """Returns a row for each scan that we or the peer measured."""
    peer = {(line['case'], line['what']): line
            for line in latest(lines, 'peer_scan', 'case', 'what')}
    best, bucket, unfolded = {}, {}, {}
    for line in latest(lines, 'scan', 'case', 'shape', 'kernel', 'plan', 'rows'):
        if line['sequences'] != 128 or line['group'] not in ('paper', 'model'):
            continue
        own = line['kernel'] in OWN_KERNELS
        whole = not own and line['rows'] in (0, paper.FOLDS[-1])
        for fastest in [best] if own else [bucket, unfolded] if whole else [bucket]:
            if line['us'] < fastest.get(line['case'], {'us': math.inf})['us']:
                fastest[line['case']] = line
    rows = []
    for case in dict.fromkeys([case for case, _ in peer] + list(best)):
        own = best.get(case)
        alone, copies = peer.get((case, 'alone')), peer.get((case, 'with copies'))
        rows.append([case, times(alone), times(copies), times(unfolded.get(case)),
                     times(bucket.get(case)), times(own),
                     f'{own["kernel"]}, {own["plan"]}' if own else '-',
                     ratio(alone and alone['us'], own and own['us']),
                     ratio(copies and copies['us'], own and own['us'])])
    return table(['scan of 128, warm us (cold)', 'mamba-ssm', 'mamba-ssm with its copies',
                  "the paper's block scan, our reproduction, unfolded, without its copies",
                  'by its best B1', 'ours', 'plan', 'ratio', 'with copies'], rows) if rows else ''


def times(line):
    return f'{us(line["us"])} ({us(line["us_cold"])})' if line else '-'


def kernels(lines):
    """Makes a table of the slowest kernels of a pass. Beside each time is the time that a copy of
    as much memory would take.
    """
    settings = latest(lines, 'setting')
    copy = settings[-1]['copy_bytes_per_s'] if settings else None
    last = {}
    for line in lines:
        if line['benchmark'] == 'kernel':
            key = line['variant'], line['precision'], line['batch']
            if line['pass'] != last.get(key, [{'pass': None}])[0]['pass']:
                last[key] = []
            last[key].append(line)
    if not last:
        return '## Kernels of a pass\n\nNone was profiled.'
    return '## Kernels of a pass\n\n' + '\n\n'.join(
        pass_table(key, found, copy) for key, found in last.items())


def pass_table(key, found, copy):
    groups = collections.defaultdict(list)
    for line in found:
        groups[ncu.short(line['name'])].append(line)
    total = sum(line['us'] for line in found)
    bound = lambda some: sum(line['bytes'] for line in some) / copy * 1e6 if copy else None
    rows = []
    for name, own in sorted(groups.items(), key=lambda item: -sum(x['us'] for x in item[1])):
        time = sum(line['us'] for line in own)
        rows.append([name, len(own), us(time), f'{100 * time / total:.1f} %',
                     f'{sum(line["bytes"] for line in own) / 1e6:.0f}', us(bound(own)),
                     share(bound(own), time)])
    tiny = sum(line['us'] < LAUNCH_US for line in found)
    title = (f'{key[0]}, {key[1]}, batch {key[2]}: {len(found)} launches, {total / 1e3:.2f} ms, '
             f'memory alone {us(bound(found))} us; {tiny} launches below {LAUNCH_US} us')
    rest = [] if len(rows) <= MOST_KERNELS else [
        [f'{len(rows) - MOST_KERNELS} others', *['-'] * 6]]
    return title + '\n\n' + table(['kernel', 'launches', 'us', 'share', 'MB', 'memory us',
                                   'of the bound'], rows[:MOST_KERNELS] + rest)


def share(bound, time):
    return f'{100 * bound / time:.0f} %' if bound and time else '-'


def passes(lines):
    rows = [[line['kernel'], f'{line["tokens"]} x {line["channels"]}', cell(line['mib']),
             us(line['us']), f'{100 * line["share_of_copy"]:.0f} %', us(line['us_cold']),
             f'{100 * line["share_of_copy_cold"]:.0f} %']
            for line in latest(lines, 'pass', 'kernel', 'tokens', 'channels')]
    if not rows:
        return ''
    return '## Passes over memory, bf16\n\n' + table(
        ['kernel', 'tokens x channels', 'MiB', 'warm us', 'of a copy', 'cold us', 'of a copy'],
        rows)


def what_ran(lines, left):
    rows = [[line['part'], line['note'] or line['status'], f'{line["seconds"]:.0f}']
            for line in latest(lines, 'part', 'part')]
    titles = {part.name: part.title for part in parts.PARTS}
    missing = [f'- {name} ({titles[name]}): {why}' for name, why in left.items()]
    return '\n\n'.join(
        ['## Parts'] + ([table(['part', 'result', 'seconds'], rows)] if rows else []) +
        (['Not run:\n\n' + '\n'.join(missing)] if missing else ['Everything was run.']))


def main():
    lines = results.read_lines(sys.argv[1])
    done = {line['part'] for line in lines if line['benchmark'] == 'part'}
    print(render(lines, {part.name: 'not run' for part in parts.PARTS
                         if part.name not in done}), end='')


if __name__ == '__main__':
    main()
