"""Use it: the task in Python and in a terminal, then the model itself on each backend."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nest.catalog.facts import Facts
from nest.catalog.markup import code, element, fence, tabs
from nest.catalog.readme import Readme
from nest.catalog.section import Section
from nest.tasks.snippets import BACKENDS, Subject, commands, installs, leaving, model_code, task_code

__all__ = ["divided", "executed", "section"]

_BACKENDS = {
    "torch": 'A `torch.nn.Module` of readable source, which `model.source` prints; `device="cuda"` for a GPU.',
    "jax": "Pure functions over a dict of arrays, for `jit`, `grad` and `vmap`; `model.{entry}(...)` and the like "
    "check their arguments.",
    "nnx": "A `flax.nnx.Module` of readable source, which `model.source` prints; calls outside of `jit` are compiled.",
    "onnx": 'ONNX graphs run by ONNX Runtime; `providers=["CUDAExecutionProvider"]` for a GPU. Below, the exported '
    "folder runs without nest.",
}
"""What a backend gives, in a line."""

_LONGER = (
    "Subtitles, videos, recordings of any length and many files at once are the work of `nest transcribe`: "
    "[recordings and videos](../../guides/long-audio.md)."
)

_COLUMNS = 72
"""Characters of a line that a page shows without scrolling, copying's button and a comment's mark aside."""


def section(facts: Facts, readme: Readme) -> Section:
    """Install, the task, the commands, each backend, and the way out of nest.

    The task is shown in the README's words. What the README says of the model itself, beneath the task, stands folded
    after the backends.
    """
    subject = Subject(facts.entry)
    task, model = divided(readme.section("Use"))
    rows = [(command, what) for command, what in commands(subject) if not _said(command, task)]
    parts = [_install(subject), task or fence(task_code(subject), "python"), _terminal(rows)]
    if subject.kind == "transcription":
        parts.append(_LONGER)
    if model_code(subject, next(iter(BACKENDS))):
        parts += ["### On each backend { #backends }", _backends(subject), executed(subject)]
    parts += ["### Without nest { #export }", _terminal(leaving(subject))]
    parts.append(_folded("More about the model itself, on torch", model))
    return Section("Use it", "use", "\n\n".join(part for part in parts if part))


def divided(text: str) -> tuple[str, str]:
    """A README's use of the task, and of the model itself: from the first block that calls `nest.load`, and the
    paragraph that leads to it."""
    for block in re.finditer(r"^```python\n.*?^```$", text, re.MULTILINE | re.DOTALL):
        if "nest.load(" in block[0]:
            before = text[: block.start()].rstrip()
            start = block.start() if before.endswith("```") else before.rfind("\n\n") + 1
            return text[:start].strip(), text[start:].strip()
    return text.strip(), ""


def _said(command: str, text: str) -> bool:
    """Whether a text has this use of a command already, if with other words to work on."""
    verb = " ".join(command.split()[:3])
    return (command.count(" ") > 2 and verb in text) or command in text.splitlines()


def _install(subject: Subject) -> str:
    """From a checkout, since no package index has nest."""
    first, *others = ("torch", "jax") if subject.half else ("onnx", "torch", "jax")
    command = fence(f"pip install '.[{installs(subject, first)}]'", "sh")
    instead = f"{' or '.join(map(code, others))} may stand for {code(first)}"
    about = f"From a checkout of nest, which is on no package index yet; {instead}."
    return f"{command}\n{element('p', about)}"


def _terminal(rows: Iterable[tuple[str, str]]) -> str:
    listed = list(rows)
    if not listed:
        return ""
    width = max(len(command) for command, _ in listed)
    if width + max(len(what) for _, what in listed) > _COLUMNS:
        return fence("\n".join(f"# {what}\n{command}" for command, what in listed), "sh")
    return fence("\n".join(f"{command:{width}}  # {what}" for command, what in listed), "sh")


def _backends(subject: Subject) -> str:
    """A tab for each; the site keeps the choice from page to page."""
    panels = []
    for backend in BACKENDS:
        about = _BACKENDS[backend].replace("{entry}", next(iter(subject.program.entries)))
        install = f"`pip install '.[{installs(subject, backend)}]'`"
        panels.append((backend, f"{about} {install}\n\n{fence(model_code(subject, backend), 'python')}"))
    # The search forgets what it is to leave out at the first end tag of the same name, and tabs are made of `div`s.
    return f'<section data-search-exclude="true" markdown="1">\n\n{tabs(panels)}\n\n</section>'


def executed(subject: Subject) -> str:
    """How these snippets were run, which says how far they can be trusted."""
    weights = subject.entry.manifest.weights
    small = "with random weights at a small configuration, and of code that differs in names and numbers alone, once"
    if weights is not None and weights.mirror:
        text = f"The tests run this code on torch and onnx with the weights of the pinned mirror; on all four {small}."
    else:
        text = f"The tests run this code {small}. With the published weights this project has not run it."
    return element("p", text, class_="nest-executed")


def _folded(title: str, text: str) -> str:
    if not text:
        return ""
    opening = '<details class="nest-more" data-search-exclude="true" markdown="1">'
    return f"{opening}\n<summary>{title}</summary>\n\n{text}\n\n</details>"
