"""The heads in ONNX, as docs/heads.md defines them. A head is the part of a model after the
backbone's maps.

Each function returns its outputs as {name: (value, shape)}.
"""

import numpy as np

from onnx_export.backbone import Backbone
from onnx_export.open_weights import CLASSIFIERS, VMAMBA, vmamba_maps

POOLS = (1, 2, 3, 6)  # Bins per side in UperNet's pyramid pooling.


def classifier(graph, config, images):
    """Returns the output of a classifier, logits [N,classes]."""
    if config.family:
        return CLASSIFIERS[config.family](graph, config, images)
    g, weights = graph, graph.weights()
    backbone = Backbone(g, weights, config)
    if config.vim:
        x = backbone.vim(images)
    else:
        x = g.batch_norm(backbone.maps(images)[-1], weights.sub('norm'))
        if weights.has('neck.project.weight'):
            x = g.convolution(x, weights.sub('neck.project'))
            x = g.unit(x, weights.sub('neck.expand'), epsilon=1e-3, activation='Clip')
        x = g.op('ReduceMean', x, [2, 3], keepdims=0)
    return {'logits': (g.linear(x, weights.sub('head')),
                       ['batch', len(weights.take('head.bias'))])}


def pyramid(graph, config, images):
    """Returns the backbone's four maps, each after its LayerNorm."""
    weights = graph.weights('backbone')
    if config.family == VMAMBA:
        maps = vmamba_maps(graph, weights, images)
    else:
        maps = [graph.transpose(x, 0, 2, 3, 1)
                for x in Backbone(graph, weights, config).maps(images)]
    return [graph.transpose(graph.layer_norm(x, weights.sub(f'outnorm{i}')), 0, 3, 1, 2)
            for i, x in enumerate(maps)]


def resize(graph, x, like, **how):
    """Resizes x to the height and width of `like`."""
    return graph.op('Resize', x, '', '', graph.op('Shape', like, start=2, end=4), axes=[2, 3],
                    **how)


# Segmenters.

def bilinear(graph, x, like):
    return resize(graph, x, like, mode='linear', coordinate_transformation_mode='half_pixel')


def averages(graph, size, bins):
    """Returns the matrix [bins,size] of an adaptive average pool. Bin i is the mean of the elements
    from floor(i * size / bins) to ceil((i + 1) * size / bins).
    """
    g, i = graph, np.arange(bins)[:, None]
    first = g.op('Div', g.op('Mul', i, size), [bins])
    end = g.op('Div', g.op('Add', g.op('Mul', i + 1, size), [bins - 1]), [bins])
    element = g.op('Range', np.int64(0), g.op('Squeeze', size), np.int64(1))
    inside = g.op('And', g.op('GreaterOrEqual', element, first), g.op('Less', element, end))
    to_float = dict(to=1)
    return g.op('Div', g.op('Cast', inside, **to_float),
                g.op('Cast', g.op('Sub', end, first), **to_float))


def adaptive_pool(graph, x, bins):
    g = graph
    rows, columns = (averages(g, g.size(x, axis), bins) for axis in (2, 3))
    return g.op('MatMul', g.op('MatMul', rows, x), g.transpose(columns, 1, 0))


def segmenter(graph, config, images):
    """UperNet's logits [N,classes,H/4,W/4]."""
    g, weights = graph, graph.weights('decode_head')
    maps = pyramid(g, config, images)

    def unit(x, name):
        return g.unit(x, weights.sub(name), activation='Relu')

    pooled = [bilinear(g, unit(adaptive_pool(g, maps[3], bins), f'psp_modules.{i}.1'), maps[3])
              for i, bins in enumerate(POOLS)]
    laterals = [unit(x, f'lateral_convs.{i}') for i, x in enumerate(maps[:3])]
    laterals.append(unit(g.concat(maps[3], *pooled, axis=1), 'bottleneck'))
    for i in (3, 2, 1):
        laterals[i - 1] = g.op('Add', laterals[i - 1], bilinear(g, laterals[i], laterals[i - 1]))
    outs = [unit(x, f'fpn_convs.{i}') for i, x in enumerate(laterals[:3])] + [laterals[3]]
    outs = [outs[0]] + [bilinear(g, x, outs[0]) for x in outs[1:]]
    x = unit(g.concat(*outs, axis=1), 'fpn_bottleneck')
    return {'logits': (g.convolution(x, weights.sub('conv_seg')),
                       ['batch', len(weights.take('conv_seg.bias')), None, None])}


# A detector is exported as several parts, because regions are chosen between them.

def detector(graph, config, images):
    """Returns the pyramid's maps level_0 to level_3 [N,channels,h,w], from which regions are read.
    Also returns the objectness rpn_logits_i [N,anchors] and rpn_deltas_i [N,anchors,4] of five
    levels, i = 0..4. The fifth level has no output map, because only the proposals use it.
    """
    g, neck, rpn = graph, graph.weights('neck'), graph.weights('rpn_head')
    x = [g.convolution(m, neck.sub(f'lateral_convs.{i}.conv'))
         for i, m in enumerate(pyramid(g, config, images))]
    for i in (3, 2, 1):
        nearest = resize(g, x[i], x[i - 1], mode='nearest', nearest_mode='floor',
                         coordinate_transformation_mode='asymmetric')
        x[i - 1] = g.op('Add', x[i - 1], nearest)
    levels = [g.convolution(m, neck.sub(f'fpn_convs.{i}.conv')) for i, m in enumerate(x)]
    shape = ['batch', len(rpn.take('rpn_conv.bias')), None, None]
    outputs = {f'level_{i}': (level, shape) for i, level in enumerate(levels)}
    levels.append(g.op('MaxPool', levels[3], kernel_shape=[1, 1], strides=[2, 2]))
    for i, level in enumerate(levels):
        hidden = g.op('Relu', g.convolution(level, rpn.sub('rpn_conv')))
        for name, last in (('logits', ()), ('deltas', (4,))):
            head = rpn.sub('rpn_cls' if name == 'logits' else 'rpn_reg')
            y = g.transpose(g.convolution(hidden, head), 0, 2, 3, 1)
            outputs[f'rpn_{name}_{i}'] = g.reshape(y, 0, -1, *last), ['batch', None, *last]
    return outputs


def box_head(graph, features):
    """Maps regions' features [n,channels,7,7] to class_logits [n,K+1] and box_deltas [n,4K]."""
    g, weights, x = graph, graph.weights(), features
    for i in range(weights.count('shared_convs')):
        x = g.unit(x, weights.sub(f'shared_convs.{i}'), activation='Relu')
    x = g.op('Flatten', x)
    for i in range(weights.count('shared_fcs')):
        x = g.op('Relu', g.linear(x, weights.sub(f'shared_fcs.{i}')))
    return {name: (g.linear(x, weights.sub(part)), ['regions', len(weights.take(f'{part}.bias'))])
            for name, part in (('class_logits', 'fc_cls'), ('box_deltas', 'fc_reg'))}


def mask_head(graph, features):
    """Maps regions' features [n,channels,14,14] to mask_logits [n,K,28,28]."""
    g, weights, x = graph, graph.weights(), features
    for i in range(weights.count('convs')):
        x = g.unit(x, weights.sub(f'convs.{i}'), activation='Relu')
    x = g.op('Relu', g.op('ConvTranspose', x, weights.take('upsample.weight'),
                          weights.take('upsample.bias'), strides=[2, 2]))
    return {'mask_logits': (g.convolution(x, weights.sub('conv_logits')),
                            ['regions', len(weights.take('conv_logits.bias')), None, None])}
