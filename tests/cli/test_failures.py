"""What a person sees when something goes wrong, and the exit code that a script sees."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nest.errors import InputError, MissingDependencyError

from .conftest import ROOT, Command

COMMAND = "nest.cli._list.main"


def raising(error: BaseException) -> Callable[[object], int]:
    def main(_: object) -> int:
        raise error

    return main


def test_an_expected_error_is_one_paragraph_and_code_1(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COMMAND, raising(InputError("The file 'x' is not audio. Give another.")))
    outcome = command("list")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "nest: error: The file 'x' is not audio. Give another.\n"


def test_a_missing_package_is_an_expected_error(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        COMMAND, raising(MissingDependencyError("Install it with: pip install 'nest-zoo[torch]'"))
    )
    assert command("list").err == "nest: error: Install it with: pip install 'nest-zoo[torch]'\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("x"), "KeyError: 'x'. Run"),
        (ValueError(), "ValueError. Run"),
        (RuntimeError("It ended."), "RuntimeError: It ended. Run"),
    ],
)
def test_an_unexpected_error_asks_for_debug(
    command: Command, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr(COMMAND, raising(error))
    outcome = command("list")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"nest: error: This was not expected: {said} the command again with --debug to see where it came from; a "
        f"report needs those lines.\n"
    )


@pytest.mark.parametrize("arguments", [("--debug", "list"), ("list", "--debug")])
@pytest.mark.parametrize("error", [InputError("Not audio."), KeyError("x")])
def test_debug_shows_the_traceback_before_the_error(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], error: Exception
) -> None:
    monkeypatch.setattr(COMMAND, raising(error))
    outcome = command(*arguments)
    assert outcome.code == 1
    assert outcome.err.startswith("Traceback (most recent call last):\n")
    assert "in raising" not in outcome.err.splitlines()[-1]
    assert outcome.err.splitlines()[-1].startswith("nest: error: ")


def test_another_package_in_the_folder_is_named_as_a_cause(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COMMAND, raising(AttributeError("no attribute 'entries'")))
    monkeypatch.setattr("nest._env.overlapping", lambda: ["nest-simulator 3.8"])
    assert "nest-simulator 3.8 may have replaced files of the package 'nest'." in command("list").err


def test_an_interrupt_is_quiet_and_code_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMMAND, raising(KeyboardInterrupt()))
    outcome = command("list")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of POSIX")
def test_a_reader_that_goes_away_is_quiet() -> None:
    writer = subprocess.Popen(
        # Not preexec_fn: other tests of this process have threads, and forking them is refused.
        ["/bin/sh", "-c", "trap '' PIPE; exec \"$0\" -m nest inspect whisper-tiny.en --json", sys.executable],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    with writer.stderr as stderr:
        assert stderr.read() == b""
    assert writer.wait() == 141


def test_a_narrow_code_page_is_no_reason_to_stop(process: Command, tmp_path: Path) -> None:
    script = "from nest.cli import _list; _list.main = lambda args: print('na\\u00efve \\u4f60') or 0\n"
    (tmp_path / "narrow.py").write_text(
        f"{script}import nest.cli; raise SystemExit(nest.cli.main(['list']))\n"
    )
    outcome = process(
        module="narrow",
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONIOENCODING": "ascii"},
    )
    assert (outcome.code, outcome.out, outcome.err) == (0, "na\\xefve \\u4f60\n", "")


def test_a_command_that_ends_the_program_is_an_error(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COMMAND, raising(SystemExit(4)))
    outcome = command("list")
    assert outcome.code == 1
    assert outcome.err.startswith("nest: error: This was not expected: SystemExit: 4. Run")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("list >&-", 0, "", ""),
        ("show nonesuch 2>&-", 1, "", ""),
        (
            "run whisper-tiny.en - <&-",
            1,
            "",
            "nest: error: '-' is standard input, which whoever started this has closed: give a FILE.\n",
        ),
    ],
)
def test_a_stream_that_is_closed(line: str, code: int, out: str, err: str) -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m nest {line}',
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_a_child_of_a_command_may_write_where_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "closed.py").write_text(
        "import subprocess\n"
        "from nest.cli import _list, main\n"
        "_list.main = lambda args: subprocess.run(['echo', 'x']).returncode\n"
        "raise SystemExit(main(['list']))\n"
    )
    line = f'"{sys.executable}" "{tmp_path / "closed.py"}" >&-'
    done = subprocess.run(line, shell=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the platform has no full device")
@pytest.mark.parametrize("command_line", ["list", "inspect whisper-tiny.en --json"])
def test_a_disk_that_is_full_is_said(command_line: str) -> None:
    line = f'"{sys.executable}" -m nest {command_line} >/dev/full'
    done = subprocess.run(line, shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "nest: error: The output cannot be written: No space left on device.\n"
    assert done.returncode == 1


def test_an_interrupt_before_the_command_is_quiet_too(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nest.cli._main.parse", interrupted)
    outcome = command("list")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "\n")


def test_what_a_terminal_would_obey_is_shown(command: Command, tmp_path: Path) -> None:
    (tmp_path / "nest.toml").write_text(
        '"\\u001b[2J" = 1\n[model]\nname = "\\u001b]0;title\\u0007"\n', "utf-8"
    )
    outcome = command("show", str(tmp_path))
    assert outcome.code == 1
    assert "\\x1b[2J" in outcome.err
    assert all(c.isprintable() or c == "\n" for c in outcome.err)
