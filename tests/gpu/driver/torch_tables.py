"""Makes the tables of PyTorch with our kernels as operators, and of PyTorch's attention backends.
"""

import collections
import statistics

import paper
from results import latest
from tables import number, ratio, table, us

# The paper's images per second for each step of the ladder, see ladder().
PAPER = {'mamba-ssm': paper.UNOPTIMISED, 'our kernels': paper.BY_FOLD[128],
         'B1 = 1': paper.BY_FOLD[1], 'B1 = 4': paper.BY_FOLD[4], 'adaptive': paper.BY_FOLD[0],
         'adaptive, tokens': paper.BY_BATCH['sf_mamba_t'][128]}
FIRST = 'mamba-ssm'


def ladder(lines):
    """Makes the table of the ladder, with the paper's figures beside ours. The ladder measures
    MambaVision-T in PyTorch. Each step uses other optimisations of the paper, see STEPS in
    tests/gpu/torch/ladder.py.
    """
    found = [line for line in lines if line['benchmark'] == 'ladder' and not line['note']]
    settings = latest(lines, 'ladder_setting')
    rows = []
    for how in ('eager', 'graph'):
        rounds = collections.defaultdict(dict)
        for line in found:
            if line['setting'] == how:
                rounds[line['step']][line['round']] = line['images_per_second']
        base = rounds.get(FIRST, {})
        for step, speeds in rounds.items():
            gains = [speeds[round] / base[round] for round in speeds if base.get(round)]
            rows.append([step, how, len(speeds), number(statistics.median(speeds.values())),
                         f'{statistics.median(gains):.3f} ({min(gains):.3f} to {max(gains):.3f})'
                         if gains else '-', PAPER[step], ratio(PAPER[step], PAPER[FIRST])])
    if not rows:
        return ''
    missing = '' if settings and settings[-1]['mamba_ssm'] else (
        ' mamba-ssm was missing: its step has no scan at all.')
    return ("## The paper's ladder\n\nMambaVision-T in PyTorch with AMP (bf16), batch 128; each "
            'step is measured once a round, and its gain is over the first step of the same '
            f"round. The paper's are an A100's.{missing}\n\n" +
            table(['step', 'setting', 'rounds', 'images/s', 'gain (least to most)', 'the paper',
                   'its gain'], rows))


def attention(lines):
    cases = collections.defaultdict(dict)
    for line in latest(lines, 'sdpa', 'case', 'backend'):
        cases[line['case']][line['backend']] = line
    if not cases:
        return ''
    backends = list(dict.fromkeys(backend for case in cases.values() for backend in case))
    rows = [[case, *[us(found[backend]['us']) if backend in found else '-'
                     for backend in backends]] for case, found in cases.items()]
    return ('## Attention\n\nMicroseconds of one call, warm, in a graph; "-": the backend does '
            'not take the shape.\n\n' + table(['case', *backends], rows))
