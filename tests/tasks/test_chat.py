"""Chat templates in the sandbox, beside the reference library's rendering."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nest.errors import InputError, MissingDependencyError, WeightsError
from nest.tasks.chat import ChatTemplate, checked_messages, read_template

CHAT = [
    {"role": "system", "content": "Be brief.\n"},
    {"role": "user", "content": "What is <b>1 & 1</b>?  "},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Certain? 🦊"},
]
TOOLS = [
    {
        "type": "function",
        "function": {"name": "add", "description": "Adds <a> & é", "parameters": {"b": [1, None]}},
    }
]

# Written for these tests in the ways that published templates are written.
TEMPLATES = {
    "turns": "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ 'S\n' }}{% endif %}"
    "{{ '<|' + m['role'] + '|>\n' + m['content'] + eos_token + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}",
    "own lines": """
{%- if messages[0].role == 'system' %}
    {%- set system, rest = messages[0].content, messages[1:] %}
{%- else %}
    {%- set system, rest = '', messages %}
{%- endif %}
{{- bos_token }}
{%- set ns = namespace(count=0, names=[]) %}
{% for message in rest %}
    {%- if (message['role'] == 'user') != (ns.count % 2 == 0) %}
        {{- raise_exception('Roles must alternate user/assistant.') }}
    {%- endif %}
    {%- set ns.count = ns.count + 1 %}
    {% if message['role'] == 'user' %}
 [INST] {{ (system + message.content) if loop.last and system else message.content | trim }} [/INST]
    {% else %}
 {{ message['content'] }}{{ eos_token }}
    {% endif %}
{% endfor %}
""",
    "tools": """{%- if tools is defined and tools is not none %}
{{- "# Tools\\n" }}{% for tool in tools %}{{ tool | tojson }}
{{ tool.function | tojson(indent=2) }}{% endfor %}
{%- else %}none
{% endif %}
{%- if documents %}documents{% endif %}
{%- if not date is defined %}{% set date = '26 Jul' %}{% endif %}{{ date }}
{%- for m in messages %}
    {%- if m.tool_calls is defined and m.tool_calls %}calls{% continue %}{% endif %}
    {%- if loop.index0 > 2 %}{% break %}{% endif %}
    {%- generation %}{{ m.content.split('?')[0] | upper }}{% endgeneration %}
{%- endfor %}
{%- macro say(x) %}({{ x }}){% endmacro %}{{ say(messages | length) }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}""",
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.reference
@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("prompt", [False, True])
def test_a_template_renders_as_in_the_reference_library(name: str, prompt: bool) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    template = ChatTemplate(TEMPLATES[name], TOKENS)
    for chat in (CHAT, CHAT[1:], CHAT[1:2]):
        for more in ({}, {"tools": TOOLS}, {"enable_thinking": False, "date": "1 May"}):
            (want,), _ = render_jinja_template(
                [chat], chat_template=TEMPLATES[name], add_generation_prompt=prompt, **TOKENS, **more
            )
            assert template.render(chat, add_generation_prompt=prompt, **more) == want


def test_without_jinja_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "jinja2"] or ["jinja2"]:
        monkeypatch.setitem(sys.modules, name, None)
    template = ChatTemplate("{{ messages[0].content }}", name="some-model")
    with pytest.raises(MissingDependencyError, match=r"nest-zoo\[text\]"):
        template.render([{"role": "user", "content": "hi"}])


def test_the_time_is_told_as_asked() -> None:
    from datetime import datetime

    from nest.tasks._jinja import environment

    text = environment(lambda: datetime(2024, 7, 26)).from_string("{{ strftime_now('%d %b %Y') }}").render()
    assert text == "26 Jul 2024"
    assert ChatTemplate("{{ strftime_now('%Y') }}").render(CHAT) >= "2024"


def test_what_a_template_refuses_is_told_with_the_order_of_roles() -> None:
    with pytest.raises(
        InputError,
        match=r"The chat template of m does not take these messages: Roles must alternate user/assistant\. They came "
        r"in the order user, user\.",
    ):
        ChatTemplate(TEMPLATES["own lines"], TOKENS, name="m").render([CHAT[1], CHAT[3]])
    with pytest.raises(
        InputError, match="does not take these messages: 'dict object' has no attribute 'name'"
    ):
        ChatTemplate("{{ messages[0].name.first }}").render(CHAT)
    with pytest.raises(InputError, match="does not take these messages: TypeError: "):
        ChatTemplate("{{ messages[0].content + 1 }}").render(CHAT)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], r"A chat is a list of one or more messages, as \[\{'role': 'user'"),
        ("Hello", "A chat is a list of one or more messages"),
        ({"role": "user", "content": "x"}, "A chat is a list of one or more messages"),
        (["Hello"], "Message 0 is no mapping with 'role' and 'content'; came 'Hello'"),
        ([CHAT[0], {"content": "x"}], "Message 1 is no mapping with 'role'"),
        (
            [{"role": "asistant", "content": "x"}],
            r"Message 0 has the role 'asistant'; .*Did you mean 'assistant'\?",
        ),
        ([{"role": 3, "content": "x"}], "Message 0 has the role 3; expected one of system, "),
        ([{"role": "user"}], r"Message 0 \(user\) has no text as its 'content'; came None"),
        (
            [{"role": "user", "content": ["x"]}],
            r"Message 0 \(user\) has no text as its 'content'; came \['x'\]",
        ),
    ],
)
def test_messages_that_are_none_are_refused(messages: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ChatTemplate(TEMPLATES["turns"], TOKENS).render(messages)


def test_parts_and_calls_go_through_to_the_template() -> None:
    parts = [{"type": "text", "text": "x"}]
    calls = {"role": "assistant", "content": None, "tool_calls": [{"name": "add"}]}
    assert checked_messages([{"role": "user", "content": parts}, calls])[1] == calls
    text = ChatTemplate("{{ messages[0].content[0].text }}").render([{"role": "user", "content": parts}])
    assert text == "x"


@pytest.mark.parametrize(
    "text",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% set ns = namespace(_x=1) %}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}",
        "{% include '/etc/passwd' %}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
    ],
)
def test_a_template_reaches_nothing_but_its_data(text: str) -> None:
    """Refused; or rendered as an undefined value, which is nothing."""
    try:
        shown = ChatTemplate(text).render(CHAT)
    except InputError:
        return
    assert shown == ""


def test_objects_become_plain_data_first() -> None:
    class Loud(str):
        def shout(self) -> str:
            return "!"

    with pytest.raises(InputError, match="has no attribute 'shout'"):
        ChatTemplate("{{ messages[0].content.shout() }}").render([{"role": "user", "content": Loud("x")}])
    given = [{"role": "user", "content": "x", "image": object()}]
    assert ChatTemplate("{{ messages[0].image }}").render(given) == "<object>"
    assert given[0].keys() == {"role", "content", "image"}


def test_a_template_is_read_from_either_file(tmp_path: Path) -> None:
    config = tmp_path / "tokenizer_config.json"
    tables = {"chat_template": "{{ bos_token }}{{ eos_token }}", "bos_token": {"content": "<s>"}, "eos_token": "</s>",
              "pad_token": None}  # fmt: skip
    config.write_text(json.dumps(tables))
    assert read_template(config, {}, name="m").render(CHAT) == "<s></s>"
    assert read_template(config, {"eos_token": "<e>"}, name="m").render(CHAT) == "<s><e>"
    several = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    config.write_text(json.dumps({"chat_template": several}))
    assert read_template(config, {}, name="m").text == "d"
    assert read_template(config, {}, name="m", tools=True).text == "t"
    plain = tmp_path / "chat_template.jinja"
    plain.write_text("{{ bos_token }}")
    assert read_template(plain, {"bos_token": "b"}, name="m").render(CHAT) == "b"


@pytest.mark.parametrize(
    "content", [b"{}", b"[", b"\xff", b'{"chat_template": 3}', b'{"chat_template": [{"name": "x"}]}']
)
def test_a_file_without_a_template_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=r"tokenizer_config\.json' has no chat template"):
        read_template(path, {}, name="m")
    with pytest.raises(WeightsError, match=r"The chat template of m is no Jinja: .*\(line 2\)"):
        ChatTemplate("\n{% for %}", name="m").render(CHAT)
