"""The index: every entry as a card and as a row of a table that is sorted and filtered in the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from nest.catalog.facts import Facts
from nest.catalog.markup import attributes, count, element, escape, file_size
from nest.catalog.measured import Summary, summary
from nest.catalog.words import ALSO, TASKS, task_words

__all__ = ["index"]

BACKENDS = ("torch", "jax", "nnx", "onnx")


def index(entries: Sequence[Facts]) -> dict[str, bytes | Path]:
    """`index.md`, and `catalog.json` with the same facts for programs."""
    ordered = sorted(entries, key=_place)
    listed = [(facts, summary(facts)) for facts in ordered]
    text = "\n\n".join(
        [
            "---\ntitle: Models\nhide: [navigation, toc]\n"
            'description: "Every model of the zoo: choose by task, size, licence and measured speed."\n---',
            "# Models",
            _controls(ordered),
            f'<div class="nest-cards" id="nest-cards">{"".join(_card(*one) for one in listed)}</div>',
            _table(listed),
            '<p class="nest-none" id="nest-none" hidden>No model matches. <a href="./">Show all</a></p>',
            '<script src="assets/index.js" defer></script>',
        ]
    )
    data = json.dumps([_record(*one) for one in listed], indent=1, ensure_ascii=False)
    return {"index.md": (text + "\n").encode(), "catalog.json": (data + "\n").encode()}


def _place(facts: Facts) -> tuple[int, str, int, str]:
    kinds = list(TASKS)
    kind = kinds.index(facts.task) if facts.task in kinds else len(kinds)
    return kind, facts.card.family, facts.parameter_count, facts.name


def _controls(entries: Sequence[Facts]) -> str:
    """A form whose state is the page's address, so that a link keeps the choice."""
    kinds = [kind for kind in TASKS if any(facts.task == kind for facts in entries)]
    families = sorted({facts.card.family for facts in entries})
    licences = sorted({facts.card.license for facts in entries})
    fields = [
        '<label class="nest-find"><span>Find</span>'
        '<input type="search" name="find" placeholder="name, task, tag" autocomplete="off"></label>',
        _choice("task", "Task", [(kind, task_words(kind)) for kind in kinds]),
        _choice("family", "Family", [(name, name) for name in families]),
        _choice("licence", "Licence", [(name, name) for name in licences]),
        _choice(
            "size", "Download", [("100MB", "up to 100 MB"), ("500MB", "up to 500 MB"), ("2GB", "up to 2 GB")]
        ),
        _choice("backend", "Backend", [(name, name) for name in BACKENDS]),
        '<fieldset class="nest-view"><legend>Show as</legend>'
        '<label><input type="radio" name="view" value="cards" checked> cards</label>'
        '<label><input type="radio" name="view" value="table"> table</label></fieldset>',
    ]
    count_ = f'<p class="nest-count" role="status" id="nest-count">{len(entries)} models</p>'
    reset = '<button type="reset" class="nest-reset" id="nest-reset" hidden>Show all</button>'
    # The form has its room before its script runs, so that nothing moves; without scripts it is not shown at all.
    return (
        f'<form class="nest-controls" id="nest-controls">{"".join(fields)}'
        f'<div class="nest-found">{count_}{reset}</div></form>'
    )


def _choice(name: str, title: str, options: Iterable[tuple[str, str]]) -> str:
    listed = "".join(element("option", escape(text), value=value) for value, text in options)
    return f'<label><span>{title}</span><select name="{name}"><option value="">any</option>{listed}</select></label>'


def _marks(facts: Facts, found: Summary) -> str:
    """What the filters and the orders of the page read."""
    card = facts.card
    words = " ".join(
        [
            card.name,
            card.title,
            card.family,
            *card.tags,
            *card.aliases,
            task_words(facts.task),
            ALSO.get(facts.task or "", ""),
        ]
    )
    return attributes(
        data_name=card.name,
        data_task=" ".join(filter(None, [facts.task, *card.also])),
        data_family=card.family,
        data_licence=card.license,
        data_size=card.size,
        data_parameters=facts.parameter_count,
        data_backend=" ".join(name for name, good in found.backends.items() if good),
        data_cpu=found.cpu.value if found.cpu else None,
        data_gpu=found.gpu.value if found.gpu else None,
        data_words=words.lower(),
    )


def _card(facts: Facts, found: Summary) -> str:
    card = facts.card
    line = " · ".join([f"{count(facts.parameter_count)} parameters", _size(facts), card.license])
    speed = f'<p class="nest-card__speed">{_speed(found, "cpu")}</p>' if found.cpu else ""
    return (
        f'<article class="nest-card"{attributes(data_name=card.name)}>'
        f'<p class="nest-card__task">{escape(task_words(facts.task))}</p>'
        f'<h2 class="nest-card__name"><a href="{escape(card.name)}/">{escape(card.title)}</a></h2>'
        f'<p class="nest-card__summary">{escape(card.summary)}</p>'
        f'<p class="nest-card__line">{escape(line)}</p>{speed}{_backends(found)}</article>'
    )


COLUMNS = (
    ("name", "Model"),
    ("task", "Task"),
    ("parameters", "Parameters"),
    ("size", "Download"),
    ("cpu", "CPU"),
    ("gpu", "GPU"),
    ("backend", "Backends"),
    ("licence", "Licence"),
    ("family", "Family"),
)


def _table(listed: Iterable[tuple[Facts, Summary]]) -> str:
    heads = "".join(
        f'<th scope="col" aria-sort="none"><button type="button" data-sort="{key}">{title}</button></th>'
        for key, title in COLUMNS
    )
    rows = "".join(_row(*one) for one in listed)
    return (
        '<div class="nest-scroll" id="nest-table" tabindex="0" role="region" aria-label="All models as a table" hidden>'
        f'<table class="nest-table"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _row(facts: Facts, found: Summary) -> str:
    card = facts.card
    cells = [
        f'<a href="{escape(card.name)}/">{escape(card.name)}</a>',
        escape(task_words(facts.task)),
        escape(count(facts.parameter_count)),
        escape(_size(facts)),
        _speed(found, "cpu"),
        _speed(found, "gpu"),
        _backends(found),
        escape(card.license),
        escape(card.family),
    ]
    return f"<tr{_marks(facts, found)}>{''.join(element('td', cell) for cell in cells)}</tr>"


def _size(facts: Facts) -> str:
    about = "" if facts.card.size_exact or facts.card.size is None else "about "
    return about + file_size(facts.card.size)


def _speed(found: Summary, device: str) -> str:
    speed = found.cpu if device == "cpu" else found.gpu
    return element("span", escape(speed.text), title=speed.where) if speed else "not measured"


def _backends(found: Summary) -> str:
    """Each backend with how its measured rows came out, in words for those who see no colours."""
    items = []
    for name in BACKENDS:
        state = {True: "green", False: "failed", None: "not measured"}[found.backends.get(name)]
        kind = state.replace(" ", "-")
        items.append(f'<li class="nest-mark nest-mark--{kind}" title="{name}: {state}">{name}</li>')
    return f'<ul class="nest-marks">{"".join(items)}</ul>'


def _record(facts: Facts, found: Summary) -> dict[str, object]:
    card = facts.card
    speeds = {"cpu": found.cpu, "gpu": found.gpu}
    return {
        "name": card.name,
        "title": card.title,
        "summary": card.summary,
        "task": facts.task,
        "also": list(card.also),
        "family": card.family,
        "parameters": facts.parameter_count,
        "size": card.size,
        "size_exact": card.size_exact,
        "license": card.license,
        "repo": card.repo,
        "tags": list(card.tags),
        "backends": dict(found.backends),
        "speed": {name: {"text": s.text, "where": s.where} for name, s in speeds.items() if s},
    }
