"""The backbones in ONNX: SF-Mamba, MambaVision and Vim, as docs/network.md defines them.

Depths, widths, layer scale and kinds of mixers are read from the tensors. The Config tells the
rest. Letters: N images, S sequences, L tokens, C channels, D scanned channels, n states.
"""

import numpy as np
from onnx import helper

from onnx_export.graph import END

# EfficientNet-Lite0: the stride of each block, and the indices of the blocks that make the returned
# maps.
LITE_STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2)
LITE_MAPS = (2, 4, 10, 11)


class Backbone:
    def __init__(self, graph, weights, config):
        self.g, self.weights, self.config = graph, weights, config

    # Scans.

    def scan(self, u, delta, A, B, C):
        """Adds Mamba's recurrence, as ONNX's operator Scan along the tokens.

        The inputs are u and delta [S,L,D], A [D,n] with negative values, and B and C [S,L,n]. The
        result is [S,L,D].

        The state is [S,n,D], so that its last axis is long. A step needs no transposition, because
        Scan passes it each token in the right shape. So a step is fast. It has few operations, and
        they work on long vectors. The output of the loop is y and not the next state. ONNX Runtime
        1.32 computes wrong results if the next state is also an output.
        """
        g = self.g
        h, d, b, du, c = inputs = [g.name('token') for _ in range(5)]
        da, a, ah, bdu, next_h, y = names = [g.name('step') for _ in range(6)]
        steps = [('Mul', d, g.constant(A.T)), ('Exp', da), ('Mul', a, h), ('Mul', b, du),
                 ('Add', ah, bdu), ('MatMul', c, next_h)]
        body = helper.make_graph(
            [helper.make_node(kind, values, [name])
             for (kind, *values), name in zip(steps, names)], 'selective_scan',
            [helper.make_tensor_value_info(name, 1, None) for name in inputs],
            [helper.make_tensor_value_info(name, 1, None) for name in (next_h, y)])
        start = g.op('ConstantOfShape', g.sizes([g.size(u, 0), *A.T.shape]))
        row, column = [2], [3]
        along = [g.op('Unsqueeze', delta, row), g.op('Unsqueeze', B, column),
                 g.op('Unsqueeze', g.op('Mul', delta, u), row), g.op('Unsqueeze', C, row)]
        _, y = g.op('Scan', start, *along, outputs=2, body=body, num_scan_inputs=4,
                    scan_input_axes=[1] * 4, scan_output_axes=[1])
        return g.op('Squeeze', y, row)

    def ssm(self, u, weights, suffix='', bias_scale=2, backward=0):
        """Projects and scans u [S,L,D]. The last `backward` channels are scanned backward."""
        g = self.g
        A = -np.exp(weights.take(f'A{suffix}_log').astype(np.float64)).astype(np.float32)
        channels, states = A.shape
        dt_proj = weights.sub(f'dt_proj{suffix}')
        bias = dt_proj.take('bias') * np.float32(bias_scale)
        p = g.linear(u, weights.sub(f'x_proj{suffix}'), bias=False)
        rank = weights.take(f'x_proj{suffix}.weight').shape[0] - 2 * states
        dt, B, C = g.op('Split', p, [rank, states, states], outputs=3, axis=-1)
        delta = g.op('Softplus', g.op('Add', g.linear(dt, dt_proj, bias=False), bias))
        if backward:
            parts = [channels - backward, backward]
            (u0, u1), (d0, d1) = (g.op('Split', x, parts, outputs=2, axis=-1) for x in (u, delta))
            back = self.scan(*map(g.reversed, (u1, d1)), A[parts[0]:], *map(g.reversed, (B, C)))
            y = g.concat(self.scan(u0, d0, A[:parts[0]], B, C), g.reversed(back), axis=-1)
        else:
            y = self.scan(u, delta, A, B, C)
        return g.op('Add', y, g.op('Mul', u, weights.take(f'D{suffix}')))

    # Mixers of tokens [S,L,C].

    def mamba(self, x, weights):
        g, scan = self.g, self.config.scan
        convolutions = [weights.take(f'conv1d_{part}.weight') for part in 'xz']
        half = len(convolutions[0])
        xz = g.linear(x, weights.sub('in_proj'), bias=False)
        both = g.short_convolution(xz, np.concatenate(convolutions), [], left=1)
        u, z = g.op('Split', both, [half, half], outputs=2, axis=-1)
        y = self.ssm(u, weights, backward=half - half // 2 if scan == 'PARALLEL_CAT' else 0)
        if scan == 'PARALLEL_ADD':
            back = g.short_convolution(g.reversed(g.slice(xz, 2, 0, half)),
                                       weights.take('conv1d_x_b.weight'), [], left=1)
            y = g.op('Add', y, g.reversed(self.ssm(back, weights, '_b')))
        return g.linear(g.concat(y, z, axis=-1), weights.sub('out_proj'), bias=False)

    def vim_mixer(self, x, weights):
        g = self.g
        d = len(weights.take('D'))
        x, z = g.op('Split', g.linear(x, weights.sub('in_proj'), bias=False), [d, d], outputs=2,
                    axis=-1)

        def path(x, suffix):
            weight, bias = (weights.take(f'conv1d{suffix}.{part}') for part in ('weight', 'bias'))
            u = g.short_convolution(x, weight, [bias], left=weight.shape[2] - 1)
            return self.ssm(u, weights, suffix, bias_scale=1)

        y = path(x, '')
        if weights.has('D_b'):
            y = g.op('Add', y, g.reversed(path(g.reversed(x), '_b')))
            y = g.op('Mul', y, np.float32(0.5))
        return g.linear(g.op('Mul', y, g.silu(z)), weights.sub('out_proj'), bias=False)

    def attention(self, x, weights, heads):
        g = self.g
        width = len(weights.take('proj.bias'))
        if width % heads:
            raise ValueError(f'num_heads: {heads} heads do not divide {width} channels')
        qkv = g.reshape(g.linear(x, weights.sub('qkv')), 0, 0, 3, heads, width // heads)
        parts = g.op('Split', g.transpose(qkv, 2, 0, 3, 1, 4), [1, 1, 1], outputs=3, axis=0)
        q, k, v = (g.op('Squeeze', part, [0]) for part in parts)  # [S,heads,L,C/heads]
        q = g.op('Mul', q, np.float32((width // heads)**-0.5))
        p = g.op('Softmax', g.op('MatMul', q, g.transpose(k, 0, 1, 3, 2)), axis=-1)
        y = g.transpose(g.op('MatMul', p, v), 0, 2, 1, 3)
        return g.linear(g.reshape(y, 0, 0, width), weights.sub('proj'))

    def alternating(self, x, weights, index):
        """Applies the Mamba mixer for the scans SERIES and SERIES_GAP. Only models for ablations
        have them. Every second block scans its tokens backward.
        """
        g, turned = self.g, index % 2 == 1
        x = g.reversed(x) if turned else x
        if self.config.scan == 'SERIES_GAP':
            y = self.mamba(g.concat(g.mean(x, [1]), x, axis=1), weights)
            y = g.slice(y, 1, 1, END)
        else:
            y = self.mamba(x, weights)
        return g.reversed(y) if turned else y

    def mixer(self, x, weights, index, heads):
        if weights.has('qkv.weight'):
            return self.attention(x, weights, heads)
        if self.config.scan == 'PARALLEL_ADD_VIM':
            return self.vim_mixer(x, weights)
        if self.config.scan in ('SERIES', 'SERIES_GAP'):
            return self.alternating(x, weights, index)
        return self.mamba(x, weights)

    def token_block(self, x, weights, index, heads):
        g = self.g

        def add(x, y, gamma):
            scaled = g.op('Mul', y, weights.take(gamma)) if weights.has(gamma) else y
            return g.op('Add', x, scaled)

        x = add(x, self.mixer(g.layer_norm(x, weights.sub('norm1')), weights.sub('mixer'), index,
                              heads), 'gamma_1')
        hidden = g.op('Gelu', g.linear(g.layer_norm(x, weights.sub('norm2')),
                                       weights.sub('mlp.fc1')))
        return add(x, g.linear(hidden, weights.sub('mlp.fc2')), 'gamma_2')

    # Auxiliary tokens.

    def attach(self, x, weights):
        g = self.g
        if self.config.tokens == 'LEARNABLE':
            shape = g.sizes([g.size(x, 0), 1, 1])
            head, tail = (g.op('Expand', weights.take(f'aux_{end}'), shape)
                          for end in ('head', 'tail'))
        else:
            head = tail = g.mean(x, [1])
        return g.concat(head, x, tail, axis=1)

    def swap(self, x):
        g = self.g
        return g.concat(g.slice(x, 1, -1, END), self.detach(x), g.slice(x, 1, 0, 1), axis=1)

    def detach(self, x):
        return self.g.slice(x, 1, 1, -1)

    # Windows of maps [N,height,width,C]. The windows divide the maps without remainder.

    def cut(self, x, width, h, w, channels):
        """Cuts a map into windows. Returns their tokens, [S,h*w,C]."""
        g = self.g
        x = g.reshape(x, 0, -1, h, g.whole('Div', width, w), w, channels)
        return g.reshape(g.transpose(x, 0, 1, 3, 2, 4, 5), -1, g.whole('Mul', h, w), channels)

    def join(self, x, height, width, h, w, channels):
        g = self.g
        x = g.reshape(x, -1, g.whole('Div', height, h), g.whole('Div', width, w), h, w, channels)
        return g.reshape(g.transpose(x, 0, 1, 3, 2, 4, 5), -1, height, width, channels)

    def cut_sequences(self, x, attached, window, sub, channels):
        """Cuts each sequence, which is a window, into sub-windows. Each of these gets copies of the
        auxiliary tokens."""
        g = self.g
        patches = g.reshape(self.detach(x) if attached else x, -1, *window, channels)
        cut = self.cut(patches, window[1], *sub, channels)
        if not attached:
            return cut
        count = g.whole('Mul', *(g.whole('Div', a, b) for a, b in zip(window, sub)))
        ends = [g.reshape(g.op('Expand', g.slice(x, 1, *part), g.sizes([1, count, 1])), -1, 1,
                          channels) for part in ((0, 1), (-1, END))]
        return g.concat(ends[0], cut, ends[1], axis=1)

    def geometry(self, height, width, stage):
        """Returns the sides of the padded map, of a window, and of attention's sub-window. The
        last value is None if attention has no sub-windows.
        """
        g, side = self.g, self.config.windows[stage - 2]
        sub = self.config.attention_windows[stage - 2]

        def round_up(size, to):
            return g.whole('Mul', g.whole('Div', g.whole('Add', size, g.whole('Sub', to, 1)), to),
                           to)

        if not self.config.full:
            padded = [round_up(size, side) for size in (height, width)]
            return padded, (side, side), (sub, sub) if sub else None
        if not sub:
            return (height, width), (height, width), None
        # A map that fits into one sub-window is neither padded nor cut.
        larger = g.op('Greater', g.op('Max', height, width), [sub])
        subs = [g.op('Where', larger, [sub], size) for size in (height, width)]
        padded = [round_up(size, to) for size, to in zip((height, width), subs)]
        return padded, padded, subs

    # Stages. They return the map [N,C,H,W] as it is before downsampling.

    def token_stage(self, x, weights, stage):
        g, config = self.g, self.config
        depth, heads = weights.count('blocks'), config.num_heads[stage - 2]
        blocks = [weights.sub(f'blocks.{i}') for i in range(depth)]
        mamba = sum(not block.has('mixer.qkv.weight') for block in blocks)
        channels = len(blocks[0].take('norm1.weight'))
        height, width = g.size(x, 2), g.size(x, 3)
        padded, window, sub = self.geometry(height, width, stage)
        pads = [g.whole('Sub', a, b) for a, b in zip(padded, (height, width))]
        x = g.op('Pad', x, g.sizes([0] * 6 + pads))
        x = self.cut(g.transpose(x, 0, 2, 3, 1), padded[1], *window, channels)
        attached = config.tokens != 'NONE'
        if attached:
            x = self.attach(x, weights)
        last = {'BEFORE_ATTN': mamba - 1, 'AFTER_FIRST_ATTN': mamba, 'AFTER_ATTN': depth - 1}
        for i, block in enumerate(blocks):
            if sub and i == mamba:
                x = self.cut_sequences(x, attached, window, sub, channels)
            x = self.token_block(x, block, i, heads)
            if attached and config.swap and i < mamba - 1:
                x = self.swap(x)
            if attached and i == min(last[config.discard], depth - 1):
                x, attached = self.detach(x), False
        if sub and mamba < depth:
            x = self.join(x, *window, *sub, channels)
        x = g.transpose(self.join(x, *padded, *window, channels), 0, 3, 1, 2)
        return g.op('Slice', x, [0, 0], g.sizes([height, width]), [2, 3])

    def conv_stage(self, x, weights):
        g = self.g
        for block in (weights.sub(f'blocks.{i}') for i in range(weights.count('blocks'))):
            y = g.batch_norm(g.convolution(x, block.sub('conv1')), block.sub('norm1'))
            y = g.convolution(g.op('Gelu', y, approximate='tanh'), block.sub('conv2'))
            x = g.op('Add', x, g.batch_norm(y, block.sub('norm2')))
        return x

    def stem(self, x):
        g, weights = self.g, self.weights.sub('patch_embed.conv_down')
        for convolution, norm in (('0', '1'), ('3', '4')):
            x = g.convolution(x, weights.sub(convolution), stride=2)
            x = g.op('Relu', g.batch_norm(x, weights.sub(norm), epsilon=1e-4))
        return x

    def lite_trunk(self, x):
        """Returns the maps of EfficientNet-Lite0's layers. The last map is the input of the next
        stage.
        """
        g, weights, maps = self.g, self.weights.sub('trunk'), []
        options = dict(epsilon=1e-3, activation='Clip')
        x = g.unit(x, weights.sub('stem'), stride=2, **options)
        for i in range(weights.count('blocks')):
            block, stride, y = weights.sub(f'blocks.{i}'), LITE_STRIDES[i], x
            if block.has('expand.conv.weight'):
                y = g.unit(y, block.sub('expand'), **options)
            wide = len(block.take('depthwise.conv.weight'))
            y = g.unit(y, block.sub('depthwise'), stride=stride, groups=wide, **options)
            y = g.unit(y, block.sub('project'), epsilon=1e-3)
            expand = 'expand' if block.has('expand.conv.weight') else 'depthwise'
            same = block.take(f'{expand}.conv.weight').shape[1 if expand == 'expand' else 0] == \
                len(block.take('project.conv.weight'))
            x = g.op('Add', x, y) if stride == 1 and same else y
            if i in LITE_MAPS:
                maps.append(x)
        return maps

    def maps(self, images):
        """Maps images [N,3,H,W] to the stages' maps at strides 4, 8, 16 and 32."""
        if self.weights.has('trunk.stem.conv.weight'):
            *maps, x = self.lite_trunk(images)
        else:
            maps, x = [], self.stem(images)
        for stage in range(len(maps), 4):
            level = self.weights.sub(f'levels.{stage}')
            maps.append(self.conv_stage(x, level) if stage < 2 else
                        self.token_stage(x, level, stage))
            if stage < 3:
                x = self.g.convolution(maps[-1], level.sub('downsample.reduction.0'), stride=2)
        return maps

    # Vim.

    def rms_norm(self, x, weight):
        g = self.g
        square = g.op('Add', g.mean(g.op('Mul', x, x), [-1]), np.float32(1e-5))
        return g.op('Mul', g.op('Div', x, g.op('Sqrt', square)), weight)

    def vim(self, images):
        """Maps images [N,3,H,W] to class tokens [N,C]. The position embedding determines the
        images' size.
        """
        g, weights, config = self.g, self.weights, self.config
        patch, positions = weights.sub('patch_embed.proj'), weights.take('pos_embed')
        width, middle = positions.shape[2], (positions.shape[1] - 1) // 2
        kernel = patch.take('weight')
        x = g.op('Conv', images, kernel, patch.take('bias'), strides=kernel.shape[2:])
        x = g.transpose(g.reshape(x, 0, width, -1), 0, 2, 1)
        token = g.op('Expand', weights.take('cls_token'), g.sizes([g.size(x, 0), 1, 1]))
        x = g.concat(g.slice(x, 1, 0, middle), token, g.slice(x, 1, middle, END), axis=1)
        x = g.op('Add', x, positions)
        attached = config.tokens != 'NONE'
        if attached:
            x = self.attach(x, weights)
            middle += 1
        for i in range(weights.count('layers')):
            layer = weights.sub(f'layers.{i}')
            x = self.swap(x) if attached and config.swap and i > 0 else x
            normed = self.rms_norm(x, layer.take('norm.weight'))
            x = g.op('Add', x, self.vim_mixer(normed, layer.sub('mixer')))
        x = g.op('Squeeze', g.slice(x, 1, middle, middle + 1), [1])
        return self.rms_norm(x, weights.take('norm_f.weight'))
