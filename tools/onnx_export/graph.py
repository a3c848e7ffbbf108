"""Writes an ONNX graph operator by operator. The weights come from tensors by name.

    graph = Graph(tensors)
    weights = graph.weights('levels.2')
    y = graph.op('Relu', graph.linear(x, weights.sub('fc1')))

A value is given by its name. A NumPy array or a list of whole numbers becomes a constant.
"""

import operator

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 20  # The first opset with Gelu. Opset 21 adds nothing that the networks need.
IR_VERSION = 10
END = 2**63 - 1  # As the end of a slice, this includes the last element.
_SHARED = 256  # Equal constants of at most this number of bytes are stored once.
_WHOLE = {'Add': operator.add, 'Sub': operator.sub, 'Mul': operator.mul,
          'Div': operator.floordiv}


class Weights:
    """The tensors whose names begin with `prefix`. take() records which tensors were used."""

    def __init__(self, tensors, used, prefix=''):
        self.tensors, self.used, self.prefix = tensors, used, prefix

    def sub(self, name):
        return Weights(self.tensors, self.used, f'{self.prefix}{name}.')

    def has(self, name):
        return self.prefix + name in self.tensors

    def count(self, name):
        """Returns the number of parts that are called `name`.0, `name`.1, ..."""
        start = f'{self.prefix}{name}.'
        numbers = {key[len(start):].split('.')[0] for key in self.tensors if key.startswith(start)}
        return max((int(n) + 1 for n in numbers if n.isdigit()), default=0)

    def take(self, name):
        name = self.prefix + name
        if name not in self.tensors:
            raise ValueError(f'the weights have no tensor {name}')
        self.used.add(name)
        return self.tensors[name]


class Graph:
    """The nodes and constants that were added so far. `tensors` are float32 arrays by name."""

    def __init__(self, tensors):
        self.tensors, self.used = tensors, set()
        self.nodes, self.constants, self.numbers = [], {}, {}

    def weights(self, prefix=''):
        return Weights(self.tensors, self.used, f'{prefix}.' if prefix else '')

    def name(self, kind):
        self.numbers[kind] = self.numbers.get(kind, -1) + 1
        return f'{kind}_{self.numbers[kind]}'

    def constant(self, value):
        """Returns the name of a constant. Whole numbers become int64, and all else becomes float32.
        """
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        array = array.astype(np.int64 if array.dtype.kind == 'i' else np.float32)
        small = array.nbytes <= _SHARED
        key = (array.dtype.str, array.shape, array.tobytes()) if small else self.name('weight')
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, self.name('constant'))
        return self.constants[key].name

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node and returns its output, or a list of outputs if `outputs` is not 1."""
        names = [self.name(kind) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, [self.constant(x) for x in inputs], names,
                                           name=names[0], **attributes))
        return names if outputs > 1 else names[0]

    # Shapes. A size is an int, or the name of an int64 tensor [1].

    def whole(self, kind, a, b):
        """Computes Add, Sub, Mul or Div (rounded down) of two sizes. Returns the result."""
        if isinstance(a, int) and isinstance(b, int):
            return _WHOLE[kind](a, b)
        return self.op(kind, *([x] if isinstance(x, int) else x for x in (a, b)))

    def size(self, x, axis):
        return self.op('Shape', x, start=axis, end=axis + 1)

    def sizes(self, values):
        """Returns one int64 tensor that contains several sizes. If all sizes are known, returns a
        list.
        """
        if all(isinstance(v, int) for v in values):
            return list(values)
        return self.op('Concat', *([v] if isinstance(v, int) else v for v in values), axis=0)

    def reshape(self, x, *shape):
        """Changes the shape of x. 0 means that a size does not change. -1 means that a size follows
        from the others.
        """
        return self.op('Reshape', x, self.sizes(shape))

    def transpose(self, x, *order):
        return self.op('Transpose', x, perm=order)

    def slice(self, x, axis, start, end, step=1):
        """Returns the elements from `start` to `end` of an axis. Both may be negative, and `end`
        may be a tensor.
        """
        return self.op('Slice', x, [start], [end] if isinstance(end, int) else end, [axis], [step])

    def reversed(self, x):
        """Returns the tokens [S,L,C] in reverse order."""
        return self.slice(x, 1, -1, -END, -1)

    def concat(self, *values, axis):
        return self.op('Concat', *values, axis=axis)

    # Layers.

    def linear(self, x, weights, bias=True):
        y = self.op('MatMul', x, weights.take('weight').reshape(
            len(weights.take('weight')), -1).T)
        return self.op('Add', y, weights.take('bias')) if bias else y

    def convolution(self, x, weights, stride=1, groups=1):
        """Adds a convolution, which has a bias if `weights` has one. With a stride of 1, it keeps
        the size.
        """
        weight = weights.take('weight')
        bias = [weights.take('bias')] if weights.has('bias') else []
        return self.op('Conv', x, weight, *bias, strides=[stride] * 2, group=groups,
                       pads=[side // 2 for side in weight.shape[2:]] * 2)

    def short_convolution(self, x, weight, bias, left):
        """Convolves each channel of the tokens [S,L,C] along the tokens with weight [C,1,taps], and
        applies SiLU. There are `left` zeros before the first token."""
        right = weight.shape[2] - 1 - left
        y = self.op('Conv', self.transpose(x, 0, 2, 1), weight, *bias, group=len(weight),
                    pads=[left, right])
        return self.transpose(self.silu(y), 0, 2, 1)

    def batch_norm(self, x, weights, epsilon=1e-5):
        parts = [weights.take(name) for name in ('weight', 'bias', 'running_mean', 'running_var')]
        return self.op('BatchNormalization', x, *parts, epsilon=epsilon)

    def unit(self, x, weights, stride=1, groups=1, epsilon=1e-5, activation=None):
        """Adds a convolution `conv`, a BatchNorm `bn` if there is one, and an activation."""
        x = self.convolution(x, weights.sub('conv'), stride, groups)
        if weights.has('bn.weight'):
            x = self.batch_norm(x, weights.sub('bn'), epsilon)
        if activation == 'Clip':  # ReLU6.
            return self.op('Clip', x, np.float32(0), np.float32(6))
        return self.op(activation, x) if activation else x

    def layer_norm(self, x, weights, epsilon=1e-5):
        return self.op('LayerNormalization', x, weights.take('weight'), weights.take('bias'),
                       axis=-1, epsilon=epsilon)

    def silu(self, x):
        return self.op('Mul', x, self.op('Sigmoid', x))

    def mean(self, x, axes):
        return self.op('ReduceMean', x, list(axes))

    def model(self, inputs, outputs, metadata):
        """Returns the ModelProto. `inputs` is {name: shape}, and `outputs` is {name: (value,
        shape)}. A size in a shape is an int, the name of a free axis, or None if it is not stated.
        """
        def info(name, shape):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        unused = [name for name in self.tensors if name not in self.used]
        if unused:
            raise ValueError(f'the network has no {", ".join(unused[:5])} ({len(unused)} tensors)')
        results = [helper.make_node('Identity', [value], [name])
                   for name, (value, _) in outputs.items()]
        graph = helper.make_graph(
            self.nodes + results, 'sfmamba', [info(*item) for item in inputs.items()],
            [info(name, shape) for name, (_, shape) in outputs.items()],
            list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', OPSET)],
                                  ir_version=IR_VERSION, producer_name='sfmamba')
        helper.set_model_props(model, metadata)
        return model
