"""The commands and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

import nest
from nest._suggest import did_you_mean
from nest.cli import (
    _adopt_options,
    _bench_options,
    _chat_options,
    _eval_options,
    _export_options,
    _run_options,
    _source_options,
    _transcribe_options,
    _verify_options,
)
from nest.cli._shared_options import NAME, at_least, generics, offline, plan, trust

_EPILOG = """\
examples:
  nest transcribe talk.mp4 -f srt       subtitles of a video
  nest run whisper-tiny.en talk.mp3     write down what a recording says
  nest run whisper-tiny.en              try the model on its own sample
  nest chat smollm2-135m-instruct       talk with a model
  nest list                             what the zoo has
  nest show whisper-tiny.en             what a model is, takes and gives
"""


class Parser(argparse.ArgumentParser):
    """argparse in nest's words: a wrong command or option is answered by the nearest right one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    rewrite: Callable[[list[str]], list[str]] | None = None
    """Turns another spelling of a command's arguments into its own."""

    elsewhere: Mapping[str, str] = MappingProxyType({})
    """Options that other programs of the kind have, and what to do instead: a sentence."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self.rewrite is not None and args is not None:
            try:
                args = self.rewrite(list(args))
            except argparse.ArgumentTypeError as error:
                self.error(str(error))
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith((".", "?")) else "."
        self.exit(2, f"nest: error: {message[0].upper()}{message[1:]}{end} See: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        kind = (
            action.dest
            if action.dest in ("command", "action")
            else f"value for {'/'.join(action.option_strings)}"
        )
        raise argparse.ArgumentError(None, _unknown(kind, str(value), action.choices))

    def options(self) -> list[str]:
        """The long options."""
        return [name for name in self._option_string_actions if name.startswith("--")]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        SystemExit: with code 0 after `--help` and `--version`, with code 2 where the usage is wrong.
    """
    top, commands = _build()
    args, rest = top.parse_known_args(argv)
    if args.command is None:
        top.error("A command is needed: " + ", ".join(commands))
    for argument in rest:
        # argparse takes no more positional arguments once an option has come: `run NAME --json FILE`.
        more = getattr(args, getattr(args, "more", ""), None)
        if more is None or (argument.startswith("-") and argument != "-"):
            _refuse(commands[args.command], argument)
        more.append(argument)
    return args


def _refuse(parser: Parser, argument: str) -> NoReturn:
    name = argument.partition("=")[0]
    if name in parser.elsewhere:
        parser.error(f"There is no option '{name}'. {parser.elsewhere[name]}")
    if name.startswith("-"):
        parser.error(_unknown("option", name, parser.options()))
    parser.error(f"'{argument}' is one argument more than '{parser.prog}' takes")


def _unknown(kind: str, value: str, known: Iterable[Any]) -> str:
    names = [str(name) for name in known]
    return f"There is no {kind} '{value}'." + (did_you_mean(value, names) or f" Known: {', '.join(names)}.")


def _build() -> tuple[Parser, dict[str, Parser]]:
    top = Parser(prog="nest", description="Models, defined once and run anywhere.", epilog=_EPILOG)
    top.add_argument("-v", "--version", action="version", version=f"nest {nest.__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    under = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    commands: dict[str, Parser] = {}
    for name, (summary, add) in _COMMANDS.items():
        command = under.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        add(command)
        # Without a default of its own, the option counts before the command and after it.
        command.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=_DEBUG)
        command.set_defaults(module=f"nest.cli._{name}")
        commands[name] = command
    return top, commands


def _list(command: Parser) -> None:
    command.add_argument("--task", metavar="KIND", help="only entries for this task, such as 'transcription'")
    command.add_argument("--family", metavar="NAME", help="only entries of this family, such as 'whisper'")
    command.add_argument(
        "--tag",
        metavar="TAG",
        action="append",
        default=[],
        help="only entries with this tag; may be repeated",
    )
    command.add_argument(
        "--max-size", metavar="SIZE", help="only entries whose files take at most so much, such as 500MB"
    )
    command.add_argument(
        "--licence", "--license", metavar="NAME", help="only entries of this licence, such as 'MIT'"
    )
    command.add_argument(
        "--backend", metavar="NAME", help="only entries that this backend can run here, such as 'torch'"
    )
    command.add_argument("--json", action="store_true", help="write JSON")


def _show(command: Parser) -> None:
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument("--json", action="store_true", help="write JSON")
    trust(command)


def _transcribe(command: Parser) -> None:
    _transcribe_options.transcribe(command)
    command.rewrite = _transcribe_options.spelled
    command.elsewhere = _transcribe_options.ELSEWHERE


def _check(command: Parser) -> None:
    _entries(command)
    command.add_argument(
        "--require-headers",
        action="store_true",
        help="accept the checkpoint's own header only, no committed list of its tensors",
    )
    command.add_argument(
        "--write-tensors",
        action="store_true",
        help="make the entry's tensors.json anew from the checkpoint's header",
    )
    offline(command)
    trust(command)


def _entries(command: Parser) -> None:
    """The entries that a report is of."""
    command.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help=f"{NAME}; if none, this folder's entry"
    )
    command.set_defaults(more="names")
    command.add_argument("--all", action="store_true", help="every entry of the zoo and of NEST_ZOO")
    command.add_argument("--json", action="store_true", help="write JSON")


def _inspect(command: Parser) -> None:
    command.add_argument("name", metavar="NAME", help=NAME)
    generics(command)
    what = command.add_mutually_exclusive_group()
    what.add_argument("--program", action="store_true", help="print the typed program")
    what.add_argument(
        "--source", metavar="BACKEND", choices=("torch",), help="print the generated source: torch"
    )
    what.add_argument("--json", action="store_true", help="write JSON")
    trust(command)


def _memory(command: Parser) -> None:
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument("--backend", choices=("torch", "jax", "nnx", "onnx"), default="torch")
    plan(command)
    command.add_argument(
        "--dtype", choices=("f32", "f16", "bf16"), help="of the weights; the entry's if left out"
    )
    command.add_argument("--batch", type=at_least(1), default=1, metavar="N", help="rows; 1 if left out")
    command.add_argument(
        "--context",
        "--capacity",
        type=at_least(1),
        metavar="N",
        help="slots of the caches, and positions of a call; what the definition admits if left out",
    )
    command.add_argument(
        "--limit",
        metavar="SIZE",
        help="say the largest batch, and the longest context, that fit into so much, such as 24GiB",
    )
    generics(command)
    command.add_argument("--json", action="store_true", help="write JSON")
    trust(command)


def _prepare(command: Parser) -> None:
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "--backend",
        metavar="NAME",
        help="what will compute: onnx, torch, jax or nnx; the first of onnx, torch, jax here if left out",
    )
    command.add_argument("--kind", metavar="TASK", help="which of the model's tasks, such as 'fill-mask'")
    command.set_defaults(inputs=[])
    plan(command)
    offline(command)
    trust(command)
    command.add_argument("--json", action="store_true", help="write JSON")


_DEBUG = "show the traceback of an error"
_COMMANDS = {
    "run": ("do the whole job of a model, such as speech to text", _run_options.run),
    "transcribe": ("write down what recordings and videos say, as text or subtitles", _transcribe),
    "chat": ("talk with a model that has a chat template", _chat_options.chat),
    "adopt": (
        "recognise a checkpoint that no entry lists, and bind it to a definition",
        _adopt_options.adopt,
    ),
    "new": ("make the folder of a new entry", _adopt_options.new),
    "bind": ("propose bindings from names and shapes", _adopt_options.bind),
    "pull": ("fetch and verify the files of entries", _source_options.pull),
    "list": ("list the entries of the zoo", _list),
    "show": ("show what an entry is, takes and gives", _show),
    "inspect": (
        "print the entries, generics and blocks of a definition, its program or its source",
        _inspect,
    ),
    "memory": ("say how much memory a model needs, without its weights", _memory),
    "prepare": ("fetch, compile and keep all that a first request would wait for", _prepare),
    "check": ("check that an entry is valid, elaborates and fits its checkpoint", _check),
    "lint": ("check that an entry's folder is as a zoo wants it", _entries),
    "verify": ("measure an entry on every backend against the f64 oracle", _verify_options.verify),
    "bench": ("measure how fast an entry is, beside the reference library", _bench_options.bench),
    "eval": (
        "count what a transcriber gets wrong of recordings with transcripts, and how long it takes",
        _eval_options.evaluation,
    ),
    "diff": ("name the first block whose result on a backend is wrong", _verify_options.diff),
    "export": ("write a model for programs that know nothing of nest", _export_options.export),
    "eject": ("write a model as one file of PyTorch or Flax source", _export_options.eject),
    "cache": ("list, verify and delete what is in the caches", _source_options.cache),
    "catalog": ("write the pages of the catalog: one for each entry, and the index", _source_options.catalog),
    "env": ("show versions, devices, paths, rules and clashes of this machine", _source_options.env),
}
