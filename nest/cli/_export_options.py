"""Options of the commands that write a model for others: `export` and `eject`."""

from __future__ import annotations

from argparse import ArgumentParser

from nest.cli._shared_options import NAME, generics, offline, trust

__all__ = ["eject", "export"]


def export(command: ArgumentParser) -> None:
    """Add what `nest export` takes."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument("directory", metavar="DIR", help="the folder to write, made where it is not there")
    command.add_argument(
        "--format",
        required=True,
        choices=("onnx", "stablehlo", "hf", "safetensors"),
        help="onnx: graphs and a runner that need no nest; stablehlo: entries for jax.export; hf: a folder that the "
        "reference library opens; safetensors: the weights under definition paths",
    )
    command.add_argument(
        "--opset", type=int, metavar="N", help="of onnx: the operator set, 17 to 24 (the default)"
    )
    command.add_argument(
        "--platform",
        dest="platforms",
        metavar="NAME",
        action="append",
        help="of stablehlo: cpu, cuda, rocm or tpu; may be repeated. cpu and cuda if left out",
    )
    command.add_argument(
        "--dtype", metavar="TYPE", choices=("f32", "f16", "bf16"), help="element type: f32, f16 or bf16"
    )
    command.add_argument("--weights", metavar="FILE", help="a safetensors file instead of the pinned weights")
    command.add_argument("--json", action="store_true", help="write JSON")
    offline(command)
    trust(command)


def eject(command: ArgumentParser) -> None:
    """Add what `nest eject` takes."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "--backend",
        default="torch",
        metavar="NAME",
        choices=("torch", "nnx"),
        help="torch (the default) or nnx",
    )
    command.add_argument(
        "-o", "--output", metavar="FILE", help="where to write it; standard output if left out"
    )
    generics(command)
    trust(command)
