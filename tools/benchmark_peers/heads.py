#!/usr/bin/env python3
"""Measures the dense heads beside PyTorch: a detector, a segmenter and their kernels.

    python heads.py --bin bazel-bin --threads 1,2

Runs Cascade Mask R-CNN on 800x1333 pixels and UperNet on 512x683, both on SF-Mamba-T with random
weights, and measures each stage. Then measures four kernels on the shapes of their own benchmarks:
RoIAlign, NMS, pasting masks and the segmenter's argmax. PyTorch's side runs the modules of
tools/pytorch in eager mode, with torchvision's operators. It is measured in both memory formats,
and the faster one counts. PyTorch and this project take turns, round after round, and the median of
each stage counts. --without_engine measures only PyTorch, without this project's binaries.
"""

import argparse
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'pytorch'))

DETECTION, SEGMENTATION = (800, 1333), (512, 683)  # Height, width.
PADDED = (800, 1344)
SEGMENTER_CLASSES = 150
FORMATS = ('contiguous', 'channels_last')


# The functions for PyTorch. A workload maps the names of stages to functions without arguments,
# which are called in this order. A separate process builds it.

def formatted(x, memory_format):
    """Returns a module or a tensor in this memory format."""
    import torch
    return x.to(memory_format=torch.channels_last) if memory_format == 'channels_last' else x


def backbone(windows):
    import pyramid
    import sf_mamba
    fields = {k: v for k, v in sf_mamba.VARIANTS['T'].items() if k != 'windows'}
    return pyramid.Backbone(**fields, windows=windows)


def noise(*shape, memory_format):
    import torch
    return formatted(torch.randn(*shape), memory_format)


def detector_stages(memory_format):
    import detector
    import torch
    import torch.nn.functional as F
    body = formatted(backbone((84, 42)).eval(), memory_format)
    heads = detector.DetectionHeads(body.widths, detector.Config()).eval()
    heads = formatted(heads, memory_format)
    config, roi_head = heads.config, heads.roi_head
    images = noise(1, 3, *PADDED, memory_format=memory_format)
    state = {}

    def run_backbone():
        state['maps'] = body(images)

    def run_pyramid():
        state['levels'] = heads.neck(state['maps'])

    def run_rpn():
        state['rpn'] = heads.rpn_head(state['levels'])

    def run_proposals():
        anchors = detector.anchors(config, [x.shape[2:] for x in state['levels']])
        boxes, _ = heads.rpn_head.propose(0, *state['rpn'], anchors, DETECTION)
        state['rois'] = F.pad(boxes, (1, 0))

    def run_boxes(stage):
        features = roi_head.extract(state['levels'], state['rois'], config.box_roi)
        state['logits'], state['deltas'] = roi_head.bbox_head[stage](features)

    def run_detections():
        boxes = detector.decode(state['rois'][:, 1:], state['deltas'], config.box_stds[2],
                                DETECTION)
        roi_head.detect(boxes, state['logits'].softmax(dim=1))

    def run_masks():  # For the maximum number of boxes.
        rois = state['rois'][:config.max_detections]
        labels = torch.zeros(len(rois), dtype=torch.int64)
        state['masks'] = roi_head.masks(state['levels'], rois, labels)

    def run_paste():
        paste_cropped(state['masks'], state['rois'][:config.max_detections, 1:], DETECTION)

    return {'backbone': run_backbone, 'pyramid': run_pyramid, 'rpn': run_rpn,
            'proposals': run_proposals,
            **{f'boxes {i + 1}': lambda i=i: run_boxes(i) for i in range(config.box_stages)},
            'detections': run_detections, 'masks': run_masks, 'paste': run_paste}


def segmenter_stages(memory_format):
    import torch
    import upernet
    body = formatted(backbone((64, 32)).eval(), memory_format)
    head = upernet.DecodeHead(body.widths, 512, SEGMENTER_CLASSES).eval()
    head = formatted(head, memory_format)
    images = noise(1, 3, *SEGMENTATION, memory_format=memory_format)
    state = {}

    def run_backbone():
        state['maps'] = body(images)

    def run_laterals():
        maps = state['maps']
        x = [conv(m) for conv, m in zip(head.lateral_convs, maps)] + [head.pool(maps[3])]
        for i in (3, 2, 1):
            x[i - 1] = x[i - 1] + upernet.resize(x[i], x[i - 1].shape[2:])
        state['laterals'] = x

    def run_convolutions():
        x = state['laterals']
        x = [conv(m) for conv, m in zip(head.fpn_convs, x)] + [x[3]]
        x = [x[0]] + [upernet.resize(m, x[0].shape[2:]) for m in x[1:]]
        state['levels'] = torch.cat(x, dim=1)

    def run_bottleneck():
        state['feature'] = head.fpn_bottleneck(state['levels'])

    def run_classifier():
        state['logits'] = head.conv_seg(state['feature'])

    def run_tail():
        upernet.class_map(state['logits'], SEGMENTATION, (480, 640))

    return {'backbone': run_backbone, 'pools, laterals': run_laterals,
            'fpn convs': run_convolutions, 'fpn bottleneck': run_bottleneck,
            'classifier': run_classifier, 'tail': run_tail}


def paste_cropped(masks, boxes, size):
    """Pastes masks like detector.paste(), but computes each mask only on the pixels that it can
    cover.
    """
    import torch
    import torch.nn.functional as F
    H, W = size
    for mask, box in zip(masks, boxes.tolist()):
        left, top = max(int(box[0]) - 1, 0), max(int(box[1]) - 1, 0)
        right, bottom = min(math.ceil(box[2]) + 1, W), min(math.ceil(box[3]) + 1, H)
        u = (torch.arange(left, right) + 0.5 - box[0]) / max(box[2] - box[0], 1e-6) * 2 - 1
        v = (torch.arange(top, bottom) + 0.5 - box[1]) / max(box[3] - box[1], 1e-6) * 2 - 1
        grid = torch.stack([u.expand(len(v), -1), v[:, None].expand(-1, len(u))], dim=-1)
        F.grid_sample(mask[None, None], grid[None], align_corners=False) >= 0.5


def regions(count):
    """Returns regions with sides of 16 to 600 pixels, as in roi_align_benchmark. The logarithms of
    the sides are evenly distributed.
    """
    import torch
    centre = torch.rand(count, 2) * torch.tensor([1333.0, 800.0])
    side, ratio = 16 * (600 / 16) ** torch.rand(count), 2 ** (torch.rand(count) - 0.5)
    half = torch.stack([side * ratio, side / ratio], dim=1) / 2
    corners = torch.cat([(centre - half).clamp(min=0),
                         (centre + half).minimum(torch.tensor([1333.0, 800.0]))], dim=1)
    return torch.cat([torch.zeros(count, 1), corners], dim=1)


def proposals():
    """Returns 4819 boxes of five levels around 40 objects, as in nms_benchmark."""
    import torch
    size = torch.tensor([1333.0, 800.0])
    side, ratio = 16 * 2 ** (5 * torch.rand(40)), 2 ** (torch.rand(40) - 0.5)
    things, centres = torch.stack([side * ratio, side / ratio], 1), torch.rand(40, 2) * size
    pick = torch.randint(40, (4819,))
    sides = things[pick] * 2 ** (0.3 * torch.randn(4819, 2))
    middle = centres[pick] + 0.15 * sides * torch.randn(4819, 2)
    boxes = torch.cat([middle - sides / 2, middle + sides / 2], 1).clamp(min=0)
    return boxes.minimum(size.repeat(2)), torch.rand(4819), torch.arange(4819) // 1000


def kernel_stages(memory_format):
    import detector
    import torch
    import upernet
    roi_head = detector.RoIHead(detector.Config(box_stages=1))
    levels = [noise(1, 256, PADDED[0] // s, PADDED[1] // s, memory_format=memory_format)
              for s in detector.STRIDES[:4]]
    boxes, scores, groups = proposals()
    masks, corners = torch.rand(100, 28, 28), torch.rand(100, 2, 2).sort(dim=1).values
    pasted = (corners * torch.tensor([640.0, 384.0])).view(-1, 4)
    logits = noise(1, 150, 128, 171, memory_format=memory_format)
    box_rois, mask_rois = regions(1000), regions(100)
    return {'RoiAlign/Boxes': lambda: roi_head.extract(levels, box_rois, 7),
            'RoiAlign/Masks': lambda: roi_head.extract(levels, mask_rois, 14),
            'Nms/Best1000': lambda: detector.grouped_nms(boxes, scores, groups, 0.7)[:1000],
            'MaskPaste': lambda: paste_cropped(masks, pasted, (384, 640)),
            'SegmentationArgmax/Vga': lambda: upernet.class_map(logits, SEGMENTATION, (480, 640))}


# The clocks of this process. 'wall' measures elapsed time. 'cpu' measures the CPU time of all
# threads together.
CLOCKS = {'wall': time.perf_counter, 'cpu': time.process_time}
WORKLOADS = {'detector': detector_stages, 'segmenter': segmenter_stages, 'kernels': kernel_stages}


def serve(workload, memory_format, threads, pipe):
    """The body of PyTorch's process. Each message contains the name of a clock. The answer is the
    milliseconds of every stage.
    """
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    with torch.inference_mode():
        stages = WORKLOADS[workload](memory_format)
        for run in stages.values():
            run()
        pipe.send(None)
        while name := pipe.recv():
            clock, figures = CLOCKS[name], {}
            for stage, run in stages.items():
                start, calls = clock(), 0
                while not calls or clock() - start < 0.2:
                    run()
                    calls += 1
                figures[stage] = (clock() - start) / calls * 1e3
            pipe.send(figures)


# The functions for this project's engine.

def engine(folder, workload, threads, clock):
    """Runs this project's own benchmarks. Returns the milliseconds of each stage."""
    environment = {**os.environ, 'OMP_NUM_THREADS': str(threads), 'GOMP_SPINCOUNT': '20000'}

    def answer(*command):
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True,
                                         env=environment).stdout)

    if workload != 'kernels':
        report = answer(folder / f'tests/model/{workload}_benchmark', f'--threads={threads}',
                        '--rounds=1', '--json')
        return {stage: figures[clock] for stage, figures in report.items()
                if isinstance(figures, dict) and stage != 'all'}
    figures = {}
    for binary in ('detection/roi_align', 'detection/nms', 'detection/mask_paste',
                   'segmentation/segmentation_argmax'):
        report = answer(folder / f'tests/kernels/{binary}_benchmark', '--benchmark_format=json')
        for row in report['benchmarks']:  # The fastest instruction set is used.
            if row.get('aggregate_name') == 'median':
                name = row['name'].split('/isa:')[0]
                value = row[{'wall': 'real_time', 'cpu': 'cpu_time'}[clock]]
                scale = {'ns': 1e-6, 'us': 1e-3, 'ms': 1}[row['time_unit']]
                figures[name] = min(figures.get(name, math.inf), value * scale)
    return figures


def measure(folder, workload, threads, rounds, clock):
    """Returns {(side, setting): {stage: median milliseconds}}."""
    context = multiprocessing.get_context('spawn')
    os.environ['OMP_NUM_THREADS'] = str(threads)  # The processes inherit it.
    workers = {}
    for memory_format in FORMATS:
        pipe, end = context.Pipe()
        process = context.Process(target=serve, args=(workload, memory_format, threads, end),
                                  daemon=True)
        process.start()
        pipe.recv()
        workers[memory_format] = pipe, process
    turns = {}
    for _ in range(rounds):
        for memory_format, (pipe, _) in workers.items():
            pipe.send(clock)
            turns.setdefault(('PyTorch', memory_format), []).append(pipe.recv())
        if folder:
            figures = engine(folder, workload, threads, clock)
            turns.setdefault(('this project', ''), []).append(figures)
    for pipe, process in workers.values():
        pipe.send(None)
        process.join()
    return {key: {name: statistics.median(row[name] for row in rows) for name in rows[0]}
            for key, rows in turns.items()}


def faster(figures, stage):
    """Returns (milliseconds, setting) of PyTorch's faster memory format for a stage."""
    return min((row[stage], setting) for (side, setting), row in figures.items()
               if side == 'PyTorch')


def table(workload, threads, clock, figures):
    ours = figures.get(('this project', ''), {})
    plural = 's' if threads > 1 else ''
    lines = [f'{workload}, {threads} thread{plural}, {clock} time', '',
             '| stage | PyTorch, ms | format | this project, ms | ratio |', '|---|---|---|---|---|']
    stages = list(figures['PyTorch', FORMATS[0]])
    if workload == 'kernels':
        rows = [(stage, *faster(figures, stage), ours.get(stage)) for stage in stages]
    else:  # One format for the whole model.
        total, setting = min((sum(figures['PyTorch', f].values()), f) for f in FORMATS)
        rows = [(stage, figures['PyTorch', setting][stage], setting, ours.get(stage))
                for stage in stages]
        rows.append(('**sum**', total, setting, sum(ours.values()) if ours else None))
    for stage, peer, setting, own in rows:
        right = f'{own:.2f} | {peer / own:.2f}x' if own else '- | -'
        lines.append(f'| {stage} | {peer:.2f} | {setting} | {right} |')
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'bazel-bin',
                        help='folder of the built benchmarks')
    parser.add_argument('--without_engine', action='store_true', help='measure PyTorch alone')
    parser.add_argument('--workloads', default=','.join(WORKLOADS))
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--clock', choices=CLOCKS, default='wall',
                        help='cpu: with one thread, on a machine that others use too')
    parser.add_argument('--rounds', type=int, default=3)
    arguments = parser.parse_args()
    for threads in map(int, arguments.threads.split(',')):
        for workload in arguments.workloads.split(','):
            if workload == 'kernels' and threads > 1:
                continue  # A kernel runs on the thread that calls it.
            figures = measure(None if arguments.without_engine else arguments.bin, workload,
                              threads, arguments.rounds, arguments.clock)
            print(table(workload, threads, arguments.clock, figures), flush=True)


if __name__ == '__main__':
    main()
