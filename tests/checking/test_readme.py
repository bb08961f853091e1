"""Markdown as far as it is read: fences, headings, and the entries that snippets name."""

from __future__ import annotations

import pytest

from nest.checking.readme import Snippet, headings, names_loaded, snippets

PAGE = """\
# Title

```python
x = 1  # no heading
## Nor this
```

## Use ##

```sh
nest run whisper-tiny.en talk.mp3
```

````python title="a"
"```"
````
```
plain
```
"""


def test_snippets_have_language_code_and_line() -> None:
    assert snippets(PAGE) == [
        Snippet("python", "x = 1  # no heading\n## Nor this\n", 4),
        Snippet("sh", "nest run whisper-tiny.en talk.mp3\n", 11),
        Snippet("python", '"```"\n', 15),
        Snippet("", "plain\n", 18),
    ]


def test_headings_are_those_outside_of_snippets() -> None:
    assert headings(PAGE) == ["# Title", "## Use ##"]


@pytest.mark.parametrize(
    ("language", "code", "names"),
    [
        ("python", 'nest.load("a", backend="torch")', {"a"}),
        ("python", 'nest.pipeline("a")("talk.mp3"); nest.find(\'b\')', {"a", "b"}),
        ("python", "nest.load(name); load('c'); audio.load('talk.mp3')", {"talk.mp3"}),
        ("python", "nest.load('a'", set()),
        ("sh", "$ nest run a x.wav\nnest list\nnest show b", {"a", "b"}),
        ("", "nest pull a", {"a"}),
    ],
)
def test_the_entries_that_a_snippet_names(language: str, code: str, names: set[str]) -> None:
    assert names_loaded([Snippet(language, code, 1)]) == names
