"""Messages to a prompt, by a checkpoint's own chat template.

A template comes with a checkpoint, so it is somebody else's program: it runs in Jinja's sandbox, sees copies of the
messages as plain data, and has no way to files or to Python's inside. Rendering follows the reference library, whose
environment the templates are written for: blocks take their own line with them, `break` and `continue` work,
`raise_exception(text)` refuses messages, `strftime_now(form)` is the time, `tojson` escapes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from nest._optional import need
from nest._suggest import did_you_mean
from nest.errors import InputError, WeightsError

__all__ = ["ROLES", "ChatTemplate", "Message", "checked_messages", "read_template"]

Message = Mapping[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")
"""Who may speak; a template may refuse some, or their order."""


class ChatTemplate:
    """A checkpoint's template and the tokens that it names, such as `bos_token`."""

    def __init__(
        self, text: str, tokens: Mapping[str, str] | None = None, *, name: str = "the model"
    ) -> None:
        """Take a template.

        Args:
            text: Jinja.
            tokens: variables of every rendering.
            name: what messages call the model.
        """
        self.text = text
        self.tokens = dict(tokens or {})
        self.name = name

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """Return the prompt that `messages` are.

        Args:
            messages: each with a `role` and a `content`; see `checked_messages`.
            add_generation_prompt: end with what an answer of the model begins after.
            tools: JSON schemas of functions, for templates that show them.
            **variables: others that the template knows, such as `enable_thinking`.

        Raises:
            InputError: the template refuses the messages, or they lack what it needs.
            WeightsError: the template itself is broken.
            MissingDependencyError: `jinja2` is not installed (extra `text`).
        """
        given = _plain(checked_messages(messages))
        context = {**self.tokens, **_plain(variables), "messages": given, "documents": None}
        context |= {
            "tools": _plain(tools) if tools else None,
            "add_generation_prompt": add_generation_prompt,
        }
        template = self._compiled  # which says it where jinja2 is not installed
        from jinja2.exceptions import TemplateError

        try:
            text: str = template.render(context)
        except TemplateError as error:
            raise self._refused(given, str(error)) from error
        except (TypeError, KeyError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            raise self._refused(given, f"{type(error).__name__}: {error}") from error
        return text

    @cached_property
    def _compiled(self) -> Any:
        need("jinja2", extra="text", purpose="render a chat template")
        from jinja2.exceptions import TemplateSyntaxError

        try:
            return _environment().from_string(self.text)
        except TemplateSyntaxError as error:
            raise WeightsError(
                f"The chat template of {self.name} is no Jinja: {error.message} (line {error.lineno}). Fetch its file "
                "again, or give the prompt as text."
            ) from error

    def _refused(self, messages: Sequence[Message], reason: str) -> InputError:
        roles = ", ".join(message["role"] for message in messages)
        return InputError(
            f"The chat template of {self.name} does not take these messages: {reason.rstrip('.')}. They came in the "
            f"order {roles}."
        )


def checked_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return copies of `messages`: one or more mappings, each with a known `role` and a `content` of text.

    `content` may be a list of parts with a `type`, as templates of several media take them; None goes with
    `tool_calls`. Other keys are the template's business.

    Raises:
        InputError: they are not so; the message is named by its index.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence) or not messages:
        raise InputError(
            f"A chat is a list of one or more messages, as [{{'role': 'user', 'content': 'Hello'}}]; came "
            f"{messages!r:.80}."
        )
    return [_checked(message, index) for index, message in enumerate(messages)]


def _checked(message: Any, index: int) -> dict[str, Any]:
    if not isinstance(message, Mapping) or "role" not in message:
        raise InputError(f"Message {index} is no mapping with 'role' and 'content'; came {message!r:.80}.")
    role, content = message["role"], message.get("content")
    if role not in ROLES:
        hint = did_you_mean(role, ROLES) if isinstance(role, str) else ""
        raise InputError(
            f"Message {index} has the role {role!r:.40}; expected one of {', '.join(ROLES)}.{hint}"
        )
    parts = isinstance(content, list) and all(isinstance(p, Mapping) and "type" in p for p in content)
    if not (isinstance(content, str) or parts or (content is None and message.get("tool_calls"))):
        raise InputError(f"Message {index} ({role}) has no text as its 'content'; came {content!r:.80}.")
    return dict(message)


def read_template(path: Path, tokens: Mapping[str, str], *, name: str, tools: bool = False) -> ChatTemplate:
    """Read the template of a file: JSON with the key `chat_template`, or the template itself.

    Args:
        path: `tokenizer_config.json`, or a text in Jinja.
        tokens: variables, in place of those that the JSON has (`bos_token` and its like).
        name: what messages call the model.
        tools: of several templates, take the one that shows tools.

    Raises:
        WeightsError: the file has no template.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tables = json.loads(text) if path.suffix == ".json" else {"chat_template": text}
        template = _chosen(tables["chat_template"], tools)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(
            f"'{path}' has no chat template ({type(error).__name__}: {error}). Expected Jinja, or JSON with the key "
            "'chat_template'; give the prompt as text."
        ) from error
    own = {key: _spelled(value) for key, value in tables.items() if key.endswith("_token")}
    return ChatTemplate(template, {k: v for k, v in own.items() if v is not None} | dict(tokens), name=name)


def _chosen(template: Any, tools: bool) -> str:
    if isinstance(template, list):
        by_name = {item["name"]: item["template"] for item in template}
        template = by_name.get("tool_use" if tools else "default", by_name["default"])
    if not isinstance(template, str):
        raise TypeError(f"chat_template is a {type(template).__name__}")
    return template


def _spelled(value: Any) -> str | None:
    """A token as `tokenizer_config.json` has it: its text, or a table with its text."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def _plain(value: Any) -> Any:
    """A copy out of plain types alone, so that a template gets no object with methods of its own."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    return f"<{type(value).__name__}>"


def _environment() -> Any:
    from nest.tasks._jinja import environment

    return environment(datetime.now)
