"""What the command answers to wrong usage, and to being asked for help."""

from __future__ import annotations

import pytest

import nest

from .conftest import Command

_NAMES = (
    "run transcribe chat adopt new bind pull list show inspect memory prepare check lint verify bench eval diff "
    "export eject cache catalog env"
)
COMMANDS = ", ".join(_NAMES.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            f"A command is needed: {COMMANDS}. See: nest --help",
        ),
        (["rnu"], "There is no command 'rnu'. Did you mean 'run'? See: nest --help"),
        (
            ["x"],
            f"There is no command 'x'. Known: {COMMANDS}. See: nest --help",
        ),
        (["run"], "The following arguments are required: NAME. See: nest run --help"),
        (
            ["run", "a", "b", "--jsno"],
            "There is no option '--jsno'. Did you mean '--json' or '--stop'? See: nest run --help",
        ),
        (["run", "a", "-x"], "There is no option '-x'. Known: --help, "),
        (["list", "a"], "'a' is one argument more than 'nest list' takes. See: nest list --help"),
        (["list", "--jso"], "There is no option '--jso'. Did you mean '--json'? See: nest list --help"),
        (
            ["run", "a", "--task", "translat"],
            "There is no value for --task 'translat'. Did you mean 'translate'? See: nest run --help",
        ),
        (
            ["inspect", "a", "--source", "fortran"],
            "There is no value for --source 'fortran'. Known: torch. See: nest inspect --help",
        ),
        (
            ["inspect", "a", "--program", "--json"],
            "Argument --json: not allowed with argument --program. See: nest inspect --help",
        ),
        (["pull"], "The following arguments are required: NAME. See: nest pull --help"),
        (["pull", "a", "--all"], "--all and NAME exclude each other. See: nest pull --help"),
        (["bench", "a", "--all"], "--all and NAME exclude each other. See: nest bench --help"),
        *(
            (
                [*arguments.split(), came],
                f"Argument {arguments.split()[-1]}: a whole number, {least} or more, is expected; came '{came}'. See: ",
            )
            for arguments, least, came in (
                ("bench a --rounds", 1, "0"),
                ("bench a --batch", 1, "0"),
                ("bench a --threads", 1, "-1"),
                ("bench a --rounds", 1, "many"),
                ("verify a --batch", 1, "0"),
                ("verify a --batch", 1, "-1"),
                ("verify a --seed", 0, "-1"),
            )
        ),
        (["cache"], "The following arguments are required: ACTION. See: nest cache --help"),
        (
            ["cache", "list"],
            "There is no action 'list'. Did you mean 'ls'? See: nest cache --help",
        ),
        (["cache", "rm"], "nest cache rm takes the NAME of an entry. See: nest cache --help"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(command: Command, arguments: list[str], message: str) -> None:
    outcome = command(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"nest: error: {message}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_the_version(command: Command, flag: str) -> None:
    assert command(flag) == command(flag)
    assert command(flag).out == f"nest {nest.__version__}\n"
    assert command(flag).code == 0


@pytest.mark.parametrize("name", COMMANDS.split(", "))
def test_help_names_every_command_and_option(command: Command, name: str) -> None:
    assert f"\n    {name}" in command("--help").out
    outcome = command(name, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"usage: nest {name} ")
    assert "--debug" in outcome.out


def test_options_may_stand_anywhere(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], bool, bool]] = []
    monkeypatch.setattr(
        "nest.cli._run.main", lambda args: seen.append((args.inputs, args.json, args.debug)) or 0
    )
    assert command("run", "a", "1.wav", "2.wav", "--json", "--debug").code == 0
    assert command("run", "--json", "a", "1.wav", "--debug", "2.wav").code == 0
    assert command("--debug", "run", "a", "--json", "1.wav", "2.wav").code == 0
    assert command("run", "a", "--json", "--debug", "1.wav", "2.wav").code == 0
    assert seen == [(["1.wav", "2.wav"], True, True)] * 4
    assert command("run", "a", "--json", "-").code == 0
    assert seen[-1] == (["-"], True, False)


def test_python_m_nest_is_the_command(process: Command) -> None:
    outcome = process("rnu")
    assert outcome.code == 2
    assert outcome.err == "nest: error: There is no command 'rnu'. Did you mean 'run'? See: nest --help\n"
    assert process("--version").out == f"nest {nest.__version__}\n"


@pytest.mark.parametrize("given", ["int3", "encoder=int3", "encoder=int8,int4", "=int8", ""])
def test_what_weights_are_quantized_to_is_named(command: Command, given: str) -> None:
    outcome = command("run", "a", "--quantize", given)
    assert outcome.code == 2
    assert "int8 or int4, or PART=int8,... is expected" in outcome.err
