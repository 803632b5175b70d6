"""RNN, GRU and LSTM, one step after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ..builder import shape_of
from ..errors import Unsupported
from ..node import Handler, Node

Activation = Callable[[SSAValue], SSAValue]


def _activations(node: Node, defaults: Sequence[str], direction: int) -> list[Activation]:
    given = node.attribute("activations")
    names = [n.decode() for n in given] if given else list(defaults) * 2
    names = names[direction * len(defaults) : (direction + 1) * len(defaults)]
    known = {"Tanh": "tanh", "Sigmoid": "sigmoid", "Relu": "relu"}
    for name in names:
        if name not in known:
            raise Unsupported(f"activation {name} is not supported", f"supported are {', '.join(known)}")
    limit = node.float("clip", 0.0)

    def apply(name: str) -> Activation:
        def activation(x: SSAValue) -> SSAValue:
            return node.build.map(known[name], node.build.clip(x, -limit, limit) if limit else x)

        return activation

    return [apply(name) for name in names]


class _Layer:
    """What the three kinds share: directions, layout, initial states, and stacking what comes out."""

    def __init__(self, node: Node, gates: int) -> None:
        self.node, self.gates, self.build = node, gates, node.build
        self.hidden = node.int("hidden_size", node.shape(2)[-1])
        self.batch_first = node.flag("layout")
        x = node.ssa(0)
        self.x = self.build.transpose(x, [1, 0, 2]) if self.batch_first else x  # [steps, batch, inputs]
        self.steps, self.batch, _ = shape_of(self.x)
        way = node.text("direction", "forward")
        self.backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[way]
        if node.has(4):
            lengths = node.ints(4, "the lengths of the sequences")
            if any(length != self.steps for length in lengths):
                raise Unsupported(
                    f"sequences of different lengths {lengths} are not supported", "pad them to one length"
                )

    def per_direction(self, i: int, d: int) -> SSAValue:
        """Operand i without its first dimension."""
        value = self.node.ssa(i)
        return self.build.reshape(self.build.take(value, 0, d, 1), shape_of(value)[1:])

    def bias(self, d: int, second: bool) -> SSAValue | None:
        """Half of the bias: for the inputs, or for the state."""
        if not self.node.has(3):
            return None
        size = self.gates * self.hidden
        return self.build.take(self.per_direction(3, d), 0, size if second else 0, size)

    def state(self, i: int, d: int) -> SSAValue:
        """An initial state [batch, hidden], zeros if it is not given."""
        if not self.node.has(i):
            return self.build.full([self.batch, self.hidden], 0.0, self.node.value(0).element.name)
        value = self.node.ssa(i)
        if self.batch_first:
            value = self.build.transpose(value, [1, 0, 2])
        return self.build.reshape(self.build.take(value, 0, d, 1), [self.batch, self.hidden])

    def inputs(self, t: int, d: int) -> SSAValue:
        """x of step t times the weights of the inputs, plus their bias: [batch, gates · hidden]."""
        row = self.build.reshape(self.build.take(self.x, 0, t, 1), [self.batch, shape_of(self.x)[2]])
        product = self.build.matmul(row, self.per_direction(1, d), transpose_b=True)
        bias = self.bias(d, False)
        return product if bias is None else self.build.map("add", product, bias)

    def recurrent(self, h: SSAValue, weights: SSAValue, bias: SSAValue | None) -> SSAValue:
        """The state times its weights, plus their bias."""
        product = self.build.matmul(h, weights, transpose_b=True)
        return product if bias is None else self.build.map("add", product, bias)

    def gate(self, value: SSAValue, i: int) -> SSAValue:
        """Part i of [batch, gates · hidden]."""
        return self.build.take(value, len(shape_of(value)) - 1, i * self.hidden, self.hidden)

    def order(self, d: int) -> list[int]:
        """The steps in the order in which they run."""
        return list(range(self.steps))[:: -1 if self.backwards[d] else 1]

    def outputs(self, rows: list[dict[int, SSAValue]], last: list[list[SSAValue]]) -> list[SSAValue | None]:
        """Y [steps, directions, batch, hidden], and the last states [directions, batch, hidden]."""
        build, one = self.build, [1, self.batch, self.hidden]
        steps = [
            build.reshape(build.concat([build.reshape(rows[d][t], one) for d in range(len(rows))], 0),
                          [1, len(rows), self.batch, self.hidden])
            for t in range(self.steps)
        ]  # fmt: skip
        y = build.concat(steps, 0)
        states = [build.concat([build.reshape(s, one) for s in state], 0) for state in last]
        if self.batch_first:
            y = build.transpose(y, [2, 0, 1, 3])
            states = [build.transpose(s, [1, 0, 2]) for s in states]
        return [y, *states]


def rnn(node: Node) -> list[SSAValue | None]:
    """h = f(x·Wᵀ + h·Rᵀ + b)."""
    layer = _Layer(node, 1)
    rows: list[dict[int, SSAValue]] = []
    last: list[SSAValue] = []
    for d in range(len(layer.backwards)):
        (f,) = _activations(node, ["Tanh"], d)
        h, weights, bias, made = (
            layer.state(5, d),
            layer.per_direction(2, d),
            layer.bias(d, True),
            dict[int, SSAValue](),
        )
        for t in layer.order(d):
            h = f(node.build.map("add", layer.inputs(t, d), layer.recurrent(h, weights, bias)))
            made[t] = h
        rows.append(made)
        last.append(h)
    return layer.outputs(rows, [last])


def gru(node: Node) -> list[SSAValue | None]:
    """z, r = f(…); n = g(x·W + r ∘ (h·R + b)) or g(x·W + (r ∘ h)·R + b); h = (1 − z) ∘ n + z ∘ h."""
    layer, build = _Layer(node, 3), node.build
    rows: list[dict[int, SSAValue]] = []
    last: list[SSAValue] = []
    for d in range(len(layer.backwards)):
        f, g = _activations(node, ["Sigmoid", "Tanh"], d)
        h, weights, bias, made = (
            layer.state(5, d),
            layer.per_direction(2, d),
            layer.bias(d, True),
            dict[int, SSAValue](),
        )
        third = build.take(weights, 0, 2 * layer.hidden, layer.hidden)
        third_bias = None if bias is None else build.take(bias, 0, 2 * layer.hidden, layer.hidden)
        for t in layer.order(d):
            x, state = layer.inputs(t, d), layer.recurrent(h, weights, bias)
            z = f(build.map("add", layer.gate(x, 0), layer.gate(state, 0)))
            r = f(build.map("add", layer.gate(x, 1), layer.gate(state, 1)))
            if node.flag("linear_before_reset"):
                inner = build.map("mul", r, layer.gate(state, 2))
            else:
                inner = layer.recurrent(build.map("mul", r, h), third, third_bias)
            n = g(build.map("add", layer.gate(x, 2), inner))
            kept = build.map("mul", build.map("sub", build.scalar(1, z), z), n)
            h = build.map("add", kept, build.map("mul", z, h))
            made[t] = h
        rows.append(made)
        last.append(h)
    return layer.outputs(rows, [last])


def lstm(node: Node) -> list[SSAValue | None]:
    """i, o, f = f(…); c = f ∘ c + i ∘ g(…); h = o ∘ h(c); peepholes add P ∘ c to the gates."""
    layer, build = _Layer(node, 4), node.build
    rows: list[dict[int, SSAValue]] = []
    last_h: list[SSAValue] = []
    last_c: list[SSAValue] = []
    if node.flag("input_forget"):
        raise Unsupported("input_forget is not supported")
    for d in range(len(layer.backwards)):
        f, g, h_of = _activations(node, ["Sigmoid", "Tanh", "Tanh"], d)
        h, c = layer.state(5, d), layer.state(6, d)
        weights, bias, made = layer.per_direction(2, d), layer.bias(d, True), dict[int, SSAValue]()
        peep = layer.per_direction(7, d) if node.has(7) else None

        def gate(total: SSAValue, place: int, cell: SSAValue, part: int, peep: SSAValue | None = peep) -> SSAValue:
            value = layer.gate(total, place)
            return value if peep is None else build.map("add", value, build.map("mul", layer.gate(peep, part), cell))

        for t in layer.order(d):
            total = build.map("add", layer.inputs(t, d), layer.recurrent(h, weights, bias))
            i, forget = f(gate(total, 0, c, 0)), f(gate(total, 2, c, 2))
            c = build.map("add", build.map("mul", forget, c), build.map("mul", i, g(layer.gate(total, 3))))
            h = build.map("mul", f(gate(total, 1, c, 1)), h_of(c))
            made[t] = h
        rows.append(made)
        last_h.append(h)
        last_c.append(c)
    return layer.outputs(rows, [last_h, last_c])


TABLE: dict[str, Handler] = {"RNN": rnn, "GRU": gru, "LSTM": lstm}
