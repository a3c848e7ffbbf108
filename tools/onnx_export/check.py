"""Compares exported files in ONNX Runtime with the networks of tools/pytorch, or with a server."""

import json
import pathlib
import sys
import urllib.request

import numpy as np

from checkpoint.open_weights import fields_of, network_of

TOLERANCE = 1e-5  # The largest accepted difference, divided by the output's range.
sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / 'pytorch'))


def _count(tensors, start):
    return len({key[len(start):].split('.')[0] for key in tensors if key.startswith(start)})


def _backbone_fields(tensors, config):
    """Returns the arguments of sf_mamba.Config for these tensors. Raises ValueError if sf_mamba.py
    has no such network.
    """
    if config.vim or config.full or any(config.attention_windows) or config.scan != 'UNI':
        raise ValueError('tools/pytorch has no such network: compare it with a server')
    depths = tuple(_count(tensors, f'levels.{i}.blocks.') for i in range(4))
    last = 'outnorm3.weight' if 'outnorm3.weight' in tensors else 'norm.weight'
    stem = tensors.get('patch_embed.conv_down.0.weight', ())
    return dict(dim=len(tensors[last]) // 8, in_dim=len(stem), depths=depths,
                num_heads=config.num_heads, windows=config.windows,
                layer_scale=any(key.endswith('.gamma_1') for key in tensors),
                tokens=config.tokens.lower(), swap=config.swap, discard=config.discard.lower(),
                lite_trunk={0: 0, 11: 16, 12: 32}[_count(tensors, 'trunk.blocks.')])


def _without(prefix, tensors):
    return {key[len(prefix):]: value for key, value in tensors.items() if key.startswith(prefix)}


def _shapes(tensors):
    return {name: tensor.shape for name, tensor in tensors.items()}


def _classifier(config, tensors):
    """Returns the network of tools/pytorch without its weights."""
    import open_networks
    import sf_mamba
    if config.family:
        shapes = _shapes(tensors)
        activation = {'activation': config.activation} if config.activation else {}
        return open_networks.NETWORKS[config.family](
            network_of(config.family, shapes).classes, **fields_of(config.family, shapes),
            **activation)
    return sf_mamba.make(
        'custom', num_classes=len(tensors['head.bias']), neck='neck.project.weight' in tensors,
        **_backbone_fields(tensors, config))


def torch_networks(model):
    """Yields functions that map an input to {name: output}. The first function is the network. For
    a detector, one function for each RoI head follows, in the order of the exported files.
    """
    import detector
    import pyramid
    import torch
    import upernet
    config, tensors = model.config, {k: torch.tensor(v) for k, v in model.tensors.items()}

    def loaded(module, values):
        missing, surplus = module.load_state_dict(values, strict=False)
        missing = [name for name in missing if not name.endswith('num_batches_tracked')]
        if missing or surplus:
            raise ValueError(f'not what tools/pytorch has: {(missing + surplus)[:5]}')
        return module.eval()

    if config.task == 'CLASSIFICATION':
        network = loaded(_classifier(config, tensors), tensors)
        yield lambda x: {'logits': network(x)}
        return
    own = _without('backbone.', tensors)
    fields = dict(family=config.family, **fields_of(config.family, _shapes(own))) \
        if config.family else _backbone_fields(own, config)
    backbone = loaded(pyramid.make_backbone(**fields), own)
    if config.task == 'SEGMENTATION':
        head = _without('decode_head.', tensors)
        classes, channels = head['conv_seg.weight'].shape[:2]
        segmenter = loaded(upernet.DecodeHead(backbone.widths, channels, classes), head)
        yield lambda x: {'logits': segmenter(backbone(x))}
        return
    ratios, channels = tensors['rpn_head.rpn_cls.weight'].shape[:2]
    shared = dict(channels=channels, anchor_ratios=(1.0,) * ratios)
    neck = loaded(detector.FeaturePyramid(backbone.widths, channels), _without('neck.', tensors))
    rpn = loaded(detector.ProposalHead(detector.Config(**shared)), _without('rpn_head.', tensors))

    def detect(x):
        levels = neck(backbone(x))
        outputs = {f'level_{i}': level for i, level in enumerate(levels[:4])}
        for name, values in zip(('logits', 'deltas'), rpn(levels)):
            outputs.update((f'rpn_{name}_{i}', value) for i, value in enumerate(values))
        return outputs

    yield detect
    for part in ('bbox_head', 'mask_head'):
        own = _without(f'roi_head.{part}.', tensors)
        stages = [_without(f'{i}.', own) for i in range(3) if _without(f'{i}.', own)] or [own]
        for values in filter(None, stages):
            yield _roi_head(detector, loaded, part, values, shared)


def _roi_head(detector, loaded, part, values, shared):
    if part == 'mask_head':
        config = detector.Config(classes=len(values['conv_logits.bias']),
                                 mask_convs=_count(values, 'convs.'), **shared)
        mask = loaded(detector.MaskHead(config), values)
        return lambda x: {'mask_logits': mask(x)}
    width = values['shared_fcs.0.weight'].shape
    config = detector.Config(
        classes=len(values['fc_cls.bias']) - 1, box_convs=_count(values, 'shared_convs.'),
        box_fcs=_count(values, 'shared_fcs.'), fc_width=width[0],
        box_roi=round((width[1] / shared['channels'])**0.5), **shared)
    box = loaded(detector.BoxHead(config), values)
    return lambda x: dict(zip(('class_logits', 'box_deltas'), box(x)))


def _ask_server(url, images):
    """Returns the logits that a server returns for images."""
    body = {'inputs': [{'name': 'image', 'datatype': 'FP32', 'shape': images.shape,
                        'data': images.ravel().tolist()}], 'outputs': [{'name': 'logits'}]}
    request = urllib.request.Request(f'{url}/infer', json.dumps(body).encode(),
                                     {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request, timeout=600) as answer:
        output = json.load(answer)['outputs'][0]
    return {'logits': np.array(output['data'], np.float32).reshape(output['shape'])}


def difference(got, expected):
    """Returns the largest difference, divided by the range of the expected values."""
    if got.shape != expected.shape:
        return float('inf')
    return float(np.abs(got - expected).max() / np.ptp(expected))


def inputs_for(session, model, batches=(1, 3)):
    """Returns random inputs for each batch size. If the file allows any image size, returns inputs
    of two sizes.
    """
    batch, channels, *sides = session.get_inputs()[0].shape
    rng = np.random.default_rng(0)
    size = model.config.picture.get('size') or model.config.picture['short_side']
    if session.get_inputs()[0].name == 'features':
        return [rng.standard_normal((n, channels, *sides), dtype=np.float32) for n in batches]
    sizes = [(size, size), (size * 5 // 8 + 3, size * 11 // 8 - 1)]
    if not all(isinstance(side, str) for side in sides):
        sizes = [[side if isinstance(side, int) else size for side in sides]]
    batches = batches if isinstance(batch, str) else (batch,)
    return [rng.standard_normal((n, channels, *size), dtype=np.float32)
            for n in batches for size in sizes]


def open_session(file):
    """Returns an ONNX Runtime session for a path or for the bytes of a file. Its threads do not
    spin, so that other programs are not slowed down.
    """
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry('session.intra_op.allow_spinning', '0')
    return onnxruntime.InferenceSession(file, options, providers=['CPUExecutionProvider'])


def compare(model, paths, server=None):
    """Yields (a line, whether the difference is small enough) for each input of each file."""
    if server:
        references = [lambda images: _ask_server(server, images)]
    else:
        import torch
        references = [_numbers(torch, network) for network in torch_networks(model)]
    for path, reference in zip(paths, references):
        session = open_session(str(path))
        names = [output.name for output in session.get_outputs()]
        for values in inputs_for(session, model):
            got = dict(zip(names, session.run(None, {session.get_inputs()[0].name: values})))
            expected = reference(values)
            worst = max((difference(got[name], expected[name]), name) for name in names)
            yield (f'{path.name} {list(values.shape)}: {worst[1]} differs by {worst[0]:.1e} of its '
                   f'range, allowed {TOLERANCE}', worst[0] <= TOLERANCE)


def _numbers(torch, network):
    def run(values):
        with torch.inference_mode():
            return {name: y.numpy() for name, y in network(torch.from_numpy(values)).items()}
    return run
