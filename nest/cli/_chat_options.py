"""The options of `nest chat`."""

from __future__ import annotations

import argparse

from nest.cli._shared_options import NAME, offline, plan, stored, trust
from nest.cli._text_options import add_sampling

__all__ = ["chat"]


def chat(command: argparse.ArgumentParser) -> None:
    """Add them."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "--backend",
        metavar="NAME",
        help="what computes: onnx, torch, jax, nnx or reference; the first of onnx, torch, jax here if left out",
    )
    plan(command)
    stored(command)
    offline(command)
    trust(command)
    add_sampling(command.add_argument_group("text"))
