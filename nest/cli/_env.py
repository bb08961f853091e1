"""`nest env`: versions, devices, paths, rules and clashes of this machine, for a person or for a report."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import Any

import nest
from nest.cli import _machine
from nest.cli._format import columns, json_text, paragraph, section
from nest.weights.cache import cache_root
from nest.weights.hub import hub_cache_root, hub_offline
from nest.weights.lock import LockFile
from nest.weights.site import Policy, machine_file, policy, user_file
from nest.weights.source import without_password

_SHOWN = ("HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE", "NEST_CACHE", "NEST_CONFIG", "NEST_LOCK", "NEST_ZOO")
_HIDDEN = ("HF_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
"""May hold secrets: that they are set is said, and not what they hold."""


def main(args: argparse.Namespace) -> int:
    facts = _facts()
    print(json_text(facts) if args.json else _text(facts))
    return 0


def _facts() -> dict[str, Any]:
    from nest.registry import zoo_directory

    return {
        "nest": nest.__version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "packages": _machine.packages(),
        "devices": _machine.devices(),
        "paths": {
            "nest": os.path.dirname(nest.__file__),  # noqa: PTH120
            "zoo": str(zoo_directory()),
            "hub_cache": str(hub_cache_root()),
            "nest_cache": str(cache_root()),
            "lock": str(LockFile.choose(None, cache_root()).path),
            "machine_config": _config(machine_file()),
            "user_config": _config(user_file()),
        },
        "rules": _rules(policy()),
        "settings": _settings(),
        "clashes": _machine.clashes(),
    }


def _config(path: os.PathLike[str]) -> str:
    return os.fspath(path) if os.path.isfile(path) else f"{os.fspath(path)} (not there)"  # noqa: PTH113


def _rules(rules: Policy) -> dict[str, Any]:
    return {
        "sources": list(rules.sources),
        "forbidden": {kind: str(path) for kind, path in rules.forbidden.items()},
        "mirrors": [
            without_password(mirror.url) if mirror.url else str(mirror.directory) for mirror in rules.mirrors
        ],
        "require_hashes": rules.require_hashes is not None,
        "licenses": [sorted(allowed) for _, allowed in rules.licenses],
        "offline": hub_offline(),
    }


def _settings() -> dict[str, str]:
    shown = {name: without_password(os.environ[name]) for name in _SHOWN if os.environ.get(name)}
    return shown | {name: "set" for name in _HIDDEN if os.environ.get(name)}


def _text(facts: dict[str, Any]) -> str:
    top = [(name, facts[name]) for name in ("nest", "python", "executable", "platform")]
    rules = [(name, _value(value)) for name, value in facts["rules"].items()]
    clashes = "\n".join(paragraph(clash, indent=2) for clash in facts["clashes"]) or "  none"
    parts = [
        section("Packages", columns(list(facts["packages"].items()), indent=2)),
        section("Devices", columns([(name, _value(v)) for name, v in facts["devices"].items()], indent=2)),
        section("Paths", columns(list(facts["paths"].items()), indent=2)),
        section("Rules", columns(rules, indent=2)),
        section("Settings", columns(list(facts["settings"].items()), indent=2)),
        section("Clashes", clashes),
    ]
    return (columns(top) + "\n" + "".join(parts)).rstrip("\n")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} (by {path})" for name, path in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "-"
    return str(value)
