"""What is Flax NNX's own in an ejected file."""

from __future__ import annotations

from nest._optional import need
from nest.backends.source.layout import GeneratedText
from nest.export.source.usage import example, prompt
from nest.ir.inventory import default_capacity
from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["IMPORTS", "TITLE", "TYPE", "load_text", "main_text", "source"]

TITLE = "Flax NNX"
TYPE = "Any"
IMPORTS = (
    "import sys",
    "from dataclasses import dataclass",
    "from typing import Any",
    "from safetensors.flax import load_file",
)


def source(program: Program) -> GeneratedText:
    """The helpers, layers and classes.

    Raises:
        MissingDependencyError: Flax is not installed.
    """
    need("flax", extra="jax", purpose="eject Flax NNX source")
    from nest.backends.jax.nnx.source import nnx_module
    from nest.export.source.plain import plain_helpers

    return nnx_module(program, plain_helpers(program), config=True)


def load_text(root: str) -> str:
    """The function that loads the model."""
    return f'''def load(path: str, config: Config | None = None) -> {root}:
    """The model with the weights of a safetensors file, under the publisher's names or this file's own."""
    tensors = load_file(path)
    model = nnx.eval_shape(lambda: {root}(config or Config(), rngs=nnx.Rngs(0)))
    for place, variable in nnx.iter_graph(model):
        if isinstance(variable, nnx.Variable):
            name = ".".join(map(str, place))
            tensor = tensors[name if name in tensors else published(name)]
            variable.set_value(tensor.astype(variable.dtype))
    return model'''


def main_text(entry: Entry, program: Program) -> str:
    """A tiny use of the model."""
    tokens = prompt(entry, program)
    lines = ['if __name__ == "__main__":', "    model = load(sys.argv[1])"]
    if {"prefill", "step"} <= program.entries.keys():
        lines.append(f"    state = model.new_state(1, {default_capacity(program) or len(tokens)})")
        for name in ("listen", "prefill"):
            if name in program.entries:
                arguments = example(program, name, tokens, "jnp.zeros(({}))", "jnp.array({})")
                target = "logits = " if name == "prefill" else ""
                lines.append(f"    {target}model.{name}({', '.join([*arguments, 'state'])})")
        return "\n".join([*lines, '    print("the next token:", int(logits.argmax()))'])
    name = entry.manifest.source.entry
    arguments = example(program, name, tokens, "jnp.zeros(({}))", "jnp.array({})")
    return "\n".join([*lines, f"    print(model.{name}({', '.join(arguments)}).shape)"])
