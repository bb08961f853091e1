"""Text to text: a prompt or a chat in, what the model says next out, whole or as it is said."""

from __future__ import annotations

from collections.abc import Generator as Pieces
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, Literal, SupportsIndex, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.errors import InputError
from nest.tasks._sized_sessions import SizedSessions
from nest.tasks._streaming import Pace, Stream
from nest.tasks._text_rows import Generation, TextRow, TextRules, advance
from nest.tasks._writing import Writer
from nest.tasks.chat import ChatTemplate, Message
from nest.tasks.sampling import uniforms
from nest.tasks.text_tokens import DecoderTokenizer
from nest.tasks.wishes import Settings, Wishes, wishes_of

__all__ = ["Generator"]

_BATCH = 8


class Generator:
    """A text generator over one model's weights; threads may share it.

    Without a temperature the most likely token is taken every time, whatever a checkpoint's own configuration proposes:
    the same prompt gives the same text. What may be asked of a text is in `nest.tasks.wishes.Wishes`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: DecoderTokenizer,
        rules: TextRules,
        template: ChatTemplate | None = None,
        *,
        plan: str = "exact",
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.rules = rules
        self.template = template
        self.plan = plan
        self._sessions = SizedSessions(model, rules.positions, plan)

    @overload  # a text is a sequence of texts as well
    def __call__(self, prompt: str, **settings: Unpack[Settings]) -> Generation: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(
        self, prompt: Sequence[str], *, batch_size: int = ..., **settings: Unpack[Settings]
    ) -> list[Generation]: ...

    @timed("generate")
    def __call__(
        self, prompt: str | Sequence[str], *, batch_size: int = _BATCH, **settings: Unpack[Settings]
    ) -> Generation | list[Generation]:
        """Return how `prompt` goes on.

        Args:
            prompt: a text, or several. The same text comes of a prompt whatever others it stands beside, but for
                differences of rounding.
            batch_size: how many texts are written side by side.
            **settings: see `nest.tasks.wishes.Wishes`: max_tokens, temperature, top_k, top_p, min_p,
                repetition_penalty, seed, stop, stop_tokens.

        Raises:
            CallError: an argument that there is not.
            InputError: a value that means nothing; a prompt without a token, or one that leaves no room.
            NestError: the model returned NaN or infinite logits.
        """
        wishes = wishes_of(settings)
        if isinstance(prompt, str):
            return self._complete([self._ids(prompt)], wishes, 1)[0]
        if isinstance(prompt, bytes | Mapping) or not isinstance(prompt, Iterable):
            raise InputError(f"A prompt is a text, or several in a list; came {prompt!r:.80}.")
        return self._complete([self._ids(text) for text in prompt], wishes, batch_size)

    def stream(self, prompt: str, **settings: Unpack[Settings]) -> Stream:
        """Return how `prompt` goes on, piece by piece as it is said; arguments and errors as of a call."""
        return self._stream(self._ids(prompt), wishes_of(settings), start=False)

    @overload
    def chat(
        self,
        messages: str | Sequence[Message],
        *,
        stream: Literal[False] = ...,
        tools: Sequence[Mapping[str, Any]] | None = ...,
        variables: Mapping[str, Any] | None = ...,
        **settings: Unpack[Settings],
    ) -> Generation: ...

    @overload
    def chat(
        self,
        messages: str | Sequence[Message],
        *,
        stream: Literal[True],
        tools: Sequence[Mapping[str, Any]] | None = ...,
        variables: Mapping[str, Any] | None = ...,
        **settings: Unpack[Settings],
    ) -> Stream: ...

    def chat(
        self,
        messages: str | Sequence[Message],
        *,
        stream: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
        **settings: Unpack[Settings],
    ) -> Generation | Stream:
        """Return the model's answer to a conversation.

        Args:
            messages: each with `role` and `content`, the oldest first; or what the user says, as a text.
            stream: return the pieces as they are said.
            tools: JSON schemas of functions, for templates that show them.
            variables: others that the template knows, such as `{"enable_thinking": False}`.
            **settings: as of a call.

        Raises:
            InputError: the checkpoint has no chat template, or its template refuses the messages.
            Otherwise as of a call.
        """
        wishes = wishes_of(settings)
        ids = self.chat_tokens(messages, tools=tools, variables=variables)
        if stream:
            return self._stream(ids, wishes, start=True)
        return self._complete([ids], wishes, 1, start=True)[0]

    def chat_tokens(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Return the ids of the prompt that `chat` begins with.

        Control tokens that are spelled in a message, as `<|im_end|>`, count as such: whoever passes on what strangers
        write looks for them first.
        """
        if self.template is None:
            raise InputError(
                f"{self!r} has no chat template: it was not made for conversations. Call it with a text to go on with."
            )
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        text = self.template.render(messages, tools=tools, **_variables(variables))
        # What a checkpoint puts around every text is in the template.
        return self.tokenizer.encode(text, special=False)

    def _ids(self, prompt: Any) -> list[int]:
        if not isinstance(prompt, str):
            raise InputError(f"A prompt is a text; came {prompt!r:.80}.")
        return self.tokenizer.encode(prompt)

    def _row(self, ids: Sequence[int], wishes: Wishes, start: bool) -> TextRow:
        room = self.rules.positions - len(ids)
        if not ids:
            raise InputError("The prompt has no token to go on from: give it some text.")
        if room < 1:
            raise InputError(
                f"The prompt has {len(ids)} tokens, and the model holds {self.rules.positions} with what follows. "
                "Shorten the prompt."
            )
        limit = min(room, self.rules.max_tokens if wishes.max_tokens is None else wishes.max_tokens)
        ends = {*self.rules.ends, *wishes.stop_tokens}
        return TextRow(self.tokenizer.decoder(start=start), ends, wishes.stop, len(ids), limit)

    def _writer(
        self,
        session: Any,
        prompts: Sequence[Sequence[int]],
        wishes: Wishes,
        chance: NDArray[np.float32],
    ) -> Writer:
        return Writer(session, prompts, [*self.rules.ends, *wishes.stop_tokens], wishes, chance)

    def _complete(
        self, prompts: Sequence[Sequence[int]], wishes: Wishes, size: int, *, start: bool = False
    ) -> list[Generation]:
        if isinstance(size, bool) or not isinstance(size, SupportsIndex) or index(size) < 1:
            raise InputError(f"batch_size={size!r} is no integer from 1.")
        rows = [self._row(ids, wishes, start) for ids in prompts]
        if not rows:
            return []
        chance = _chance(wishes, max(row.limit for row in rows), len(rows))
        # Texts side by side wait for the longest prompt, so those of about one length stand together.
        order = sorted(range(len(rows)), key=lambda index: len(prompts[index]))
        for first in range(0, len(rows), size):
            chosen = order[first : first + size]
            self._together([rows[i] for i in chosen], [prompts[i] for i in chosen], wishes, chance[:, chosen])
        return [row.result() for row in rows]

    def _together(
        self,
        rows: list[TextRow],
        prompts: list[Sequence[int]],
        wishes: Wishes,
        chance: NDArray[np.float32],
    ) -> None:
        steps = max(row.limit for row in rows)
        need = max(len(ids) + row.limit for ids, row in zip(prompts, rows, strict=True))
        with self._sessions.lend(len(rows), need) as session:
            writer = self._writer(session, prompts, wishes, chance[:steps])
            while writer.running.any():
                advance(writer, rows)

    def _stream(self, ids: list[int], wishes: Wishes, *, start: bool) -> Stream:
        row = self._row(ids, wishes, start)
        return Stream(self._pieces(row, ids, wishes, _chance(wishes, row.limit, 1)), row)

    def _pieces(
        self, row: TextRow, ids: list[int], wishes: Wishes, chance: NDArray[np.float32]
    ) -> Pieces[str, None, None]:
        with self._sessions.lend(1, len(ids) + row.limit) as session:
            writer, pace = self._writer(session, [ids], wishes, chance), Pace()
            while row.finish is None:
                (text,) = advance(writer, [row], pace.count)
                pace.took()
                if text:
                    yield text
                    pace.resume()

    def __repr__(self) -> str:
        name = getattr(getattr(self.model, "program", None), "name", type(self.model).__name__)
        return (
            f"<{type(self).__name__} of {name} on {getattr(self.model, 'backend', 'a backend of its own')}>"
        )


def _variables(given: Any) -> dict[str, Any]:
    """What a caller's `variables` add to a template's own."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputError(f"variables= maps names of the template to values; came {given!r:.80}.")
    for name in ("self", "messages", "tools"):
        if name in given:
            raise InputError(
                f"variables= has '{name}', which is no name of its own: messages are the first argument, tools are "
                "tools=. Leave it out."
            )
    return dict(given)


def _chance(wishes: Wishes, steps: int, rows: int) -> NDArray[np.float32]:
    seed = wishes.seed
    if wishes.temperature > 0 or isinstance(seed, tuple):
        return uniforms(seed, steps, rows)
    return np.zeros((steps, rows), np.float32)
