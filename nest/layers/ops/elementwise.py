"""Elementwise ops. Shapes broadcast as in numpy; a number takes the tensor's element type.

In half precision each op computes in f32 and rounds once, however many steps its formula has.
"""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType, bool_
from nest.ir.types import TensorType
from nest.layers._trace import fail
from nest.layers.ops._emit import broadcast, emit, need_dtype, need_kind, tensor
from nest.layers.tensor import Scalar, Tensor

__all__ = [
    "abs",
    "add",
    "cast",
    "cos",
    "div",
    "equal",
    "erf",
    "exp",
    "floordiv",
    "gelu",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "power",
    "relu",
    "rsqrt",
    "sigmoid",
    "silu",
    "sin",
    "sqrt",
    "sub",
    "tanh",
    "where",
]

Operand = Tensor | Scalar


def _float(op: str, x: Tensor) -> Tensor:
    x = tensor(x, op)
    need_kind(x, "float", op)
    return emit(op, [x], x.type)


def _numeric(op: str, x: Tensor) -> Tensor:
    x = tensor(x, op)
    if x.dtype.kind == "bool":
        raise fail(f"{op} takes numbers, and got bool.", ("x", x.type), hint="cast(x, 'i32') counts.")
    return x


def _number(op: str, x: Operand, like: Tensor) -> None:
    """Refuse a fraction beside integers, which would be cut off silently, and an integer that does not fit."""
    if like.dtype.value == "i32" and isinstance(x, int) and not -(2**31) <= x < 2**31:
        raise fail(f"{op} of {like.dtype} and {x}, which does not fit.", ("x", like.type))
    if isinstance(x, float) and like.dtype.kind != "float":
        raise fail(
            f"{op} of {like.dtype} and the fraction {x}.", ("x", like.type), hint="cast the tensor first."
        )
    if not isinstance(x, int | float | bool | Dim):
        tensor(x, op, "operand")


def _pair(op: str, a: Operand, b: Operand, result: DType | None = None) -> Tensor:
    a, b = _settle(op, a, b)
    given = [x for x in (a, b) if isinstance(x, Tensor)]
    if not given:
        raise fail(f"{op} takes at least one tensor, and got two numbers.")
    for x in (a, b):
        if not isinstance(x, Tensor):
            _number(op, x, given[0])
    dtype = need_dtype(op, a=given[0], b=given[-1])
    if dtype.kind == "bool" and not op.startswith("logical") and op != "equal":
        raise fail(f"{op} takes numbers, and got bool.", ("x", given[0].type), hint="cast(x, 'i32') counts.")
    return emit(op, [a, b], TensorType(broadcast(op, *given), result or dtype))


def _settle(op: str, a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """States stand for their content; numbers stay numbers."""
    numbers = (int, float, bool, Dim)
    return (
        a if isinstance(a, numbers) else tensor(a, op, "a"),
        b if isinstance(b, numbers) else tensor(b, op, "b"),
    )


def neg(x: Tensor) -> Tensor:
    """-x."""
    x = _numeric("neg", x)
    return emit("neg", [x], x.type)


def abs(x: Tensor) -> Tensor:
    """|x|."""
    x = _numeric("abs", x)
    return emit("abs", [x], x.type)


def exp(x: Tensor) -> Tensor:
    """e ** x."""
    return _float("exp", x)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return _float("log", x)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return _float("sqrt", x)


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x)."""
    return _float("rsqrt", x)


def sin(x: Tensor) -> Tensor:
    """The sine of x in radians."""
    return _float("sin", x)


def cos(x: Tensor) -> Tensor:
    """The cosine of x in radians."""
    return _float("cos", x)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return _float("tanh", x)


def erf(x: Tensor) -> Tensor:
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
    return _float("erf", x)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _float("sigmoid", x)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return _float("silu", x)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return _float("relu", x)


def gelu(x: Tensor, approximate: bool = False) -> Tensor:
    """x * Phi(x), with Phi the normal distribution function.

    Exact by default, 0.5 * x * (1 + erf(x / sqrt(2))). `approximate` takes the tanh form,
    0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))), which differs by up to 5e-4 and is another function:
    a checkpoint was trained with one of them.
    """
    x = tensor(x, "gelu")
    need_kind(x, "float", "gelu")
    return emit("gelu", [x], x.type, approximate=approximate)


def add(a: Operand, b: Operand) -> Tensor:
    """a + b."""
    return _pair("add", a, b)


def sub(a: Operand, b: Operand) -> Tensor:
    """a - b."""
    return _pair("sub", a, b)


def mul(a: Operand, b: Operand) -> Tensor:
    """a * b."""
    return _pair("mul", a, b)


def div(a: Operand, b: Operand) -> Tensor:
    """a / b, of floats.

    Raises:
        DefinitionError: the tensors are integers; frameworks disagree on what that means. Use `//`, or cast.
    """
    for name, x in (("a", a), ("b", b)):
        if isinstance(x, Tensor) and x.dtype.kind != "float":
            raise fail(
                f"/ divides floats, and '{name}' is {x.dtype}.",
                (name, x.type),
                hint="Use // for floor division of integers, or cast to a float type.",
            )
    return _pair("div", a, b)


def floordiv(a: Operand, b: Operand) -> Tensor:
    """floor(a / b), of integers, rounding towards minus infinity."""
    for name, x in (("a", a), ("b", b)):
        if isinstance(x, Tensor):
            need_kind(x, "int", "floordiv", name)
    return _pair("floordiv", a, b)


def mod(a: Operand, b: Operand) -> Tensor:
    """a - b * floor(a / b), of integers: the sign is b's."""
    for name, x in (("a", a), ("b", b)):
        if isinstance(x, Tensor):
            need_kind(x, "int", "mod", name)
    return _pair("mod", a, b)


def power(a: Tensor, b: Operand) -> Tensor:
    """a ** b, of floats."""
    a = tensor(a, "power", "a")
    need_kind(a, "float", "power", "a")
    return _pair("power", a, b)


def maximum(a: Operand, b: Operand) -> Tensor:
    """The larger of a and b."""
    return _pair("maximum", a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    """The smaller of a and b."""
    return _pair("minimum", a, b)


def equal(a: Operand, b: Operand) -> Tensor:
    """a == b, as bool."""
    return _pair("equal", a, b, bool_)


def less(a: Operand, b: Operand) -> Tensor:
    """a < b, as bool."""
    return _pair("less", a, b, bool_)


def less_equal(a: Operand, b: Operand) -> Tensor:
    """a <= b, as bool."""
    return _pair("less_equal", a, b, bool_)


def logical_not(x: Tensor) -> Tensor:
    """not x."""
    x = tensor(x, "logical_not")
    need_kind(x, "bool", "logical_not")
    return emit("logical_not", [x], x.type)


def _logical(op: str, a: Tensor, b: Tensor) -> Tensor:
    a, b = tensor(a, op, "a"), tensor(b, op, "b")
    need_kind(a, "bool", op, "a")
    need_kind(b, "bool", op, "b")
    return _pair(op, a, b)


def logical_and(a: Tensor, b: Tensor) -> Tensor:
    """a and b."""
    return _logical("logical_and", a, b)


def logical_or(a: Tensor, b: Tensor) -> Tensor:
    """a or b."""
    return _logical("logical_or", a, b)


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """a where the condition is true, else b; all three broadcast."""
    condition = tensor(condition, "where", "condition")
    need_kind(condition, "bool", "where", "condition")
    a, b = _settle("where", a, b)
    given = [x for x in (a, b) if isinstance(x, Tensor)]
    if not given:
        raise fail(
            "where takes a tensor for 'a' or 'b', and got two numbers.", hint="Use full(shape, value, dtype)."
        )
    for x in (a, b):
        if not isinstance(x, Tensor):
            _number("where", x, given[0])
    dtype = need_dtype("where", a=given[0], b=given[-1])
    return emit("where", [condition, a, b], TensorType(broadcast("where", condition, *given), dtype))


def cast(x: Tensor, dtype: DType | str) -> Tensor:
    """x in another element type; a float becomes an integer by truncation, a number a bool by != 0."""
    x = tensor(x, "cast")
    target = DType.of(dtype)
    if x.dtype.same(target):
        return x
    return emit("cast", [x], TensorType(x.shape, target), dtype=target)
