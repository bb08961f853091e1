"""The published JSON schema is that of the tables that nest reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.registry import _fields
from nest.registry.manifest import Manifest
from nest.registry.schema import SCHEMA_FILE, manifest_schema, schema_text

ROOT = Path(__file__).parents[2]


def test_the_published_file_is_current() -> None:
    # As values: versions of pydantic write 0 and 0.0.
    assert json.loads(SCHEMA_FILE.read_text("utf-8")) == json.loads(schema_text()), (
        "run: python -m nest.registry.schema"
    )


def test_it_says_nothing_that_toml_cannot() -> None:
    assert "null" not in schema_text()


def tables(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"Manifest": schema, **schema["$defs"]}


def test_every_table_is_closed() -> None:
    for name, table in tables(manifest_schema()).items():
        assert table["additionalProperties"] is False, name


def test_it_has_the_tables_and_what_they_require() -> None:
    schema = manifest_schema()
    assert list(schema["properties"]) == list(Manifest.model_fields)
    assert schema["required"] == ["model", "source"]
    assert schema["$defs"]["Model"]["required"] == ["name", "title", "summary", "license", "family"]


def test_a_shorthand_is_admitted() -> None:
    files = manifest_schema()["$defs"]["Weights"]["properties"]["files"]["items"]
    assert files["anyOf"][0]["type"] == "string"
    assert files["anyOf"][1] == {"$ref": "#/$defs/FileSpec"}
    tolerance = manifest_schema()["properties"]["tolerance"]["additionalProperties"]
    assert tolerance["anyOf"][0] == {"type": "number"}


@pytest.mark.parametrize("kind", ["Commit", "EntryName", "EntryPath", "Package", "RelativePath", "Sha256"])
@given(
    text=st.text("ab0/.@-\\:=1 ", max_size=12)
    | st.sampled_from(["../a", "a/../b", "@a/b", "@a/../b", "/a", "a==1", "0" * 40, "f" * 64, "..", "a..b"])
)
def test_a_pattern_admits_what_the_validator_does(kind: str, text: str) -> None:
    adapter = pydantic.TypeAdapter(getattr(_fields, kind))
    try:
        adapter.validate_python(text)
        valid = True
    except pydantic.ValidationError:
        valid = False
    matched = re.search(adapter.json_schema()["pattern"], text) is not None
    # The schema may admit what nest refuses (`.` as a path), never refuse what nest admits.
    assert matched or not valid
    if kind in ("Commit", "EntryName", "Package", "Sha256"):
        assert matched == valid


def test_the_page_describes_every_key() -> None:
    page = (ROOT / "docs" / "entry-schema.md").read_text("utf-8")
    for table in tables(manifest_schema()).values():
        for key in table["properties"]:
            assert f"`{key}`" in page or f"[{key}]" in page, key
