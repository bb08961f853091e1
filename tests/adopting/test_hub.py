"""A repository of the Hub, through the Hub's own client: resolved to a commit, pinned, and read without its weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import nest
from nest.adopting import adopted_entry
from nest.checking import check, lint
from nest.errors import FetchError

from ..weights.loopback import REPO, REVISION, sha256
from ..zoo.small import byte_level_tokenizer
from .hub_api import HubWithApi
from .library import CASES, difference


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubWithApi]:
    """A hub that has a small Llama, and a page that states its licence."""
    CASES["llama"].save(tmp_path / "tuned")
    hub = HubWithApi()
    hub.files = {path.name: path.read_bytes() for path in (tmp_path / "tuned").iterdir()}
    hub.files["README.md"] = b"---\nlicense: apache-2.0\ntags: [x]\n---\n# A model\n"
    hub.files["pytorch_model.bin"] = b"never read"
    hub.start()
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    yield hub
    hub.stop()


def test_a_repository_is_adopted_at_the_commit_that_main_is(served: HubWithApi, tmp_path: Path) -> None:
    case = CASES["llama"]
    model = case.save(tmp_path / "again")
    assert difference(case, model, REPO) < 2e-5
    entry = adopted_entry(REPO).entry
    weights = entry.manifest.weights
    assert weights is not None
    assert (weights.repo, weights.revision, weights.directory) == (REPO, REVISION, None)
    pins = {spec.name: (spec.size, spec.sha256) for spec in weights.files}
    for name in ("model.safetensors", "config.json", "generation_config.json"):
        assert pins[name] == (len(served.files[name]), sha256(served.files[name]))
    assert entry.manifest.model.license == "Apache-2.0"
    assert entry.manifest.links["huggingface"] == f"https://huggingface.co/{REPO}"


def test_the_weights_are_not_fetched_to_know_what_they_are(served: HubWithApi) -> None:
    adopted_entry(REPO, revision="tuned")
    asked = [path for path in served.requests if path.endswith("model.safetensors")]
    assert len(asked) == 2  # its length, then its header
    assert not any(path.endswith(".bin") for path in served.requests)


def test_a_written_entry_lacks_only_what_a_person_has_to_say(served: HubWithApi, tmp_path: Path) -> None:
    served.files["tokenizer.json"] = json.dumps(byte_level_tokenizer(80)).encode()
    folder = adopted_entry(REPO).draft.write(tmp_path / "zoo" / "my-model")
    assert check(folder).faults == []
    faults = lint(folder).faults
    assert len(faults) == 6
    assert [fault.message for fault in faults if not fault.message.startswith("still to be written")] == []


def test_what_is_cached_is_adopted_without_the_network(served: HubWithApi, tmp_path: Path) -> None:
    nest.adopt(REPO, backend="reference", progress=False)
    served.stop()
    nest.adopt(REPO, revision=REVISION, backend="reference", local_files_only=True, progress=False)
    with pytest.raises(FetchError, match="at 'main' is not in the cache"):
        nest.adopt(REPO, backend="reference", local_files_only=True, progress=False)


@pytest.mark.parametrize(
    ("repo", "revision", "said"),
    [
        ("owner/none", None, "owner/none is not on the Hub, or is private"),
        (REPO, "gone", "owner/model has no revision 'gone'"),
    ],
)
def test_what_is_not_there_is_said(served: HubWithApi, repo: str, revision: str | None, said: str) -> None:
    with pytest.raises(FetchError, match=said):
        nest.adopt(repo, revision=revision)


def test_a_hub_that_cannot_be_reached_is_said() -> None:
    with pytest.raises(FetchError, match="A folder with its files needs no network"):
        nest.adopt(REPO)


def test_a_site_that_forbids_the_hub_is_obeyed(
    served: HubWithApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.toml").write_text('sources = ["directory"]\n', "utf-8")
    monkeypatch.setenv("NEST_CONFIG", str(tmp_path / "site.toml"))
    with pytest.raises(FetchError, match="the Hub is not allowed by"):
        nest.adopt(REPO)
    assert served.requests == []
