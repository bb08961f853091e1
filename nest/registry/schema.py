"""The JSON schema of `nest.toml`, for editors and other tools, made from the tables that nest itself reads.

    python -m nest.registry.schema      # writes schema.json beside this file

The schema says what each key may hold. Rules between tables (a tokenizer is one of the pinned files) are for
`nest check`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nest.registry.manifest import Manifest

__all__ = ["SCHEMA_FILE", "manifest_schema", "schema_text"]

SCHEMA_FILE = Path(__file__).with_name("schema.json")


def manifest_schema() -> dict[str, Any]:
    """The schema, JSON Schema draft 2020-12."""
    made = _tidy(Manifest.model_json_schema(), names=False)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "nest.toml",
        **{key: value for key, value in made.items() if key != "title"},
    }


def schema_text() -> str:
    """The published file's text."""
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidy(node: Any, *, names: bool) -> Any:
    """Without what TOML cannot say (null) and titles that repeat the key; `names`: the keys are names, not keywords."""
    if isinstance(node, list):
        return [_tidy(item, names=False) for item in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {key: _tidy(value, names=False) for key, value in node.items()}
    kept = {key: value for key, value in node.items() if key != "title" and (key, value) != ("default", None)}
    choices = kept.get("anyOf", [])
    if {"type": "null"} in choices:
        left = [choice for choice in choices if choice != {"type": "null"}]
        whole = left[0] if len(left) == 1 else {"anyOf": left}
        kept = {**{key: value for key, value in kept.items() if key != "anyOf"}, **whole}
    return {key: _tidy(value, names=key in ("properties", "$defs")) for key, value in kept.items()}


def main() -> None:
    temporary = SCHEMA_FILE.with_suffix(".part")
    temporary.write_text(schema_text(), encoding="utf-8")
    temporary.replace(SCHEMA_FILE)


if __name__ == "__main__":
    main()
