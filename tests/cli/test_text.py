"""`nest run` and `nest chat` over a scripted generator."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from nest.errors import InputError
from nest.registry import find
from nest.tasks import Generation

from .conftest import Command

NAME = "smollm2-135m-instruct"


class Stream:
    """Pieces, and what they were in the end."""

    def __init__(self, pieces: list[str], finish: Any, broken_after: int | None = None) -> None:
        self.result = Generation("".join(pieces), tuple(range(len(pieces))), finish, 3, -1.25)
        self.pieces = pieces
        self.broken_after = broken_after
        self.closed = False

    def __iter__(self) -> Iterator[str]:
        for at, piece in enumerate(self.pieces):
            if at == self.broken_after:
                raise KeyboardInterrupt
            yield piece

    def close(self) -> None:
        self.closed = True


class Scripted:
    """Stands in for `nest.pipeline`, and writes down what it is asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []
        self.finish = "stop"
        self.broken_after: int | None = None

    def pipeline(self, name: str, **options: Any) -> Scripted:
        assert options["backend"] in ("the first", "torch")
        return self

    def __call__(self, text: str, **settings: Any) -> Generation:
        self.calls.append(("call", text, settings))
        return self._stream("call").result

    def stream(self, text: str, **settings: Any) -> Stream:
        self.calls.append(("stream", text, settings))
        return self._stream("stream")

    def chat(self, messages: Any, *, stream: bool = False, **settings: Any) -> Any:
        self.calls.append(("chat", [(m["role"], m["content"]) for m in messages], settings))
        if messages[-1]["content"] == "too long":
            raise InputError("The prompt has 9 tokens, and the model holds 8.")
        made = self._stream("chat")
        return made if stream else made.result

    def _stream(self, how: str) -> Stream:
        return Stream(["It ", "is ", how, "."], self.finish, self.broken_after)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    script = Scripted()
    for module in ("nest.cli._run", "nest.cli._chat"):
        monkeypatch.setattr(f"{module}.pipeline", script.pipeline)
        monkeypatch.setattr(f"{module}.announce_fetch", lambda entry: None)
        monkeypatch.setattr(f"{module}.chosen_backend", lambda *, extras, **_: "the first")
    return script


def test_a_prompt_is_a_message_unless_it_is_raw(command: Command, scripted: Scripted) -> None:
    assert command("run", NAME, "Who?").out == "It is chat.\n"
    assert command("run", NAME, "Who?", "--raw").out == "It is stream.\n"
    assert command("run", NAME, "Who?", "--system", "Be brief.", "--chat").code == 0
    assert scripted.calls == [
        ("chat", [("user", "Who?")], {}),
        ("stream", "Who?", {}),
        ("chat", [("system", "Be brief."), ("user", "Who?")], {}),
    ]


def test_settings_go_through_under_their_python_names(command: Command, scripted: Scripted) -> None:
    flags = (
        "--max-tokens 9 --temperature 0.5 --top-k 4 --top-p 0.9 --min-p 0.1 --repetition-penalty 1.1 --seed 3"
    )
    assert command("run", NAME, *flags.split(), "--stop", "\n", "--stop", "END", "Who?").code == 0
    assert scripted.calls[0][2] == {
        "max_tokens": 9, "temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1,
        "seed": 3, "stop": ["\n", "END"],
    }  # fmt: skip


def test_json_has_what_came_and_why_it_ended(command: Command, scripted: Scripted) -> None:
    lines = command("run", NAME, "--json", "Who?", "What?").out.splitlines()
    assert [json.loads(line)["prompt"] for line in lines] == ["Who?", "What?"]
    assert json.loads(lines[0]) == {
        "file": "Who?", "model": NAME, "prompt": "Who?", "text": "It is chat.", "tokens": [0, 1, 2, 3],
        "finish": "stop", "prompt_tokens": 3, "log_probability": -1.25,
    }  # fmt: skip


def test_standard_input_is_one_prompt_and_a_cut_is_said(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.finish = "length"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Wé\n\nbegin\n".encode())))
    outcome = command("run", NAME, "--raw", "-")
    assert outcome.out == "It is stream.\n"
    assert "nest: cut after 4 tokens; --max-tokens allows another number." in outcome.err
    assert scripted.calls[0][:2] == ("stream", "Wé\n\nbegin")


def test_standard_input_without_a_prompt_is_refused(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" \n")))
    outcome = command("run", NAME, "-")
    assert (outcome.code, outcome.out) == (1, "")
    assert "Standard input is empty: give it the text of a prompt" in outcome.err
    assert scripted.calls == []


def test_a_prompt_that_is_refused_among_several_is_named_by_its_place(
    command: Command, scripted: Scripted
) -> None:
    outcome = command("run", NAME, "--json", "Hi", "too long")
    assert outcome.code == 1
    assert outcome.err.endswith(
        "nest: error: Input 2 of 2: The prompt has 9 tokens, and the model holds 8.\n"
    )


def test_the_sample_is_run_where_nothing_is_given(command: Command, scripted: Scripted) -> None:
    outcome = command("run", NAME)
    assert outcome.out.startswith(
        f"What is the capital of France?  It is chat.\nexpected{' ' * 24}The capital of France is Paris.\n\n"
    )
    # As many tokens as the sample was measured with, where nobody asks for another number.
    assert [settings["max_tokens"] for _, _, settings in scripted.calls] == [
        s.max_tokens for s in find(NAME).samples
    ]


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("run", NAME, "x", "--temperature", "-1"), "temperature=-1.0: expected a number from 0", 1),
        (("run", NAME, "x", "--top-k", "many"), "Argument --top-k: invalid int value: 'many'", 2),
        (("run", NAME, "x", "--raw", "--system", "y"), "--system is a message of a chat", 1),
        (("run", NAME, "x", "--raw", "--chat"), "not allowed with argument", 2),
        (("run", NAME, "x", "--language", "en"), "--language is for transcription", 2),
        (("chat", "whisper-tiny"), "'whisper-tiny' has no task 'text-generation'; it has transcription", 1),
        (("chat", NAME, "--min-p", "2"), "min_p=2.0: expected a share from 0 to 1", 1),
    ],
)
def test_what_cannot_work_is_refused_before_a_model_is_loaded(
    arguments: tuple[str, ...], words: str, code: int, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("nest.cli._run", "nest.cli._chat"):
        monkeypatch.setattr(f"{module}.pipeline", None)
        monkeypatch.setattr(f"{module}.announce_fetch", None)
    outcome = command(*arguments)
    assert outcome.code == code
    assert words in outcome.err


def talk(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    said = iter(lines)

    def read(prompt: str) -> str:
        print(prompt, end="")
        try:
            return next(said)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)


def test_a_conversation_is_remembered_until_it_begins_anew(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(monkeypatch, "One", "  ", "Two", "/new", "Three")
    outcome = command("chat", NAME, "--system", "Be brief.", "--seed", "2", "--backend", "torch")
    assert outcome.code == 0
    assert outcome.out == "> It is chat.\n> > It is chat.\n> > It is chat.\n> \n"
    assert (
        "SmolLM2 135M Instruct on torch, plan exact. /new begins anew, Ctrl-C stops an answer, Ctrl-D ends."
        in outcome.err
    )
    first, answer = ("system", "Be brief."), ("assistant", "It is chat.")
    assert [call[1] for call in scripted.calls] == [
        [first, ("user", "One")],
        [first, ("user", "One"), answer, ("user", "Two")],
        [first, ("user", "Three")],
    ]
    assert scripted.calls[0][2] == {"seed": 2}


def test_an_answer_that_is_stopped_counts_as_far_as_it_came(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.broken_after = 2
    talk(monkeypatch, "One", "Two")
    assert command("chat", NAME).out == "> It is \n> It is \n> \n"
    assert scripted.calls[1][1] == [("user", "One"), ("assistant", "It is "), ("user", "Two")]


def test_a_message_that_is_refused_is_forgotten(
    command: Command, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(monkeypatch, "too long", "Two")
    outcome = command("chat", NAME)
    assert "nest: error: The prompt has 9 tokens, and the model holds 8. /new begins anew." in outcome.err
    assert scripted.calls[1][1] == [("user", "Two")]
