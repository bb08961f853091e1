"""What is PyTorch's own in an ejected file."""

from __future__ import annotations

from nest._optional import need
from nest.backends.source.layout import GeneratedText
from nest.export.source.usage import example, prompt
from nest.ir.inventory import default_capacity
from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["IMPORTS", "TITLE", "TYPE", "load_text", "main_text", "source"]

TITLE = "PyTorch"
TYPE = "torch.dtype"
IMPORTS = ("import sys", "from dataclasses import dataclass", "from safetensors.torch import load_file")


def source(program: Program) -> GeneratedText:
    """The helpers and classes.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    need("torch", extra="torch", purpose="eject PyTorch source")
    from nest.backends.torch.source import torch_module

    return torch_module(program, config=True)


def load_text(root: str) -> str:
    """The function that loads the model."""
    return f'''def load(path: str, config: Config | None = None) -> {root}:
    """The model with the weights of a safetensors file, under the publisher's names or this file's own."""
    tensors = load_file(path)
    with torch.device("meta"):
        model = {root}(config or Config())
    wanted = model.state_dict()
    model.load_state_dict(
        {{name: tensors[name if name in tensors else published(name)] for name in wanted}}, assign=True
    )
    return model.eval()'''


def main_text(entry: Entry, program: Program) -> str:
    """A tiny use of the model."""
    tokens = prompt(entry, program)
    lines = ['if __name__ == "__main__":', "    model = load(sys.argv[1])", "    with torch.no_grad():"]
    if {"prefill", "step"} <= program.entries.keys():
        capacity = default_capacity(program) or len(tokens)
        lines.insert(2, f'    state = model.new_state(1, {capacity}, torch.float32, torch.device("cpu"))')
        for name in ("listen", "prefill"):
            if name in program.entries:
                arguments = example(program, name, tokens, "torch.zeros({})", "torch.tensor({})")
                target = "logits = " if name == "prefill" else ""
                lines.append(f"        {target}model.{name}({', '.join([*arguments, 'state'])})")
        return "\n".join([*lines, '    print("the next token:", int(logits.argmax()))'])
    name = entry.manifest.source.entry
    arguments = example(program, name, tokens, "torch.zeros({})", "torch.tensor({})")
    return "\n".join([*lines, f"        print(model.{name}({', '.join(arguments)}).shape)"])
