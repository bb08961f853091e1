"""A job as users of each framework write it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from nest.tasks.snippets.job import JAX, NNX, NUMPY, TORCH, Arrays, Call, Job, Loss
from nest.tasks.snippets.subject import Subject

__all__ = ["jax_code", "nnx_code", "onnx_code", "torch_code"]


def torch_code(subject: Subject, job: Job) -> Iterator[str]:
    """A `torch.nn.Module`: inference, a session, one step of training, its `state_dict`."""
    call = _methods(subject, TORCH)
    inputs = job.inputs(TORCH)
    pads = any("pad_sequence" in line for line in inputs)
    helper = ("from torch.nn.utils.rnn import pad_sequence",) if pads else ()
    yield from _imports(job, (*TORCH.imports, "from torch.nn import functional as F", *helper))
    yield from [*_load(subject, "torch"), *inputs, ""]
    yield "with torch.inference_mode():"
    yield from _indented(_called(subject, job, call))
    yield from job.after(TORCH)
    yield from _session(job, TORCH, "its caches")
    loss = job.loss(TORCH, call)
    trained = f"optimizer = torch.optim.AdamW({loss.model}.parameters(), lr=1e-5)"
    yield from ["", "# one step of training", *loss.before, trained, *loss.body]
    flat = ("logits", loss.labels) if loss.rows else ("logits.flatten(0, 1)", f"{loss.labels}.flatten()")
    judge = "binary_cross_entropy_with_logits" if loss.pairs else "cross_entropy"
    yield f"loss = F.{judge}({', '.join(flat)})"
    yield from ["loss.backward()", "optimizer.step()"]
    yield f'torch.save(model.state_dict(), "{_file(subject)}.pt")'


def jax_code(subject: Subject, job: Job) -> Iterator[str]:
    """Pure functions over a pytree: `jit`, caches as values, gradients."""
    inputs = [*job.inputs(JAX), *_filled(subject, job, JAX)]

    def call(one: Call) -> str:
        given = [one.given.get(name, name) for name in subject.parameters(one.entry)]
        arguments = ", ".join(["params", *given])
        return f"{_function(one.entry)}({arguments})"

    loss = job.loss(JAX, call)
    yield from _imports(job, ("import jax", *JAX.imports, *_numpy(inputs), _optax(loss)))
    yield from _load(subject, "jax")
    yield "params = model.params  # a pytree: a dict of arrays by path"
    yield from [*inputs, ""]
    for entry in _entries(job, loss.body):
        yield f'{_function(entry)} = jax.jit(model.function("{entry}"))  # pure'
    yield from _called(subject, job, call)
    yield from job.after(JAX)
    if (decode := job.decode(JAX)) is not None:
        yield ""
        yield f"caches = model.new_states({decode.sizes})  # a pytree too"
        for entry in ("listen", "prefill", "step"):
            if any(f"{entry}(params" in line for line in decode.pure):
                donated = ", donate_argnums=1" if entry == "step" else ""
                yield f'{entry} = jax.jit(model.function("{entry}"){donated})'
        yield from decode.pure
    yield from ["", *loss.before, "", "", "# gradients of a loss"]
    yield f"def loss({loss.inner}, {', '.join(loss.given)}):"
    yield from _indented([*loss.body, f"return cross_entropy(logits, {loss.labels}).mean()"])
    yield from ["", ""]
    both = ", argnums=(0, 1)" if "," in loss.inner else ""
    arguments = ", ".join([loss.inner, *loss.given])
    yield f"learn = jax.jit(jax.value_and_grad(loss{both}))"
    yield f"value, gradients = learn({arguments})"


def nnx_code(subject: Subject, job: Job) -> Iterator[str]:
    """An `nnx.Module`: calls that are compiled, a session, an optimizer's step, its state."""
    call = _methods(subject, NNX)
    inputs = job.inputs(NNX)
    loss = job.loss(NNX, call)
    imports = (*JAX.imports, *_numpy(inputs), "import optax", "from flax import nnx", _optax(loss))
    yield from _imports(job, imports)
    yield from [*_load(subject, "nnx"), *inputs, ""]
    yield from _called(subject, job, call)
    yield from job.after(NNX)
    yield from _session(job, NNX, "its caches")
    yield from ["", *loss.before, "", "", "# one step of training", "@nnx.jit"]
    yield f"def train(model, optimizer, {', '.join(loss.given)}):"
    inner = [
        "def loss(model):",
        *_indented([*loss.body, f"return cross_entropy(logits, {loss.labels}).mean()"]),
        "",
    ]
    inner += ["value, gradients = nnx.value_and_grad(loss)(model)", "optimizer.update(model, gradients)"]
    yield from _indented([*inner, "return value"])
    yield from ["", "", f"optimizer = nnx.Optimizer({loss.model}, optax.adamw(1e-5), wrt=nnx.Param)"]
    yield f"print(train({loss.model}, optimizer, {', '.join(loss.given)}))"
    yield f"graph, state = nnx.split({loss.model})  # to checkpoint, shard or merge"


def onnx_code(subject: Subject, job: Job) -> Iterator[str]:
    """ONNX Runtime through nest, and then without it: a folder, a session, memory that is bound."""
    call = _methods(subject, NUMPY)
    inputs = job.inputs(NUMPY)
    yield from _imports(job, (*_numpy([*inputs, *job.fills(NUMPY).values()]), "import onnxruntime as ort"))
    yield from [*_load(subject, "onnx"), *inputs, ""]
    yield from _called(subject, job, call)
    yield from job.after(NUMPY)
    yield from _session(job, NUMPY, "its caches, bound in place")
    yield from ["", "# the same without nest", *_exported(subject, job)]


def _exported(subject: Subject, job: Job) -> Iterator[str]:
    """An entry of the folder, run by the runtime alone."""
    folder, one = f"{_file(subject)}-onnx", job.calls[0]
    yield f'folder = "{folder}"  # of graphs, weights, and io.json'
    yield 'nest.save(model, folder, format="onnx")'
    yield f'graph = f"{{folder}}/{one.entry}.onnx"'
    yield 'session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])'
    yield from _filled(subject, job, NUMPY)
    yield "binding = session.io_binding()"
    for name in subject.parameters(one.entry):
        yield f'binding.bind_cpu_input("{name}", {one.given.get(name, name)})'
    yield 'binding.bind_output("result")'
    yield "session.run_with_iobinding(binding)"
    yield f"{one.result} = binding.copy_outputs_to_cpu()[0]  # {subject.shape(one.entry, **one.sizes)}"


def _load(subject: Subject, backend: str) -> list[str]:
    """The line that loads, or, where it is long, several."""
    call = subject.load(backend)
    if len(call) < 76:
        return [f"model = {call}"]
    start, _, arguments = call.removesuffix(")").partition("(")
    return [f"model = {start}(", f"    {arguments}", ")"]


def _imports(job: Job, own: Iterable[str]) -> Iterator[str]:
    lines = {"import nest", *own, *job.imports}
    yield from sorted(lines, key=lambda line: (line.startswith("from"), line))
    yield ""


def _numpy(lines: Iterable[str]) -> tuple[str, ...]:
    return NUMPY.imports if any(re.search(r"\bnp\.", line) for line in lines) else ()


def _filled(subject: Subject, job: Job, arrays: Arrays) -> list[str]:
    """What an entry's omitted arguments are, made by hand."""
    given = {name for one in job.calls for name in one.given}
    return [f"{name} = {value}" for name, value in job.fills(arrays).items() if name not in given]


def _called(subject: Subject, job: Job, call: Callable[[Call], str]) -> list[str]:
    return [f"{one.result} = {call(one)}  # {subject.shape(one.entry, **one.sizes)}" for one in job.calls]


def _methods(subject: Subject, arrays: Arrays) -> Callable[[Call], str]:
    """`model.encode(mel)`: what comes in order by position, the others by name."""

    def call(one: Call) -> str:
        arguments, gap = [], False
        for name in subject.parameters(one.entry):
            if name not in one.given:
                gap = True
                continue
            arguments.append(f"{name}={one.given[name]}" if gap else one.given[name])
        native = one.entry == "forward" and arrays.backend == "torch"
        method = "model" if native else f"model.{one.entry}"
        return f"{method}({', '.join(arguments)})"

    return call


def _session(job: Job, arrays: Arrays, note: str) -> list[str]:
    decode = job.decode(arrays)
    if decode is None:
        return []
    return ["", f"session = model.new_session({decode.sizes})  # {note}", *decode.session]


def _entries(job: Job, lines: Iterable[str]) -> list[str]:
    """The entries that are called, each once: those of the calls, then those of a loss."""
    found = dict.fromkeys(one.entry for one in job.calls)
    for entry in ("decode", "similarity"):
        if any(f"{_function(entry)}(params" in line for line in lines):
            found.setdefault(entry)
    return list(found)


def _function(entry: str) -> str:
    return {"forward": "apply"}.get(entry, entry)


def _optax(loss: Loss) -> str:
    judge = "sigmoid_binary_cross_entropy" if loss.pairs else "softmax_cross_entropy_with_integer_labels"
    return f"from optax import {judge} as cross_entropy"


def _file(subject: Subject) -> str:
    return subject.entry.name


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]
