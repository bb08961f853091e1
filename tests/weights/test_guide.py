"""The guide for companies and offline machines: its commands run, in its order, and print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ..docs.markdown import ROOT, blocks

GUIDE = "docs/guides/offline-and-company-networks.md"
USES_THE_REAL_CACHES = True  # for the weights themselves, which the machine that may reach the hub has
SHIM = """\
#!{python}
import sys
from pathlib import Path
from nest.weights import site
site.machine_file = lambda: Path({machine!r})
from nest.cli import main
sys.exit(main())
"""
"""The command `nest`, with the machine's configuration where a test may write it."""


@dataclass
class Machines:
    """The guide's machines: a home each, one folder to work in, and `/srv`, `/media`, `/etc` in a sandbox."""

    sandbox: Path
    name: str = ""
    said: str = ""
    ran: list[str] = field(default_factory=list)

    def path(self, text: str) -> str:
        """The sandbox's paths in place of the guide's."""
        text = text.replace("~/", f"{self.home}/")
        return re.sub(r"(?<![\w.])/(srv|media|etc)\b", rf"{self.sandbox}/\1", text)

    @property
    def home(self) -> Path:
        return self.sandbox / "home" / self.name

    def switch(self, name: str) -> None:
        self.name = name
        (self.home / "bin").mkdir(parents=True, exist_ok=True)
        machine = self.sandbox / "etc/xdg/nest/config.toml" if name == "company" else self.sandbox / "none"
        shim = self.home / "bin" / "nest"
        shim.write_text(SHIM.format(python=sys.executable, machine=str(machine)))
        shim.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """As of a new login: on all machines but the first, without caches, and with a hub that nobody may ask."""
        kept = ("NEST_", "HF_", "XDG_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(kept)}
        path = f"{self.home / 'bin'}{os.pathsep}{env['PATH']}"
        env |= {"PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "110"}
        if self.name == "open":
            caches = ("NEST_CACHE", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE")
            return env | {name: os.environ[name] for name in caches if name in os.environ}
        return env | {"HOME": str(self.home), "HF_ENDPOINT": "http://127.0.0.1:1", "PIP_NO_INDEX": "1"}

    def run(self, text: str) -> None:
        """Every command of a block; the last one's output is kept."""
        for line in text.splitlines():
            done = subprocess.run(
                ["sh", "-c", self.path(line)],
                cwd=self.sandbox / "work",
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.said = done.stdout.replace(str(self.sandbox / "etc"), "/etc").replace(
                str(self.sandbox / "srv"), "/srv"
            )
            self.ran.append(line)
            refused = "nest: error: " in self.said
            assert done.returncode == int(refused), f"{line}\n{self.said}"
            assert refused == (line == "nest pull whisper-tiny"), self.said

    def expect(self, text: str) -> None:
        """What the guide shows of the last command: `...` stands for anything."""
        pattern = ".*".join(re.escape(part) for part in text.strip().split("..."))
        assert re.fullmatch(pattern, self.said.strip(), re.DOTALL), f"shown:\n{text}\nsaid:\n{self.said}"

    def write(self, name: str, text: str) -> None:
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.path(text))


@pytest.mark.weights
def test_every_command_of_the_guide(tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "media").mkdir()
    shutil.copy(ROOT / "assets" / "audio" / "librivox_0930.wav", tmp_path / "work")
    for block in blocks(GUIDE):
        if "machine" in block.notes:
            machines.switch(block.notes["machine"])
        match block.language:
            case "sh":
                machines.run(block.code)
            case "text":
                machines.expect(block.code)
            case "toml":
                machines.write(block.notes["file"], block.code)
            case other:
                raise AssertionError(f"{block.place}: nobody runs a block of '{other}'")
    assert len(machines.ran) == 13
    assert (tmp_path / "work" / "models" / "config.toml").is_file()
