"""Complete a Whisper tokenizer.json that was stripped of its timestamp tokens.

Engines with their own timestamp rules ship the file without the 1501 tokens `<|0.00|>` to `<|30.00|>`. The
published file has them, and states that byte fallback is off; so completed, it is restored to the byte.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nest.errors import WeightsError
from nest.weights._files import atomic

__all__ = ["complete_tokenizer"]

_TIMESTAMPS = 1501
_SECONDS = 0.02


def complete_tokenizer(source: Path, target: Path) -> None:
    """Write `source` with its timestamp tokens to `target`, in the layout of the published file.

    Raises:
        WeightsError: `source` is no such tokenizer.
    """
    try:
        data = json.loads(source.read_bytes())
        tokens, model = data["added_tokens"], data["model"]
        last = tokens[-1]
        if last["content"] != "<|notimestamps|>" or model["type"] != "BPE":
            raise ValueError(f"expected byte pairs and '<|notimestamps|>' last; came {last['content']!r}")
        tokens += [_timestamp(last["id"] + 1 + index, index) for index in range(_TIMESTAMPS)]
        data["model"] = _with_byte_fallback(model)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise WeightsError(f"{source} is not a Whisper tokenizer without timestamps: {error}.") from error
    with atomic(target) as file:
        file.write(json.dumps(data, indent=2, ensure_ascii=False).encode())


def _timestamp(token: int, index: int) -> dict[str, Any]:
    return {
        "id": token,
        "content": f"<|{index * _SECONDS:.2f}|>",
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": True,
        "special": False,
    }


def _with_byte_fallback(model: dict[str, Any]) -> dict[str, Any]:
    """`byte_fallback` after `fuse_unk`, where the published file has it."""
    completed: dict[str, Any] = {}
    for key, value in model.items():
        completed[key] = value
        if key == "fuse_unk":
            completed.setdefault("byte_fallback", False)
    return completed
