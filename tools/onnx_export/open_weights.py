"""MambaOut, EfficientViM and VMamba in ONNX, as tools/pytorch has them.

Letters: N images, C channels, L pixels of a map, n hidden states, D scanned channels, R rank of
the projection to time steps.
"""

import numpy as np
from onnx import helper

from checkpoint.open_names import EFFICIENTVIM, MAMBAOUT, VMAMBA
from checkpoint.vmamba import DIRECTIONS


def _channels_last(g, x):
    return g.transpose(x, 0, 2, 3, 1)


def _channels_first(g, x):
    return g.transpose(x, 0, 3, 1, 2)


def _map_norm(g, x, weights, epsilon=1e-5):
    """LayerNorm of each pixel of a map [N,C,H,W]."""
    return _channels_first(g, g.layer_norm(_channels_last(g, x), weights, epsilon))


def _depthwise(g, x, weights, stride=1):
    return g.convolution(x, weights, stride, groups=len(weights.take('weight')))


def _logits(g, x, weights):
    return {'logits': (g.linear(x, weights), ['batch', len(weights.take('bias'))])}


# MambaOut.

def _mambaout_block(g, x, block, activate):
    """Adds a MambaOut block on x [N,H,W,C]."""
    hidden, conv = block.take('fc2.weight').shape[1], len(block.take('conv.weight'))
    y = g.linear(g.layer_norm(x, block.sub('norm'), 1e-6), block.sub('fc1'))
    gate, inner, c = g.op('Split', y, [hidden, hidden - conv, conv], outputs=3, axis=-1)
    c = _channels_last(g, _depthwise(g, _channels_first(g, c), block.sub('conv')))
    y = g.linear(g.op('Mul', activate(gate), g.concat(inner, c, axis=-1)), block.sub('fc2'))
    return g.op('Add', x, g.op('Mul', y, block.take('ls.gamma'))
                if block.has('ls.gamma') else y)


def mambaout(graph, config, images):
    g, weights = graph, graph.weights()
    stem, head = weights.sub('stem'), weights.sub('head')
    rw = not stem.has('norm1.weight')

    def gelu(x):
        return g.op('Gelu', x)

    activate = g.silu if config.activation == 'silu' else gelu
    x = g.convolution(images, stem.sub('conv1'), stride=2)
    x = activate(x if rw else _map_norm(g, x, stem.sub('norm1'), 1e-6))
    x = _map_norm(g, g.convolution(x, stem.sub('conv2'), stride=2), stem.sub('norm2'), 1e-6)
    for k in range(weights.count('stages')):
        stage = weights.sub(f'stages.{k}')
        if k:
            conv, norm = (stage.sub(f'downsample.{part}') for part in ('conv', 'norm'))
            x = g.convolution(_map_norm(g, x, norm, 1e-6) if rw else x, conv, stride=2)
            x = x if rw else _map_norm(g, x, norm, 1e-6)
        x = _channels_last(g, x)
        for j in range(stage.count('blocks')):
            x = _mambaout_block(g, x, stage.sub(f'blocks.{j}'), activate)
        x = _channels_first(g, x)
    x = g.layer_norm(g.op('ReduceMean', x, [2, 3], keepdims=0), head.sub('norm'), 1e-6)
    x = gelu(g.linear(x, head.sub('pre_logits.fc')))
    if not rw:
        x = g.layer_norm(x, head.sub('pre_logits.norm'), 1e-6)
    return _logits(g, x, head.sub('fc'))


# EfficientViM.

def _conv_norm(g, x, weights, stride=1, depthwise=False, relu=False):
    groups = len(weights.take('norm.weight')) if depthwise else 1
    x = g.convolution(x, weights.sub('conv'), stride, groups)
    x = g.batch_norm(x, weights.sub('norm'))
    return g.op('Relu', x) if relu else x


def _efficientvim_mixer(g, x, norm, mixer):
    """Normalises a map [N,C,H,W] and applies the mixer. Returns the new map and the hidden states
    [N,n,C]."""
    # A has one number for each state. It is not added to dt, because it would cancel out in the
    # softmax over the pixels.
    width, states = len(norm.take('weight')), len(mixer.take('A'))
    height, side = g.size(x, 2), g.size(x, 3)
    v = g.reshape(g.layer_norm(_channels_last(g, x), norm), 0, -1, width)           # [N,L,C]
    bcdt = g.transpose(g.linear(v, mixer.sub('BCdt_proj.conv'), bias=False), 0, 2, 1)
    bcdt = _depthwise(g, g.reshape(bcdt, 0, 3 * states, height, side), mixer.sub('dw.conv'))
    B, C, dt = g.op('Split', g.reshape(bcdt, 0, 3 * states, -1), [states] * 3, outputs=3, axis=1)
    h = g.op('MatMul', g.op('Mul', g.op('Softmax', dt, axis=-1), B), v)             # [N,n,C]
    h, z = g.op('Split', g.linear(h, mixer.sub('hz_proj.conv'), bias=False), [width] * 2,
                outputs=2, axis=-1)
    h = g.op('Mul', h, g.op('Add', g.silu(z), mixer.take('D')))
    h = g.linear(h, mixer.sub('out_proj.conv'), bias=False)
    y = g.op('MatMul', g.transpose(C, 0, 2, 1), h)
    return _channels_first(g, g.reshape(y, 0, height, side, width)), h


def _efficientvim_block(g, x, block):
    a = 1 / (1 + np.exp(-block.take('alpha')[:, :, None, None]))

    def mix(x, y, a):
        return g.op('Add', g.op('Mul', x, 1 - a), g.op('Mul', y, a))

    x = mix(x, _conv_norm(g, x, block.sub('dwconv1'), depthwise=True), a[0])
    y, h = _efficientvim_mixer(g, x, block.sub('norm'), block.sub('mixer'))
    x = mix(x, y, a[1])
    x = mix(x, _conv_norm(g, x, block.sub('dwconv2'), depthwise=True), a[2])
    y = _conv_norm(g, x, block.sub('ffn.fc1'), relu=True)
    return mix(x, _conv_norm(g, y, block.sub('ffn.fc2')), a[3]), h


def _efficientvim_merge(g, x, merge):
    conv = merge.sub('conv')
    x = g.op('Add', x, _conv_norm(g, x, merge.sub('dwconv1'), depthwise=True))
    y = _conv_norm(g, x, conv.sub('0'), relu=True)
    y = _conv_norm(g, y, conv.sub('1'), 2, depthwise=True, relu=True)
    gate = g.op('Relu', g.convolution(g.mean(y, [2, 3]), conv.sub('2.fc1')))
    y = g.op('Mul', y, g.op('Sigmoid', g.convolution(gate, conv.sub('2.fc2'))))
    y = _conv_norm(g, y, conv.sub('3'))
    return g.op('Add', y, _conv_norm(g, y, merge.sub('dwconv2'), depthwise=True))


def _votes(weights, suffix):
    """Returns (matrix, biases) of one classifier that reads all features. It is the sum of the four
    classifiers, each multiplied by its weight.
    """
    shares = np.exp(weights.take(f'weights{suffix}'))
    heads = [weights.sub(f'heads{suffix}.{i}') for i in range(4)]
    parts = [(head.take('weight') * share, head.take('bias') * share)
             for head, share in zip(heads, shares / shares.sum())]
    return np.concatenate([w for w, _ in parts], axis=1).T, sum(b for _, b in parts)


def efficientvim(graph, config, images):
    g, weights, hidden, x = graph, graph.weights(), [], images
    for i in range(4):
        x = _conv_norm(g, x, weights.sub(f'patch_embed.conv.{i}'), 2, relu=i < 3)
    for i in range(3):
        stage = weights.sub(f'stages.{i}')
        for j in range(stage.count('blocks')):
            x, h = _efficientvim_block(g, x, stage.sub(f'blocks.{j}'))
        hidden.append(h)
        if i < 2:
            x = _efficientvim_merge(g, x, stage.sub('downsample'))
    hidden.append(g.reshape(_channels_last(g, x), 0, -1, len(weights.take('norm.3.weight'))))
    pooled = [g.op('ReduceMean', g.layer_norm(h, weights.sub(f'norm.{i}')), [1], keepdims=0)
              for i, h in enumerate(hidden)]
    suffixes = ('', '_dist') if weights.has('weights_dist') else ('',)
    votes = [_votes(weights, suffix) for suffix in suffixes]
    matrix, biases = (sum(part) / len(votes) for part in zip(*votes))
    return {'logits': (g.op('Add', g.op('MatMul', g.concat(*pooled, axis=-1), matrix), biases),
                       ['batch', len(biases)])}


# VMamba.

def _recurrence(g, decay, inputs, channels):
    """Computes h[t] = decay[t] * h[t-1] + inputs[t] along the tokens [N,L,channels]. The output of
    the loop is a copy of the next state, made by Identity. ONNX Runtime 1.32 computes wrong results
    if the next state itself is an output.
    """
    h, a, b, ah, next_h, y = [g.name('step') for _ in range(6)]
    steps = [('Mul', [a, h], ah), ('Add', [ah, b], next_h), ('Identity', [next_h], y)]
    body = helper.make_graph(
        [helper.make_node(kind, values, [name]) for kind, values, name in steps], 'recurrence',
        [helper.make_tensor_value_info(name, 1, None) for name in (h, a, b)],
        [helper.make_tensor_value_info(name, 1, None) for name in (next_h, y)])
    start = g.op('ConstantOfShape', g.sizes([g.size(decay, 0), channels]))
    return g.op('Scan', start, decay, inputs, outputs=2, body=body, num_scan_inputs=2,
                scan_input_axes=[1, 1], scan_output_axes=[1])[1]


def _cross_scan(g, u, op):
    """Scans u [N,H,W,D] in four orders and adds up the results of each pixel. One loop scans the
    channels of all four orders.
    """
    x_proj, dt_projs = op.take('x_proj_weight'), op.take('dt_projs_weight')
    D, R, biases = x_proj.shape[2], dt_projs.shape[2], op.take('dt_projs_bias')
    A, Ds = -np.exp(op.take('A_logs')).reshape(DIRECTIONS, D), op.take('Ds').reshape(DIRECTIONS, D)
    rows, columns = (g.reshape(x, 0, -1, D) for x in (u, g.transpose(u, 0, 2, 1, 3)))
    decays, inputs, reads = [], [], []
    for k, x in enumerate((rows, columns, g.reversed(rows), g.reversed(columns))):
        dt, B, C = g.op('Split', g.op('MatMul', x, x_proj[k].T), [R, 1, 1], outputs=3, axis=-1)
        delta = g.op('Softplus', g.op('Add', g.op('MatMul', dt, dt_projs[k].T), biases[k]))
        decays.append(g.op('Exp', g.op('Mul', delta, A[k])))
        inputs.append(g.op('Mul', g.op('Mul', delta, x), B))
        reads.append(C)
    h = _recurrence(g, g.concat(*decays, axis=-1), g.concat(*inputs, axis=-1), DIRECTIONS * D)
    y = [g.op('Mul', part, C) for part, C in zip(
        g.op('Split', h, [D] * DIRECTIONS, outputs=DIRECTIONS, axis=-1), reads)]
    by_rows, by_columns = (g.op('Add', y[k], g.reversed(y[k + 2])) for k in range(2))
    height, width = g.size(u, 1), g.size(u, 2)
    by_rows = g.op('Add', by_rows, g.op('Mul', rows, Ds.sum(axis=0)))
    by_columns = g.transpose(g.reshape(by_columns, 0, width, height, D), 0, 2, 1, 3)
    return g.op('Add', g.reshape(by_rows, 0, height, width, D), by_columns)


def _vmamba_block(g, x, block):
    """Adds a VMamba block on x [N,H,W,C]."""
    op, mlp = block.sub('op'), block.sub('mlp')
    u = g.linear(g.layer_norm(x, block.sub('norm')), op.sub('in_proj'), bias=False)
    u = _channels_last(g, g.silu(_depthwise(g, _channels_first(g, u), op.sub('conv2d'))))
    y = g.layer_norm(_cross_scan(g, u, op), op.sub('out_norm'))
    x = g.op('Add', x, g.linear(y, op.sub('out_proj'), bias=False))
    y = g.op('Gelu', g.linear(g.layer_norm(x, block.sub('norm2')), mlp.sub('fc1')))
    return g.op('Add', x, g.linear(y, mlp.sub('fc2')))


def vmamba_maps(g, weights, images):
    """Maps images [N,3,H,W] to the maps of the four stages [N,H,W,C]."""
    stem, maps = weights.sub('patch_embed'), []
    x = _map_norm(g, g.convolution(images, stem.sub('0'), stride=2), stem.sub('2'))
    x = g.convolution(g.op('Gelu', x), stem.sub('5'), stride=2)
    x = g.layer_norm(_channels_last(g, x), stem.sub('7'))
    for i in range(4):
        stage = weights.sub(f'layers.{i}')
        for j in range(stage.count('blocks')):
            x = _vmamba_block(g, x, stage.sub(f'blocks.{j}'))
        maps.append(x)
        if i < 3:
            down = stage.sub('downsample')
            x = g.convolution(_channels_first(g, x), down.sub('1'), stride=2)
            x = g.layer_norm(_channels_last(g, x), down.sub('3'))
    return maps


def vmamba(graph, config, images):
    g, head = graph, graph.weights('classifier')
    x = g.layer_norm(vmamba_maps(g, graph.weights(), images)[-1], head.sub('norm'))
    return _logits(g, g.op('ReduceMean', x, [1, 2], keepdims=0), head.sub('head'))


CLASSIFIERS = {MAMBAOUT: mambaout, EFFICIENTVIM: efficientvim, VMAMBA: vmamba}
