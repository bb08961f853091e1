"""Run a command, and turn what goes wrong into one paragraph and an exit code."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper

from nest.cli._format import plain
from nest.cli._parser import parse
from nest.errors import NestError

FAILED, INTERRUPTED, PIPE_CLOSED = 1, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 1 an error that was explained, 2 wrong usage, 130 an interrupt, 141 a reader that went away.

    Args:
        argv: the arguments after the command's name; those of the process if left out.

    Raises:
        SystemExit: after `--help` and `--version`, and for wrong usage.
    """
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow code page is no reason to stop
    try:
        args = parse(argv)
    except KeyboardInterrupt:
        return _interrupted()
    return _guarded(args)


def _guarded(args: argparse.Namespace) -> int:
    try:
        code = _command(args.module)(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _silence_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return _interrupted()
    except NestError as error:
        return _fail(str(error), debug=args.debug)
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO):
            return _fail(_unexpected(error), debug=args.debug)
        _silence_stdout()
        return _fail(f"The output cannot be written: {error.strerror}.", debug=args.debug)
    except (Exception, SystemExit) as error:  # a command returns its code, and nothing else ends the program
        return _fail(_unexpected(error), debug=args.debug)


def _command(module: str) -> Callable[[argparse.Namespace], int]:
    # A command's own imports come with it, so that --help and wrong usage answer at once.
    command: Callable[[argparse.Namespace], int] = import_module(module).main
    return command


def _interrupted() -> int:
    sys.stderr.write("\n")
    return INTERRUPTED


def _fail(message: str, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"nest: error: {plain(message)}\n")
    return FAILED


def _unexpected(error: BaseException) -> str:
    from nest._env import overlapping

    what = f"{type(error).__name__}: {error}".removesuffix(": ").rstrip(".")
    others = overlapping()
    cause = f" {' and '.join(others)} may have replaced files of the package 'nest'." if others else ""
    return (
        f"This was not expected: {what}.{cause} Run the command again with --debug to see where it came from; a "
        f"report needs those lines."
    )


def _open_streams() -> None:
    """Open what whoever started this has closed: the next file would take its number, and have what is printed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _silence_stdout() -> None:
    """Let the interpreter's last flush go nowhere: whoever read the output has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
