"""The ops in jax.numpy as generated source spells them, one small rule each."""

from __future__ import annotations

from collections.abc import Callable

from nest.backends.jax.nnx.helpers import HELPERS
from nest.backends.jax.nnx.layers import LAYERS
from nest.backends.source.dialect import Dialect, DimSpeller
from nest.backends.source.expr import Attr, Binary, Call, Expr, Index, Listing, Name, Raw, Unary, literal
from nest.backends.source.layout import WIDTH
from nest.backends.source.methods import MethodWriter
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import BlockUse, Function, Node

__all__ = ["RULES", "NnxDialect"]

Rule = Callable[[MethodWriter, Node], Expr]
RULES: dict[str, Rule] = {}

_TYPES = {
    "f32": "jnp.float32", "f16": "jnp.float16", "bf16": "jnp.bfloat16", "i32": "jnp.int32", "i16": "jnp.int16",
    "i8": "jnp.int8", "u8": "jnp.uint8", "bool": "jnp.bool_",
}  # fmt: skip


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Register the rule of one or several ops."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return register


class NnxDialect(Dialect):
    """See `nest.backends.source.dialect`.

    Args:
        casts: parameters are kept in a type of their own, and cast to the program's where they are used.
    """

    def __init__(self, *, casts: bool = False) -> None:
        self.casts = casts

    call_method = "__call__"
    reserved = frozenset({*HELPERS, *LAYERS, "lax"})

    def op(self, writer: MethodWriter, node: Node) -> Expr:
        found = RULES.get(node.op)
        if found is None:
            raise DefinitionError(f"The nnx backend has no rule for the op '{node.op}'.")
        return found(writer, node)

    def dtype(self, dtype: DType) -> Expr:
        return Raw(_TYPES[dtype.value])

    def parameter(self, writer: MethodWriter, node: Node) -> Expr:
        value = Index(writer.member(node.attrs["path"]), "...")
        return method(value, "astype", writer.dtype(node.outputs[0].type.dtype)) if self.casts else value

    def layer(self, use: BlockUse, spell: DimSpeller) -> Expr | None:
        if not use.block.module.startswith("nest.layers.standard") or use.block.name not in LAYERS:
            return None
        kwargs: dict[str, Expr] = {
            n: literal(v) for n, v in use.block.statics.items() if n in _STATICS and v != _STATICS[n]
        }
        if use.block.name in _BIASED and "bias" not in use.block.params:
            kwargs["bias"] = literal(False)
        return Call(Name(use.block.name), self._generics(use, spell), {**kwargs, "rngs": Name("rngs")})

    def _generics(self, use: BlockUse, spell: DimSpeller) -> list[Expr]:
        return [
            Raw(spell(v)) if isinstance(v, Dim) else Raw(v.name) if v.name != v.value else self.dtype(v)
            for v in use.generics.values()
        ]

    def while_loop(self, writer: MethodWriter, node: Node, carry: list[str]) -> list[str] | None:
        functions = node.attrs["cond"], node.attrs["body"]
        stateful = any(f.uses_state for f in functions)
        args: list[Expr] = [_region(writer, f, stateful) for f in functions]
        args.append(Listing([writer.expr(x) for x in node.inputs], "()"))
        args.append(literal(node.attrs["max_trips"]))
        made = writer.helper("while_loop", *args, *([Name("state")] if stateful else []))
        target = ", ".join(carry) + ("," if len(carry) == 1 else "")
        first, *rest = made.lines(WIDTH - 8, len(target) + 3)
        return [f"{target} = {first}", *rest]


def _region(writer: MethodWriter, function: Function, stateful: bool) -> Expr:
    """The method of a condition or a body; where only the other one takes the state, one that drops it."""
    own = Attr(Name("self"), writer.method_name(function))
    if function.uses_state or not stateful:
        return own
    return Raw(f"lambda *given: {own.flat()}(*given[:-1])")


_BIASED = frozenset({"Linear", "LayerNorm", "Conv1d", "Conv2d"})
# What a layer's constructor takes beside its generics, with its defaults.
_STATICS = {"eps": None, "kernel": None, "groups": 1, "stride": 1, "padding": 0}


def call(name: str, *args: Expr, **kwargs: Expr) -> Call:
    return Call(Name(name), list(args), kwargs)


def method(base: Expr, name: str, *args: Expr, **kwargs: Expr) -> Call:
    return Call(Attr(base, name), list(args), kwargs)


def _args(w: MethodWriter, node: Node) -> list[Expr]:
    return [w.expr(x) for x in node.inputs]


for _op in ("abs", "exp", "log", "sqrt", "sin", "cos", "tanh"):
    RULES[_op] = lambda w, n: call(f"jnp.{n.op}", *_args(w, n))
for _op in ("sigmoid", "silu", "relu"):
    RULES[_op] = lambda w, n: call(f"jax.nn.{n.op}", *_args(w, n))
for _op in ("rsqrt", "erf"):
    RULES[_op] = lambda w, n: call(f"lax.{n.op}", *_args(w, n))
for _op in ("maximum", "minimum", "where"):
    RULES[_op] = lambda w, n: call(f"jnp.{n.op}", *_args(w, n))
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "power": "**",
    "equal": "==", "less": "<", "less_equal": "<=", "logical_and": "&", "logical_or": "|",
}  # fmt: skip
for _op in _INFIX:
    RULES[_op] = lambda w, n: Binary(_INFIX[n.op], *_args(w, n))


@rule("neg")
def _neg(w: MethodWriter, n: Node) -> Expr:
    return Unary("-", w.expr(n.inputs[0]))


@rule("logical_not")
def _not(w: MethodWriter, n: Node) -> Expr:
    return Unary("~", w.expr(n.inputs[0]))


@rule("gelu")
def _gelu(w: MethodWriter, n: Node) -> Expr:
    return call("jax.nn.gelu", w.expr(n.inputs[0]), approximate=literal(n.attrs["approximate"]))


@rule("cast")
def _cast(w: MethodWriter, n: Node) -> Expr:
    return method(w.expr(n.inputs[0]), "astype", w.dtype(n.attrs["dtype"]))


@rule("reshape")
def _reshape(w: MethodWriter, n: Node) -> Expr:
    return method(w.expr(n.inputs[0]), "reshape", *(w.dims(n.attrs["shape"]) or [Listing([], "()")]))


@rule("permute")
def _permute(w: MethodWriter, n: Node) -> Expr:
    axes = n.attrs["axes"]
    moved = [a for a, b in enumerate(axes) if a != b]
    if len(moved) == 2:
        return method(w.expr(n.inputs[0]), "swapaxes", *map(literal, moved))
    return method(w.expr(n.inputs[0]), "transpose", *map(literal, axes))


@rule("concat")
def _concat(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.concatenate", Listing(_args(w, n)), axis=literal(n.attrs["axis"]))


@rule("slice")
def _slice(w: MethodWriter, n: Node) -> Expr:
    start, stop, step = w.dim(n.attrs["start"]), w.dim(n.attrs["stop"]), n.attrs["step"]
    size = n.inputs[0].type.shape[n.attrs["axis"]]  # type: ignore[union-attr]
    bounds = ("" if start == "0" else start) + ":" + ("" if n.attrs["stop"].same(size) else stop)
    bounds += f":{step}" if step != 1 else ""
    return Index(w.expr(n.inputs[0]), ", ".join([*[":"] * n.attrs["axis"], bounds]))


@rule("pad")
def _pad(w: MethodWriter, n: Node) -> Expr:
    zero = Raw("(0, 0)")
    widths: list[Expr] = [zero] * n.outputs[0].type.rank
    widths[n.attrs["axis"]] = Listing(w.dims([n.attrs["before"], n.attrs["after"]]), "()")
    return call(
        "jnp.pad", w.expr(n.inputs[0]), Listing(widths, "()"), constant_values=literal(n.attrs["value"])
    )


@rule("broadcast_to")
def _broadcast_to(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.broadcast_to", w.expr(n.inputs[0]), Listing(w.dims(n.attrs["shape"]), "()"))


@rule("iota")
def _iota(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.arange", Raw(w.dim(n.attrs["size"])), dtype=w.dtype(n.outputs[0].type.dtype))


@rule("full")
def _full(w: MethodWriter, n: Node) -> Expr:
    shape = Listing(w.dims(n.attrs["shape"]), "()")
    return call("jnp.full", shape, w.expr(n.inputs[0]), w.dtype(n.outputs[0].type.dtype))


@rule("constant")
def _constant(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.array", literal(_listed(n.attrs["values"])), w.dtype(n.outputs[0].type.dtype))


def _listed(values: object) -> object:
    return [_listed(v) for v in values] if isinstance(values, tuple) else values


@rule("take")
def _take(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.take", *_args(w, n), axis=literal(n.attrs["axis"]))


@rule("take_along")
def _take_along(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.take_along_axis", *_args(w, n), axis=literal(n.attrs["axis"]))


@rule("scatter_set")
def _scatter_set(w: MethodWriter, n: Node) -> Expr:
    return call("jnp.put_along_axis", *_args(w, n), axis=literal(n.attrs["axis"]), inplace=literal(False))


@rule("linear")
def _linear(w: MethodWriter, n: Node) -> Expr:
    return w.helper("linear", *(w.expr(x) for x in n.inputs if x is not None))


@rule("quantized_linear")
def _quantized_linear(w: MethodWriter, n: Node) -> Expr:
    return w.helper("quantized_linear", *(w.expr(x) for x in n.inputs if x is not None))


@rule("expert_linear")
def _expert_linear(w: MethodWriter, n: Node) -> Expr:
    return w.helper("expert_linear", *_args(w, n))


@rule("einsum")
def _einsum(w: MethodWriter, n: Node) -> Expr:
    return w.helper("einsum", *_args(w, n), equation=literal(n.attrs["equation"]))


@rule("conv")
def _conv(w: MethodWriter, n: Node) -> Expr:
    kwargs: dict[str, Expr] = {"stride": literal(n.attrs["stride"]), "padding": literal(n.attrs["padding"])}
    if not n.attrs["groups"].same(Dim.constant(1)):
        kwargs["groups"] = Raw(w.dim(n.attrs["groups"]))
    return w.helper("conv", *(w.expr(x) for x in n.inputs if x is not None), **kwargs)


@rule(
    "max_pool", "layer_norm", "rms_norm", "group_norm", "batch_norm", "rope", "cumsum", "top_k", "logsumexp"
)  # fmt: skip
def _as_rule(w: MethodWriter, n: Node) -> Expr:
    return w.helper(n.op, *_args(w, n), **{name: literal(v) for name, v in n.attrs.items()})


@rule("peak")
def _peak(w: MethodWriter, n: Node) -> Expr:
    return w.helper("peak", *(w.expr(x) for x in n.inputs if x is not None))


@rule("softmax")
def _softmax(w: MethodWriter, n: Node) -> Expr:
    if n.outputs[0].type.dtype.value != "f32":
        return _as_rule(w, n)
    return call("jax.nn.softmax", w.expr(n.inputs[0]), axis=literal(n.attrs["axis"]))


@rule("attention")
def _attention(w: MethodWriter, n: Node) -> Expr:
    q, k, v, pos, kv_len, mask, bias, sinks = n.inputs
    seen: Expr | None = None if mask is None else w.expr(mask)
    if n.attrs["causal"] or kv_len is not None:
        rows = {name: w.expr(x) for name, x in (("pos", pos), ("kv_len", kv_len)) if x is not None}
        if not n.attrs["causal"]:
            rows = {**rows, "causal": literal(False)}
        if n.attrs["window"] is not None:
            rows["window"] = literal(n.attrs["window"])
        sizes = w.dims([q.type.shape[2], k.type.shape[2]])  # type: ignore[union-attr]
        shown = w.helper("visible", *sizes, **rows)
        seen = shown if seen is None else Binary("&", shown, seen)
    kwargs = {name: w.expr(x) for name, x in (("bias", bias), ("sinks", sinks)) if x is not None}
    kwargs |= {name: literal(n.attrs[name]) for name in ("scale", "softcap") if n.attrs[name] is not None}
    return w.helper(
        "attention", w.expr(q), w.expr(k), w.expr(v), *([seen] if seen is not None else []), **kwargs
    )


@rule("sum", "mean", "max", "min", "any")
def _reduction(w: MethodWriter, n: Node) -> Expr:
    axes = n.attrs["axes"]
    kwargs: dict[str, Expr] = {"axis": literal(axes[0] if len(axes) == 1 else axes)}
    if n.attrs["keepdims"]:
        kwargs["keepdims"] = literal(True)
    if n.op == "sum":
        kwargs["dtype"] = w.dtype(n.outputs[0].type.dtype)
    return call(f"jnp.{n.op}", w.expr(n.inputs[0]), **kwargs)


@rule("argmax")
def _argmax(w: MethodWriter, n: Node) -> Expr:
    found = call("jnp.argmax", w.expr(n.inputs[0]), axis=literal(n.attrs["axis"]))
    return method(found, "astype", Raw("jnp.int32"))


@rule("read")
def _read(w: MethodWriter, n: Node) -> Expr:
    return Index(w.state(n.attrs["path"]), "...")


@rule("assign")
def _assign(w: MethodWriter, n: Node) -> Expr:
    return method(w.state(n.attrs["path"]), "set_value", w.expr(n.inputs[0]))


@rule("update")
def _update(w: MethodWriter, n: Node) -> Expr:
    kwargs = {"axis": literal(n.attrs["axis"])}
    if n.attrs["batch_axis"]:
        kwargs["rows"] = literal(n.attrs["batch_axis"])
    return w.helper("update_cache", w.state(n.attrs["path"]), *_args(w, n), **kwargs)
