"""What `nest.load` returns on torch: the generated module, with entries that check their arguments."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from nest._timing import stretch
from nest.backends.calls import EntryCall
from nest.backends.generated import load_generated
from nest.backends.packing import Packer
from nest.backends.session import (
    BaseSession,
    HoldsDefault,
    allocating,
    call_default,
    session_symbols,
    touched_states,
)
from nest.backends.torch.arrays import DTYPES, NAMES, TorchArrays
from nest.backends.torch.fused import fuses
from nest.backends.torch.graphs import GraphRunner
from nest.backends.torch.kept import keep_by_heads
from nest.backends.torch.kept_source import SourceText, kept_source
from nest.backends.torch.small import fuse_small
from nest.errors import CallError, DefinitionError
from nest.ir.inventory import parameters, states
from nest.ir.plan import Plan
from nest.ir.plan import plan as make_plan
from nest.ir.program import Function, Program, Value, path_text

__all__ = ["ModelInfo", "TorchModel", "TorchSession", "build"]


@dataclass
class ModelInfo:
    """What a loaded model knows beside its weights; shared by all copies of the model.

    `rebuild` makes the same module without weights, for pickle and deepcopy.
    """

    program: Program
    source: str
    entry: Any = None
    notes: tuple[str, ...] = ()
    session: dict[str, int] = field(default_factory=dict)
    rebuild: Callable[[], TorchModel] | None = None
    recipe: tuple[Callable[..., Any], tuple[Any, ...]] | None = None

    @cached_property
    def dtype(self) -> str:
        """The element type of the caches: the root's T."""
        generic = self.program.root.generics.get("T")
        return str(getattr(generic, "value", "f32"))


class TorchModel(HoldsDefault, nn.Module):
    """A loaded model. Entries are methods; the ones with states use a default session, one caller at a time.

    Everything of `nn.Module` works on it: `state_dict` has definition paths, `parameters()` train, `to`, `deepcopy`,
    `pickle` and `torch.compile` do what they do elsewhere.
    """

    nest_info: ModelInfo
    # The generated methods under the entries, which check nothing.
    nest_methods: dict[str, Callable[..., Any]]
    backend: ClassVar[str] = "torch"
    """The name of the backend."""

    @property
    def entry(self) -> Any:
        """The zoo entry that the model was loaded from, or None."""
        return self.nest_info.entry

    @property
    def program(self) -> Program:
        """The typed program of the definition."""
        return self.nest_info.program

    @property
    def source(self) -> str:
        """The generated source of this module."""
        return self.nest_info.source

    @property
    def device(self) -> torch.device:
        """Where the parameters are; the CPU for a model that has none."""
        first = next(self.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    def new_session(self, *, plan: str = "exact", graphs: bool = False, **symbols: int) -> TorchSession:
        """States of their own over these weights.

        Args:
            plan: `"exact"`, this module; `"fast"`, the same results by other kernels, over weights as they are now.
            graphs: record entries as CUDA graphs, once a shape, and replay them.
            **symbols: `Batch`, rows; `Capacity`, slots of the caches, by default what the definition admits.
        """
        given = {**self.nest_info.session, **symbols}
        made = make_plan(self.program, plan, changes=self._changes())
        if made.program is not self.program:
            keep_by_heads(made.program)
        if made.name != "exact" and self._fuses():
            fuse_small(made.program)
        module = self if made.name == "exact" else twin(self, made)
        return TorchSession(module, session_symbols(self.program, given), graphs=graphs)

    def _changes(self) -> tuple[str, ...]:
        """What the fast plan is made of where the parameters are. Heads by columns are read faster by a CPU alone."""
        return ("pack", "fuse") if self._fuses() else ("columns", "pack")

    def _fuses(self) -> bool:
        """Whether there are kernels for fused ops where the parameters are."""
        first = next(self.parameters(), None)
        return first is not None and fuses(first.device, first.dtype)

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self._call_entry(name, inputs, {})

    def _call_entry(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        function = self.program.entries.get(name)
        if function is not None and function.uses_state:
            return call_default(self, self.new_session, name, args, kwargs)
        arrays = TorchArrays(self.device)
        native = EntryCall(self.program, name, arrays)(args, kwargs, {})
        with exact_math(self.device):
            return self.nest_methods[name](self, *native)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> TorchModel:
        # What to(), half() and double() do to every tensor. The program, its casts and its caches have their types.
        for dtype in {p.dtype for p in self.parameters()}:
            made = fn(torch.empty(0, dtype=dtype, device=self.device)).dtype
            if made != dtype:
                raise CallError(
                    f"{self.program.name} was made to compute in {_name(dtype)} and cannot be turned into "
                    f"{_name(made)}: load it so, with dtype='{NAMES.get(made, 'f32')}'."
                )
        return cast(TorchModel, super()._apply(fn, recurse))  # type: ignore[no-untyped-call]

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchModel:
        other = skeleton(self.program, **_details(self.nest_info))
        memo[id(self)] = other
        other.__setstate__(copy.deepcopy(self.__dict__, memo))  # type: ignore[no-untyped-call]
        return other

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in where the definition has no entry of this name."""
        raise CallError(
            f"{self.program.name} has no entry 'forward', so the model itself cannot be called; its entries: "
            f"{', '.join(self.program.entries)}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        recipe = self.nest_info.recipe
        if recipe is None:
            raise CallError(
                f"{self.program.name} was built from a class and cannot be pickled; save its state_dict."
            )
        return (*recipe, self.__dict__)


class TorchSession(BaseSession):
    """A session on torch; its states are a tree of tensors that mirrors the module, updated in place."""

    def __init__(self, model: TorchModel, symbols: Mapping[str, int], *, graphs: bool = False) -> None:
        super().__init__(model.program, symbols)
        if graphs and not model.program.root.has_state:
            raise CallError(
                f"graphs=True records entries that use caches, and {model.program.name} has none: leave it out."
            )
        if graphs and model.device.type != "cuda":
            raise CallError(
                f"graphs=True records CUDA graphs, and {model.program.name} is on '{model.device}'."
            )
        self.model = model
        self.arrays = TorchArrays(model.device)
        self._calls: dict[str, tuple[EntryCall, list[str], list[str], bool]] = {}
        self.state: Any = None
        if model.program.root.has_state:
            dtype = DTYPES[model.nest_info.dtype]
            make = cast(Any, model).new_state
            # States outlive the block that the session was made in, which may be one of inference_mode.
            with allocating(self.program, self.symbols), torch.inference_mode(False):
                self.state = make(self.symbols["Batch"], self.symbols.get("Capacity", 0), dtype, model.device)
        self.graphs = GraphRunner(self.state, device=model.device) if graphs else None
        if self.graphs is not None:
            self.state.runner = self.graphs

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        known = self._calls.get(name)
        if known is None:
            call = EntryCall(self.program, name, TorchArrays(self.model.device, stay=self.graphs is not None))
            known = self._calls[name] = call, *touched_states(call.function), _loops(call.function)
        call, used, written, loops = known
        native = call(args, kwargs, self.symbols)
        method = functools.partial(self.model.nest_methods[name], self.model)
        if not call.function.uses_state:
            with exact_math(self.model.device):
                return method(*(x.to(self.model.device) for x in native))
        self._intact(used)
        with self._writing(name, written), torch.no_grad(), exact_math(self.model.device, caches=True):
            if self.graphs is None:
                results = method(*native, self.state)
                return self._own(results) if call.function.views else results
            run = self.graphs.looping if loops else self.graphs.entry
            return run(name, method, native)

    @staticmethod
    def _own(results: Any) -> Any:
        """Results that are views of states, copied: the next call writes the states in place."""
        return results.clone() if isinstance(results, torch.Tensor) else tuple(r.clone() for r in results)

    def _settled(self, result: Any) -> Any:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        return result

    def numpy(self, value: torch.Tensor) -> np.ndarray[Any, Any]:
        return self.arrays.numpy(value)

    def _native(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.model.device)

    def _sibling(self, symbols: Mapping[str, int]) -> TorchSession:
        return TorchSession(self.model, symbols, graphs=self.graphs is not None)

    def _live(self) -> dict[str, torch.Tensor]:
        return {path: _leaf(self.state, path) for path in states(self.program)}

    # The tensors stay, since recorded graphs write to where they are.

    def _put(self, values: Mapping[str, np.ndarray[Any, Any]]) -> None:
        for path, tensor in self._live().items():
            tensor.copy_(torch.from_numpy(np.ascontiguousarray(values[path])))

    def _forget(self, kept: np.ndarray[Any, Any]) -> None:
        specs, live = states(self.program), self._live()
        runs = [(slice(None), kept[0])] if (kept == kept[0]).all() else list(enumerate(kept))
        for path in self._slotted():
            spec, tensor = specs[path], live[path]
            for rows, first in runs:
                where: list[Any] = [slice(None)] * tensor.ndim
                where[spec.batch_axis], where[cast(int, spec.write_axis)] = rows, slice(int(first), None)
                tensor[tuple(where)] = 0

    def _take(self, source: TorchSession, rows: list[int], paths: Sequence[str]) -> None:
        specs, live, given = states(self.program), self._live(), source._live()
        # Of its own rows, only those that move.
        moved = [row for row, taken in enumerate(rows) if source is not self or row != taken]
        into, out_of = (
            torch.tensor(n, device=self.model.device) for n in (moved, [rows[row] for row in moved])
        )
        for path in paths if moved else ():
            axis = specs[path].batch_axis
            live[path].index_copy_(axis, into, given[path].index_select(axis, out_of))


def _leaf(tree: Any, path: str) -> torch.Tensor:
    """The tensor at a definition path of a tree of states."""
    for part in path.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else getattr(tree, part)
    return cast(torch.Tensor, tree)


def build(
    program: Program,
    params: Mapping[str, np.ndarray[Any, Any]],
    *,
    device: torch.device | str = "cpu",
    **info: Any,
) -> TorchModel:
    """The module of a program over these parameters.

    Arrays are taken without a copy where their type is the program's and the device is the CPU.
    """
    target = checked_device(device)
    with stretch("generate the module"):
        model = skeleton(program, **info)
    types = {path: DTYPES[spec.dtype] for path, spec in parameters(program).items()}
    with stretch("put the weights"):
        tensors = {path: _tensor(array).to(types[path]) for path, array in params.items()}
        model.load_state_dict(tensors, assign=True, strict=True)
        return model.to(target)


def checked_device(name: torch.device | str) -> torch.device:
    """The device of that name, if this build and this machine have it.

    Raises:
        CallError: they have not.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        here = [
            "cpu",
            *(["cuda"] if torch.cuda.is_available() else []),
            *(["mps"] if torch.backends.mps.is_available() else []),
        ]
        raise CallError(
            f"torch cannot use device='{name}' here ({reason}); it can use {', '.join(here)}."
        ) from None
    return device


def skeleton(program: Program, *, plan: Plan | None = None, **info: Any) -> TorchModel:
    """The module with its parameters on the meta device: shapes and no memory.

    A plan's module has the plan's parameters; entries and states are the program's in any case.
    """
    plan = plan or make_plan(program)
    made = kept_source(plan, lambda: _printed(program, plan))
    module = load_generated(made.text, program.name)
    generated = getattr(module, made.root)
    details = ModelInfo(program, made.text, **info)
    plain = {name: getattr(generated, name) for name in program.entries}
    namespace: dict[str, Any] = {
        "nest_info": details,
        "nest_methods": plain,
        "__module__": module.__name__,
    }
    for name, function in program.entries.items():
        namespace[name] = _entry_method(
            name, len(function.signature.parameters), function.uses_state, function.doc
        )
    cls = type(made.root, (TorchModel, generated), namespace)
    with torch.device("meta"):
        model = cls(**{name: _argument(value) for name, value in made.takes.items()})
    return cast(TorchModel, model)


def _argument(value: str) -> int | torch.dtype:
    """What a constructor takes: a number, or an element type by its name, such as `torch.float32`."""
    return int(value) if value.isdigit() else cast(torch.dtype, getattr(torch, value.partition(".")[2]))


def _printed(program: Program, plan: Plan) -> SourceText:
    """The source of a plan's program, printed anew."""
    # Here, since a process that finds its source needs nothing of what prints it.
    from nest.backends.torch.source import torch_module

    _refuse_clashes(program)
    made = torch_module(plan.program, plan.name)
    return SourceText(made.text, made.root, made.takes)


def _refuse_clashes(program: Program) -> None:
    """Names of a definition must not hide what every module on torch has, or what generated source means by them."""
    from nest.backends.source.names import RESERVED

    modules = {n for n in dir(nn.Module) if n != "forward"}
    for block in program.root.distinct():
        own = modules | ({n for n in vars(TorchModel) if n != "forward"} if block is program.root else set())
        members = {*block.params, *block.children, *block.functions}
        standard = block.module.startswith("nest.layers.standard")
        clash = sorted((own & members) | ({"forward"} & {*block.params, *block.children}))
        clash += sorted(RESERVED & block.generics.keys())
        if clash and not standard:
            raise DefinitionError(
                f"{block.name} names something '{clash[0]}', which on torch means something else already: name it "
                f"otherwise."
            )


def _details(info: ModelInfo) -> dict[str, Any]:
    return {"entry": info.entry, "notes": info.notes, "session": info.session, "recipe": info.recipe}


# Beside the models, as their sessions are: a copy or a pickle of a model has none of this.
_TWINS: WeakKeyDictionary[TorchModel, tuple[Any, TorchModel]] = WeakKeyDictionary()


def twin(model: TorchModel, plan: Plan) -> TorchModel:
    """The module of another plan over the model's parameters as they are now; what is not packed, both share."""
    params = model.state_dict(keep_vars=True)
    # Training changes a tensor's version, loading the tensor itself.
    now = plan.name, [(id(p), p._version) for p in params.values()]
    known = _TWINS.get(model)
    if known is None or known[0] != now:
        with stretch(f"plan {plan.name}"):
            other = skeleton(model.program, plan=plan, **_details(model.nest_info))
        with stretch("pack the weights"), torch.no_grad():
            packed = _packer(model.device).packed(plan.params, params.__getitem__) if plan.params else params
        other.load_state_dict(packed, assign=True)
        other = other.to(model.device)
        if model.device.type == "cuda":
            _store_time_major(other, plan.program)
        known = _TWINS[model] = now, other
    return known[1]


def _store_time_major(model: TorchModel, program: Program) -> None:
    """Let weights of convolutions over time lie in memory as [Out, taps, In], which is how their kernel reads them."""
    convs = [
        n for f in program.functions() for n in f.nodes if n.op == "conv" and n.outputs[0].type.rank == 3
    ]
    for weight in (n.inputs[1].node for n in convs if isinstance(n.inputs[1], Value)):
        if weight is not None and weight.op == "param" and "*" not in weight.attrs["path"]:
            *owner, name = weight.attrs["path"]
            block = model.get_submodule(path_text(tuple(owner)))
            turned = getattr(block, name).detach().transpose(1, 2).contiguous().transpose(1, 2)
            setattr(block, name, nn.Parameter(turned))


def _packer(device: torch.device) -> Packer:
    return Packer(
        concat=lambda parts, axis: torch.cat(list(parts), axis),
        transpose=lambda x, perm: x.permute(perm).contiguous(),
        zeros=lambda shape, dtype: torch.zeros(shape, dtype=DTYPES[dtype], device=device),
    )


def _entry_method(name: str, count: int, stateful: bool, doc: str | None) -> Callable[..., Any]:
    def method(self: TorchModel, *args: Any, **kwargs: Any) -> Any:
        if stateful and len(args) == count + 1:
            # One generated method calling another hands its state on.
            inner, runner = self.nest_methods[name], getattr(args[-1], "runner", None)
            if runner is None:
                return inner(self, *args)
            return runner.entry(name, functools.partial(inner, self), args[:-1])
        return self._call_entry(name, args, kwargs)

    method.__name__ = name
    method.__doc__ = doc
    return method


@contextlib.contextmanager
def exact_math(device: torch.device, *, caches: bool = False) -> Iterator[None]:
    """f32 in f32: no TF32 in convolutions (cuDNN's default) or matrix products, whatever the process has chosen.

    Args:
        caches: the call writes caches, which autocast would hand values of another type; it is off in there.
    """
    if caches and torch.is_autocast_enabled(device.type):
        with torch.autocast(device.type, enabled=False), exact_math(device):
            yield
        return
    if device.type != "cuda":
        yield
        return
    chosen = torch.get_float32_matmul_precision()
    if chosen != "highest":
        torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        if chosen != "highest":
            torch.set_float32_matmul_precision(chosen)


def _name(dtype: torch.dtype) -> str:
    return NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def _loops(function: Function) -> bool:
    """Whether an entry looks at the host while it runs, so that only its parts can be recorded."""
    return any(node.op == "while_loop" for node in function.nodes)


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    if array.dtype.name.startswith("float8"):  # of ml_dtypes, which torch does not read
        array = array.astype(np.float32)
    return torch.from_numpy(array if array.flags.writeable else array.copy())
