"""Makes the tables of whole models by number of slots (a model's contexts on a GPU), batch size,
image size and B1. The paper's figures are beside ours.
"""

import collections
import statistics

import paper
from results import latest
from tables import number, ratio, table

BATCHES = (1, 8, 32, 128, 256, 512, 1024)
SLOTS = (2, 3, 4)
VARIANTS = ('sf_mamba_t', 'sf_mamba_s', 'sf_mamba_b')
HOST_BOUND = 0.9  # A fraction of the GPU's own rate.
KEY = ('group', 'variant', 'precision', 'batch', 'side', 'club', 'fold_rows', 'slots', 'tuned')


def render(lines):
    found = latest(lines, 'engine', *KEY)
    if not found:
        return '## Whole models\n\nNone was measured.'
    intro = ('224 x 224 pixels and bf16 unless said otherwise; from uint8 pictures in memory to '
             'results there, as many callers as slots. "One caller" is the network\'s pass by the '
             "device's clock with pauses between passes, in which the card rests; \"without "
             'pauses" replays its graph for seconds, as a loaded server does; "overlapped" does '
             'so in all slots at once, which fills the ends of passes: more than that no server '
             "can reach. The paper's figures are an A100's in mixed precision.")
    sections = [by_slots(found), ratios(lines), in_rounds(lines), by_batch(found),
                latencies(found), by_resolution(found), by_fold(found), failures(found)]
    return '\n\n'.join(['## Whole models', intro] + [one for one in sections if one])


def gpu_alone(line):
    """Returns the images per second by the GPU's own time, or None if this time was not measured.
    """
    return line['batch'] / line['device_ms'] * 1e3 if line and line['device_ms'] else None


def speed(line):
    return line['images_per_second'] if line else None


def pick(found, **wanted):
    """Returns the lines that have these values and no note. A line with a note has no figure."""
    return [line for line in found
            if not line['note'] and all(line[key] == value for key, value in wanted.items())]


def fastest(found, **wanted):
    return max(pick(found, **wanted), key=speed, default=None)


def by_case(lines):
    """Returns {(variant, precision, batch): line} with the fastest line. It may have any number of
    slots, and it may use the fold table or not.
    """
    found = pick(latest(lines, 'engine', *KEY), group='batch')
    return {key: fastest(found, variant=key[0], precision=key[1], batch=key[2])
            for key in {(line['variant'], line['precision'], line['batch']) for line in found}}


def baseline(variant):
    return variant.replace('sf_mamba', 'mamba_vision')


def peers_by_variant(lines):
    """Returns {variant: PyTorch's images per second} in bf16 at batch 128, with the fastest
    setting.
    """
    best = {}
    for line in latest(lines, 'peer_model', 'variant', 'precision', 'batch', 'setting'):
        if line['precision'] == 'bf16' and line['batch'] == 128 and not line['note']:
            best[line['variant']] = max(best.get(line['variant'], 0), line['images_per_second'])
    return best


def without_pauses(line):
    """Returns the images per second of a graph that is replayed without pauses, or None if not
    measured.
    """
    ms = line and line.get('sustained_ms')
    return line['batch'] / ms * 1e3 if ms else None


def by_slots(found):
    rows = []
    for variant in VARIANTS:
        own = pick(found, group='batch', variant=variant, precision='bf16', batch=128)
        if not own:
            continue
        steady = max(own, key=lambda line: without_pauses(line) or 0)
        rows.append([variant, number(gpu_alone(fastest(own, slots=2, tuned=False) or own[0])),
                     number(without_pauses(steady)),
                     number(max(line.get('overlapped_images_per_second', 0) for line in own)),
                     *[number(speed(fastest(own, slots=slots, tuned=False))) for slots in SLOTS],
                     number(speed(fastest(own, tuned=True))), paper.BY_BATCH[variant][128]])
    return table(['images/s, batch 128', 'one caller', 'without pauses', 'overlapped',
                  *[f'{slots} slots' for slots in SLOTS], 'fold table', 'the paper'],
                 rows) if rows else ''


def ratios(lines):
    """Makes a table of the ratios that the paper claims and of our ratios, measured in the same
    way.
    """
    peers, rows = peers_by_variant(lines), []
    equal, beside = equal_kernels(lines), beside_peers(lines)
    for variant in VARIANTS:
        other, pairs = baseline(variant), beside[variant]
        if not pairs and other not in peers and variant not in equal:
            continue
        best = fastest(latest(lines, 'engine', *KEY), group='batch', variant=variant,
                       precision='bf16', batch=128)
        figure = paper.BY_BATCH[variant][128]
        rows.append([variant, spread([without_pauses(own) / peer['images_per_second']
                                      for own, peer in pairs]) if pairs else '-', len(pairs),
                     ratio(speed(best), peers.get(other)),
                     ratio(figure, paper.BY_BATCH[other][128]), equal.get(variant, '-'),
                     ratio(figure, paper.SAME_KERNELS.get(other))])
    if not rows:
        return ''
    text = ("By the paper's definition: SF-Mamba with our kernels over MambaVision in PyTorch "
            'with mamba-ssm. Both replay without pauses, in turn; PyTorch as a graph, not '
            "compiled. Beside it from end to end over the fastest of PyTorch's settings, "
            'torch.compile among them where it was measured. On equal kernels SF-Mamba is the '
            'same network with two tokens more, and no ratio above 1 is to be expected.')
    return text + '\n\n' + table(
        ["over PyTorch's MambaVision", 'without pauses', 'rounds', "end to end over its fastest",
         'the paper', 'over ours, on equal kernels', 'the paper'], rows)


def beside_peers(lines):
    """Returns {variant: [(our line, PyTorch's line)]} for each variant of SF-Mamba. PyTorch's line
    is about the MambaVision of the same size. The two lines of a pair were measured shortly after
    each other.
    """
    last, pairs = {}, collections.defaultdict(list)
    for line in lines:
        if (line['benchmark'] == 'engine' and line['batch'] == 128 and
                line['precision'] == 'bf16' and without_pauses(line)):
            last[line['variant']] = line
        elif line['benchmark'] == 'peer_sustained' and not line['note']:
            own = line['variant'].replace('mamba_vision', 'sf_mamba')
            if own in last:
                pairs[own].append((last.pop(own), line))
    return pairs


def equal_kernels(lines):
    """Returns {variant: text}. The text is the speed of SF-Mamba divided by MambaVision's speed.
    Both run on our kernels without pauses.
    """
    return {variant: spread([without_pauses(own) / without_pauses(other)
                             for own, other in measured])
            for (variant, precision, batch, *_), measured in rounds_of(lines).items()
            if precision == 'bf16' and batch == 128 and len(measured) >= 3
            if all(map(without_pauses, sum(measured, ())))}


def rounds_of(lines):
    """Returns {(variant, precision, batch, slots, tuned): pairs}. `pairs` is the list
    [(SF-Mamba's line, MambaVision's line)] with a pair for each round.
    """
    rounds = collections.defaultdict(dict)
    for line in lines:
        if line['benchmark'] == 'engine' and line['group'] == 'batch' and not line['note']:
            case = line['precision'], line['batch'], line['slots'], line['tuned']
            rounds[(*case, line.get('round', 1))][line['variant']] = line
    pairs = collections.defaultdict(list)
    for case, found in rounds.items():
        for variant, own in found.items():
            other = found.get(baseline(variant))
            if other and other is not own:
                pairs[(variant, *case[:4])].append((own, other))
    return pairs


def in_rounds(lines):
    """Makes a table of SF-Mamba's images per second divided by MambaVision's. In each round, both
    were measured shortly after each other.
    """
    rows = []
    for (variant, precision, batch, slots, tuned), measured in rounds_of(lines).items():
        if len(measured) < 3:
            continue
        cells = [spread([get(own) / get(other) for own, other in measured])
                 if all(map(get, sum(measured, ()))) else '-'
                 for get in (speed, gpu_alone, without_pauses)]
        clocks = [line.get('sm_mhz', 0) for pair in measured for line in pair]
        rows.append([variant, precision, batch, slots, len(measured), *cells,
                     f'{min(clocks)} to {max(clocks)}'])
    return table(['over MambaVision, in turn', 'precision', 'batch', 'slots', 'rounds',
                  'end to end', 'one caller', 'without pauses', 'SM MHz'], rows) if rows else ''


def spread(ratios):
    return f'{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})'


def by_batch(found):
    rows = []
    for variant, figures in paper.BY_BATCH.items():
        for precision in ('bf16', 'fp16', 'fp32'):
            own = {batch: fastest(found, group='batch', variant=variant, precision=precision,
                                  batch=batch) for batch in BATCHES}
            if not any(own.values()):
                continue
            rows.append([f'{variant}, {precision}', *[number(speed(own[b])) for b in BATCHES]])
            if any(gpu_alone(line) for line in own.values()):
                rows.append(['GPU alone', *[number(gpu_alone(own[b])) for b in BATCHES]])
        rows.append([f'{variant}, the paper', *[number(figures.get(b)) for b in BATCHES]])
    return table(['images/s, batch', *BATCHES], rows)


def latencies(found):
    rows = []
    for line in pick(found, group='batch', slots=2, tuned=False):
        alone = gpu_alone(line)
        bound = '-'
        if alone:
            bound = 'host' if speed(line) < HOST_BOUND * alone else 'GPU'
        rows.append([line['variant'], line['precision'], line['batch'],
                     f'{line["ms"]:.3f} ({line["ms_p10"]:.3f}, {line["ms_p90"]:.3f})',
                     f'{line["device_ms"]:.3f}' if line['device_ms'] else '-', bound,
                     number(line['device_mib'])])
    return table(['model', 'precision', 'batch', 'ms of one caller (p10, p90)', 'GPU ms',
                  'bound by', 'MiB'], rows) if rows else ''


def by_resolution(found):
    own = [line for line in found if line['group'] == 'resolution']
    if not own:
        return ''
    rows = []
    for (variant, batch, club), figures in paper.BY_SIDE.items():
        name = f'{variant}, batch {batch}' + (', club' if club else '')
        if variant.startswith('sf'):
            lines = {line['side']: line for line in own
                     if line['batch'] == batch and line['club'] == club}
            rows.append([name, *[figure_or_note(lines.get(side)) for side in paper.SIDES]])
        rows.append([f'{name}, the paper', *[figure or '-' for figure in figures]])
    return table(['images/s, windows as large as the map, pixels a side', *paper.SIDES], rows)


def figure_or_note(line):
    if line is None:
        return '-'
    return number(speed(line)) if not line['note'] else line['note'][:20]


def by_fold(found):
    own = {line['fold_rows']: line for line in pick(found, group='fold')}
    if not own:
        return ''
    base = own.get(128)
    rows = []
    for rows_of, figure in paper.BY_FOLD.items():
        line = own.get(rows_of)
        name = {0: "adaptive: the table's choice" if line and line['tuned'] else
                   "adaptive: the engine's choice", 128: '128: no folding'}.get(rows_of, rows_of)
        rows.append([name, number(speed(line)), ratio(speed(line), speed(base)),
                     number(gpu_alone(line)), figure, ratio(figure, paper.BY_FOLD[128])])
    rows.append(['the paper, before its optimisations', '-', '-', '-', paper.UNOPTIMISED,
                 ratio(paper.UNOPTIMISED, paper.BY_FOLD[128])])
    rows.append(['the paper, unfolding around each convolution', '-', '-', '-',
                 paper.UNFOLDED_CONVOLUTIONS,
                 ratio(paper.UNFOLDED_CONVOLUTIONS, paper.BY_FOLD[128])])
    return table(['mamba_vision_t, batch 128, B1', 'images/s', 'over no folding', 'GPU alone',
                  'the paper', 'over no folding'], rows)


def failures(found):
    rows = []
    for line in found:
        case = (f'- {line["variant"]}, {line["precision"]}, batch {line["batch"]}, '
                f'{line["side"]} pixels, {line["slots"]} slots: ')
        if line['note'] and line['note'] != 'OOM':
            rows.append(case + line['note'])
        if line['uncaptured']:
            rows.append(f'{case}a graph could not be recorded: {line["uncaptured"]}')
    return '\n'.join(rows)
