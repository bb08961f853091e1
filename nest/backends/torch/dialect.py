"""The ops in torch, one small rule each."""

from __future__ import annotations

from collections.abc import Callable

from nest.backends.source.dialect import Dialect, DimSpeller
from nest.backends.source.expr import Attr, Binary, Call, Expr, Index, Listing, Name, Raw, Unary, literal
from nest.backends.source.methods import MethodWriter
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import BlockDef, BlockUse, Node, Value

__all__ = ["RULES", "TorchDialect"]

Rule = Callable[[MethodWriter, Node], Expr]
RULES: dict[str, Rule] = {}

_TYPES = {
    "f64": "torch.float64", "f32": "torch.float32", "f16": "torch.float16", "bf16": "torch.bfloat16",
    "i64": "torch.int64", "i32": "torch.int32", "i16": "torch.int16", "i8": "torch.int8", "u8": "torch.uint8",
    "bool": "torch.bool",
}  # fmt: skip


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Register the rule of one or several ops."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return register


class TorchDialect(Dialect):
    """See `nest.backends.source.dialect`. The plan `fast` may choose other kernels for an op."""

    # The helpers of `helpers.py`, which this module must not import: it does without torch.
    reserved = frozenset(
        {
            "update_cache",
            "causal_mask",
            "attention",
            "kernels",
            "rms_norm",
            "rope",
            "peak",
            "top_k",
            "expert_linear",
            "fused",
            "quantized_linear",
            "repeat",
        }
    )

    def __init__(self, plan: str = "exact") -> None:
        self.plan = plan

    def op(self, writer: MethodWriter, node: Node) -> Expr:
        found = RULES.get(node.op)
        if found is None:
            raise DefinitionError(f"The torch backend has no rule for the op '{node.op}'.")
        return found(writer, node)

    def dtype(self, dtype: DType) -> Expr:
        return Raw(_TYPES[dtype.value])

    def layer(self, use: BlockUse, spell: DimSpeller) -> Expr | None:
        made = _LAYERS.get(use.block.name) if use.block.module.startswith("nest.layers.standard") else None
        return made(use, spell) if made is not None else None


def torch_function(name: str, *args: Expr, **kwargs: Expr) -> Call:
    return Call(Name(name), list(args), kwargs)


def method(base: Expr, name: str, *args: Expr, **kwargs: Expr) -> Call:
    return Call(Attr(base, name), list(args), kwargs)


def _args(w: MethodWriter, node: Node) -> list[Expr]:
    return [w.expr(x) for x in node.inputs]


def _long(w: MethodWriter, node: Node, position: int) -> Expr:
    return method(w.expr(node.inputs[position]), "long")


def _is_float(node: Node) -> bool:
    return node.outputs[0].type.dtype.kind == "float"


# -- elementwise -------------------------------------------------------------------------------------------

for _op in ("abs", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "erf"):
    RULES[_op] = lambda w, n: torch_function(f"torch.{n.op}", *_args(w, n))
for _op in ("silu", "relu"):
    RULES[_op] = lambda w, n: torch_function(f"F.{n.op}", *_args(w, n))
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


def _is_fast(w: MethodWriter) -> bool:
    return getattr(w.dialect, "plan", "exact") == "fast"


@rule("gelu")
def _gelu(w: MethodWriter, n: Node) -> Expr:
    x = n.inputs[0]
    made = x.node if isinstance(x, Value) and len(w.uses[id(x)]) == 1 and id(x) not in w.names.of else None
    if made is not None and not n.attrs["approximate"] and _is_conv1d(w, made):
        return _conv1d(w, made, activation=literal("gelu"))
    kwargs: dict[str, Expr] = {"approximate": literal("tanh")} if n.attrs["approximate"] else {}
    return torch_function("F.gelu", w.expr(n.inputs[0]), **kwargs)


@rule("maximum", "minimum")
def _extreme(w: MethodWriter, n: Node) -> Expr:
    a, b = _args(w, n)
    if isinstance(n.inputs[0], int | float | Dim):
        a, b = b, a
    if isinstance(n.inputs[0], int | float | Dim) or isinstance(n.inputs[1], int | float | Dim):
        return method(a, "clamp", **{"min" if n.op == "maximum" else "max": b})
    return torch_function(f"torch.{n.op}", a, b)


@rule("where")
def _where(w: MethodWriter, n: Node) -> Expr:
    return torch_function("torch.where", *_args(w, n))


@rule("cast")
def _cast(w: MethodWriter, n: Node) -> Expr:
    return method(w.expr(n.inputs[0]), "to", w.dtype(n.attrs["dtype"]))


# -- shape -------------------------------------------------------------------------------------------------


@rule("reshape")
def _reshape(w: MethodWriter, n: Node) -> Expr:
    return method(w.expr(n.inputs[0]), "reshape", *(w.dims(n.attrs["shape"]) or [Listing([], "()")]))


@rule("permute")
def _permute(w: MethodWriter, n: Node) -> Expr:
    axes = n.attrs["axes"]
    moved = [a for a, b in enumerate(axes) if a != b]
    if len(moved) == 2:
        return method(w.expr(n.inputs[0]), "transpose", *map(literal, moved))
    return method(w.expr(n.inputs[0]), "permute", *map(literal, axes))


@rule("concat")
def _concat(w: MethodWriter, n: Node) -> Expr:
    return torch_function("torch.cat", Listing(_args(w, n)), dim=literal(n.attrs["axis"]))


@rule("slice")
def _slice(w: MethodWriter, n: Node) -> Expr:
    start, stop, step = w.dim(n.attrs["start"]), w.dim(n.attrs["stop"]), n.attrs["step"]
    size = n.inputs[0].type.shape[n.attrs["axis"]]  # type: ignore[union-attr]
    bounds = ("" if start == "0" else start) + ":" + ("" if n.attrs["stop"].same(size) else stop)
    bounds += f":{step}" if step != 1 else ""
    return Index(w.expr(n.inputs[0]), ", ".join([*[":"] * n.attrs["axis"], bounds]))


@rule("pad")
def _pad(w: MethodWriter, n: Node) -> Expr:
    rank = n.outputs[0].type.rank
    zeros = [literal(0)] * (2 * (rank - 1 - n.attrs["axis"]))
    amounts = [*zeros, *w.dims([n.attrs["before"], n.attrs["after"]])]
    return torch_function(
        "F.pad", w.expr(n.inputs[0]), Listing(amounts, "()"), value=literal(n.attrs["value"])
    )


@rule("broadcast_to")
def _broadcast_to(w: MethodWriter, n: Node) -> Expr:
    return torch_function("torch.broadcast_to", w.expr(n.inputs[0]), Listing(w.dims(n.attrs["shape"]), "()"))


def _made(w: MethodWriter, n: Node) -> dict[str, Expr]:
    made: dict[str, Expr] = {"dtype": w.dtype(n.outputs[0].type.dtype)}
    if w.function.arguments or _has_params(w.function.block):
        made["device"] = Attr(w.like(), "device")
    return made


def _has_params(block: BlockDef) -> bool:
    return bool(block.params) or any(_has_params(use.block) for _, use in block.uses())


@rule("iota")
def _iota(w: MethodWriter, n: Node) -> Expr:
    return torch_function("torch.arange", Raw(w.dim(n.attrs["size"])), **_made(w, n))


@rule("full")
def _full(w: MethodWriter, n: Node) -> Expr:
    shape = Listing(w.dims(n.attrs["shape"]), "()")
    if isinstance(n.inputs[0], int | float) and n.inputs[0] == 0:
        return torch_function("torch.zeros", shape, **_made(w, n))
    return torch_function("torch.full", shape, w.expr(n.inputs[0]), **_made(w, n))


@rule("constant")
def _constant(w: MethodWriter, n: Node) -> Expr:
    made = n.outputs[0].type
    if made.rank == 1 and made.dtype.value == "f32" and n.attrs["values"] and "device" in _made(w, n):
        return w.helper("table", literal(_listed(n.attrs["values"])), w.like())
    return torch_function("torch.tensor", literal(_listed(n.attrs["values"])), **_made(w, n))


def _listed(values: object) -> object:
    return [_listed(v) for v in values] if isinstance(values, tuple) else values


# -- indexing ----------------------------------------------------------------------------------------------


@rule("take")
def _take(w: MethodWriter, n: Node) -> Expr:
    x, indices = n.inputs
    if n.attrs["axis"] == 0 and x.type.rank == 2 and _is_float(n):  # type: ignore[union-attr]
        return torch_function("F.embedding", w.expr(indices), w.expr(x))
    known = indices.node if isinstance(indices, Value) else None
    if known is not None and known.op == "constant" and indices.type.rank == 1:  # type: ignore[union-attr]
        index = repr(_listed(known.attrs["values"]))
    else:
        index = _long(w, n, 1).flat()
    return Index(w.expr(x), ", ".join([*[":"] * n.attrs["axis"], index]))


@rule("take_along")
def _take_along(w: MethodWriter, n: Node) -> Expr:
    axis = literal(n.attrs["axis"])
    return torch_function("torch.take_along_dim", w.expr(n.inputs[0]), _long(w, n, 1), dim=axis)


@rule("scatter_set")
def _scatter_set(w: MethodWriter, n: Node) -> Expr:
    x, _, updates = _args(w, n)
    return method(x, "scatter", literal(n.attrs["axis"]), _long(w, n, 1), updates)


# -- contraction -------------------------------------------------------------------------------------------


@rule("linear")
def _linear(w: MethodWriter, n: Node) -> Expr:
    return torch_function("F.linear", *(w.expr(x) for x in n.inputs if x is not None))


@rule("einsum")
def _einsum(w: MethodWriter, n: Node) -> Expr:
    return torch_function("torch.einsum", literal(n.attrs["equation"]), *_args(w, n))


@rule("quantized_linear")
def _quantized_linear(w: MethodWriter, n: Node) -> Expr:
    return w.helper("quantized_linear", *(w.expr(x) for x in n.inputs if x is not None))


@rule("expert_linear")
def _expert_linear(w: MethodWriter, n: Node) -> Expr:
    return w.helper("expert_linear", *_args(w, n))


@rule("conv")
def _conv(w: MethodWriter, n: Node) -> Expr:
    if _is_conv1d(w, n):
        return _conv1d(w, n)
    spatial = n.outputs[0].type.rank - 2
    kwargs: dict[str, Expr] = {}
    for name, default in (("stride", 1), ("padding", 0)):
        values = n.attrs[name]
        if any(v != default for v in values):
            kwargs[name] = literal(values[0] if len(set(values)) == 1 else values)
    if not n.attrs["groups"].same(Dim.constant(1)):
        kwargs["groups"] = Raw(w.dim(n.attrs["groups"]))
    inputs = [w.expr(x) for x in n.inputs if x is not None]
    return torch_function(f"F.conv{spatial}d", *inputs, **kwargs)


def _is_conv1d(w: MethodWriter, n: Node) -> bool:
    """Whether it is a convolution over time that the plan has a kernel for."""
    one = Dim.constant(1)
    return _is_fast(w) and n.op == "conv" and n.outputs[0].type.rank == 3 and n.attrs["groups"].same(one)


def _conv1d(w: MethodWriter, n: Node, **kwargs: Expr) -> Expr:
    kwargs |= {name: literal(n.attrs[name][0]) for name in ("padding", "stride")}
    return torch_function(
        "kernels.conv1d", *(literal(None) if x is None else w.expr(x) for x in n.inputs), **kwargs
    )


@rule("max_pool")
def _max_pool(w: MethodWriter, n: Node) -> Expr:
    sizes = [literal(n.attrs[k]) for k in ("kernel", "stride", "padding")]
    return torch_function("F.max_pool2d", w.expr(n.inputs[0]), *sizes)


# -- normalization -----------------------------------------------------------------------------------------


@rule("layer_norm")
def _layer_norm(w: MethodWriter, n: Node) -> Expr:
    x, weight, bias = _args(w, n)
    if _is_fast(w):
        return torch_function("kernels.layer_norm", x, weight, bias, literal(n.attrs["eps"]))
    size = Listing(w.dims(n.outputs[0].type.shape[-1:]), "()")
    return torch_function("F.layer_norm", x, size, weight, bias, eps=literal(n.attrs["eps"]))


@rule("rms_norm")
def _rms_norm(w: MethodWriter, n: Node) -> Expr:
    if _is_fast(w):
        return torch_function("kernels.rms_norm", *_args(w, n), literal(n.attrs["eps"]))
    return w.helper("rms_norm", *_args(w, n), literal(n.attrs["eps"]))


@rule("group_norm")
def _group_norm(w: MethodWriter, n: Node) -> Expr:
    x, weight, bias = _args(w, n)
    return torch_function(
        "F.group_norm", x, literal(n.attrs["groups"]), weight, bias, eps=literal(n.attrs["eps"])
    )


@rule("batch_norm")
def _batch_norm(w: MethodWriter, n: Node) -> Expr:
    return torch_function("F.batch_norm", *_args(w, n), eps=literal(n.attrs["eps"]))


# -- attention ---------------------------------------------------------------------------------------------


@rule("attention")
def _attention(w: MethodWriter, n: Node) -> Expr:
    q, k, v, pos, kv_len, mask, bias, sinks = n.inputs
    plain = kv_len is None and bias is None and sinks is None
    plain = plain and n.attrs["softcap"] is None and n.attrs["window"] is None
    if not plain or (mask is not None and n.attrs["causal"]):
        return _full_attention(w, n)
    kwargs: dict[str, Expr] = {}
    if mask is not None:
        kwargs["attn_mask"] = w.expr(mask)
    elif n.attrs["causal"] and pos is None:
        kwargs["is_causal"] = literal(True)
    elif n.attrs["causal"]:
        sizes = w.dims([q.type.shape[2], k.type.shape[2]])  # type: ignore[union-attr]
        kwargs["attn_mask"] = w.helper("causal_mask", w.expr(pos), *sizes)
    if n.attrs["scale"] is not None:
        kwargs["scale"] = literal(n.attrs["scale"])
    grouped = not q.type.shape[1].same(k.type.shape[1])  # type: ignore[union-attr]
    if grouped and "attn_mask" in kwargs and q.type.shape[2].value == 1 and mask is None:  # type: ignore[union-attr]
        return w.helper("attend_shared", w.expr(q), w.expr(k), w.expr(v), **kwargs)
    if grouped:
        kwargs["enable_gqa"] = literal(True)
    if _is_fast(w):
        return torch_function("kernels.attend", w.expr(q), w.expr(k), w.expr(v), **kwargs)
    return torch_function("F.scaled_dot_product_attention", w.expr(q), w.expr(k), w.expr(v), **kwargs)


def _full_attention(w: MethodWriter, n: Node) -> Expr:
    named = ("pos", "kv_len", "mask", "bias", "sinks")
    kwargs = {name: w.expr(x) for name, x in zip(named, n.inputs[3:], strict=True) if x is not None}
    kwargs |= {name: literal(v) for name, v in n.attrs.items() if v is not None and v is not False}
    return w.helper("attention", *(w.expr(x) for x in n.inputs[:3]), **kwargs)


@rule("rope")
def _rope(w: MethodWriter, n: Node) -> Expr:
    return w.helper("rope", *_args(w, n), literal(n.attrs["layout"]), literal(n.attrs["scale"]))


# -- reduction ---------------------------------------------------------------------------------------------

_REDUCTIONS = {"sum": "torch.sum", "mean": "torch.mean", "max": "torch.amax", "min": "torch.amin",
               "any": "torch.any", "logsumexp": "torch.logsumexp"}  # fmt: skip


@rule(*_REDUCTIONS)
def _reduction(w: MethodWriter, n: Node) -> Expr:
    axes = n.attrs["axes"]
    kwargs: dict[str, Expr] = {"dim": literal(axes[0] if len(axes) == 1 else axes)}
    if n.attrs["keepdims"]:
        kwargs["keepdim"] = literal(True)
    if n.op == "sum" and not _is_float(n):
        kwargs["dtype"] = w.dtype(n.outputs[0].type.dtype)
    return torch_function(_REDUCTIONS[n.op], w.expr(n.inputs[0]), **kwargs)


@rule("argmax")
def _argmax(w: MethodWriter, n: Node) -> Expr:
    found = torch_function("torch.argmax", w.expr(n.inputs[0]), dim=literal(n.attrs["axis"]))
    return method(found, "to", Raw("torch.int32"))


@rule("softmax")
def _softmax(w: MethodWriter, n: Node) -> Expr:
    return torch_function("torch.softmax", w.expr(n.inputs[0]), dim=literal(n.attrs["axis"]))


@rule("cumsum")
def _cumsum(w: MethodWriter, n: Node) -> Expr:
    kwargs = {} if _is_float(n) else {"dtype": w.dtype(n.outputs[0].type.dtype)}
    return torch_function("torch.cumsum", w.expr(n.inputs[0]), dim=literal(n.attrs["axis"]), **kwargs)


@rule("peak")
def _peak(w: MethodWriter, n: Node) -> Expr:
    return w.helper("peak", *(w.expr(x) for x in n.inputs if x is not None))


@rule("top_k")
def _top_k(w: MethodWriter, n: Node) -> Expr:
    return w.helper("top_k", w.expr(n.inputs[0]), literal(n.attrs["k"]))


# -- states ------------------------------------------------------------------------------------------------


@rule("read")
def _read(w: MethodWriter, n: Node) -> Expr:
    return w.state(n.attrs["path"])


@rule("assign")
def _assign(w: MethodWriter, n: Node) -> Expr:
    if "second" in n.attrs:  # see nest.backends.torch.kept
        states = [w.state(n.attrs[name]) for name in ("path", "second")]
        return torch_function(
            "kernels.keep_heads", *states, *(literal(None) if x is None else w.expr(x) for x in n.inputs)
        )
    return method(w.state(n.attrs["path"]), "copy_", w.expr(n.inputs[0]))


@rule("update")
def _update(w: MethodWriter, n: Node) -> Expr:
    if n.attrs["batch_axis"] != 0:
        raise DefinitionError(
            f"The torch backend updates states whose batch axis is 0; {n.attrs['path']} is not."
        )
    return w.helper("update_cache", w.state(n.attrs["path"]), *_args(w, n), axis=literal(n.attrs["axis"]))


# -- what the plan `fast` fuses on a GPU: see nest.ir.passes.fuse --------------------------------------------


def _fused(w: MethodWriter, n: Node, *given: Expr, **kwargs: Expr) -> Expr:
    inputs = [literal(None) if x is None else w.expr(x) for x in n.inputs]
    return torch_function(f"fused.{n.op}", *inputs, *given, **kwargs)


def _literals(n: Node, *names: str) -> dict[str, Expr]:
    return {name: literal(n.attrs[name]) for name in names}


@rule("norm_linear")
def _norm_linear(w: MethodWriter, n: Node) -> Expr:
    return _fused(w, n, **_literals(n, "kind", "eps", "activation", "gated"))


@rule("linear_add", "embed_tokens", "is_in")
def _linear_add(w: MethodWriter, n: Node) -> Expr:
    return _fused(w, n)


@rule("peak_of_linear")
def _peak_of_linear(w: MethodWriter, n: Node) -> Expr:
    return _fused(w, n, **_literals(n, "kind", "eps"))


@rule("small")
def _small(w: MethodWriter, n: Node) -> Expr:
    return torch_function(
        "fused.small", *(literal(n.attrs[a]) for a in ("text", "rows", "like")), *_args(w, n)
    )


@rule("attend_heard")
def _attend_heard(w: MethodWriter, n: Node) -> Expr:
    return _fused(w, n, **_literals(n, "scale", "split"))


@rule("attend_step")
def _attend_step(w: MethodWriter, n: Node) -> Expr:
    states = [w.state(n.attrs[name]) for name in ("keys", "values")]
    sizes = {name: Raw(w.dim(n.attrs[name])) for name in ("heads", "kv_heads", "width")}
    return _fused(w, n, *states, **sizes, **_literals(n, "scale", "layout", "rope_scale", "eps", "split"))


# -- standard layers ---------------------------------------------------------------------------------------


def _linear_layer(use: BlockUse, spell: DimSpeller) -> Expr:
    kwargs: dict[str, Expr] = {} if "bias" in use.block.params else {"bias": literal(False)}
    return torch_function("nn.Linear", Raw(spell(_dim(use, "In"))), Raw(spell(_dim(use, "Out"))), **kwargs)


def _layer_norm_layer(use: BlockUse, spell: DimSpeller) -> Expr:
    kwargs: dict[str, Expr] = {"eps": literal(use.block.statics["eps"])}
    if "bias" not in use.block.params:
        kwargs["bias"] = literal(False)
    return torch_function("nn.LayerNorm", Raw(spell(_dim(use, "D"))), **kwargs)


def _embedding_layer(use: BlockUse, spell: DimSpeller) -> Expr:
    return torch_function("nn.Embedding", Raw(spell(_dim(use, "Vocab"))), Raw(spell(_dim(use, "D"))))


def _conv_layer(use: BlockUse, spell: DimSpeller) -> Expr:
    statics = use.block.statics
    kwargs = {
        n: literal(statics[n])
        for n, d in (("stride", 1), ("padding", 0), ("groups", 1))
        if statics.get(n, d) != d
    }
    if "bias" not in use.block.params:
        kwargs["bias"] = literal(False)
    sizes = [Raw(spell(_dim(use, "In"))), Raw(spell(_dim(use, "Out"))), literal(statics["kernel"])]
    return torch_function(f"nn.{use.block.name}", *sizes, **kwargs)


def _group_norm_layer(use: BlockUse, spell: DimSpeller) -> Expr:
    statics = use.block.statics
    return torch_function(
        "nn.GroupNorm", literal(statics["groups"]), Raw(spell(_dim(use, "C"))), eps=literal(statics["eps"])
    )


def _dim(use: BlockUse, name: str) -> Dim:
    dim = use.generics[name]
    if not isinstance(dim, Dim):
        raise DefinitionError(f"{use.block.name}: '{name}' is not a dim.")
    return dim


_LAYERS: dict[str, Callable[[BlockUse, DimSpeller], Expr]] = {
    "Linear": _linear_layer,
    "LayerNorm": _layer_norm_layer,
    "Embedding": _embedding_layer,
    "Conv1d": _conv_layer,
    "Conv2d": _conv_layer,
    "GroupNorm": _group_norm_layer,
}
