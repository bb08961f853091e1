"""Headers by range requests: two a file, through the Hub's own client, bounded, and honest about what was not seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.checking import Checkpoints, check
from nest.checking.headers import UnseenError, remote_tensors
from nest.errors import WeightsError
from nest.registry import FileSpec, find, zoo_directory
from nest.registry.tensors import read_tensors

from .conftest import REPO, REVISION, Copy, RangeHub
from .test_check import run, said


def model_file(hub: RangeHub, *, size: int | None = None) -> FileSpec:
    return FileSpec(name="model.safetensors", size=hub.size if size is None else size)


def test_two_requests_bring_every_tensor(hub: RangeHub) -> None:
    found = remote_tensors(hub.endpoint + hub.path, model_file(hub), {})
    listed = read_tensors(zoo_directory() / "whisper-tiny", "whisper-tiny")
    assert listed is not None
    assert found == listed.specs
    assert hub.requests == [f"{hub.path} bytes=0-7", f"{hub.path} bytes=8-{len(hub.head) - 1}"]


def test_a_server_that_ignores_ranges_is_not_read_to_the_end(hub: RangeHub) -> None:
    hub.status = 200
    assert len(remote_tensors(hub.endpoint + hub.path, model_file(hub), {})) == 167
    assert len(hub.requests) == 2


def test_another_size_is_a_fault(hub: RangeHub) -> None:
    with pytest.raises(
        WeightsError, match=rf"not the pinned 'model\.safetensors': expected 5 bytes; it has {hub.size}"
    ):
        remote_tensors(hub.endpoint + hub.path, model_file(hub, size=5), {})
    assert len(hub.requests) == 1


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"", "expected 8 bytes of header length; it has 0"),
        (b"\xff" * 8 + b"{}", "give a header of 18446744073709551615 bytes"),
        ((2).to_bytes(8, "little") + b"[]", "its header is not a JSON object"),
        ((3).to_bytes(8, "little") + b"{} x", "1 bytes after its last tensor: expected 11; found 12"),
        ((9).to_bytes(8, "little") + b"{}", "is truncated: its header calls for 17 bytes; the file has 10"),
    ],
)
def test_what_is_no_safetensors(hub: RangeHub, head: bytes, words: str) -> None:
    hub.head, hub.size = head, len(head)
    with pytest.raises(WeightsError, match=words):
        remote_tensors(hub.endpoint + hub.path, model_file(hub), {})


def test_an_answer_that_breaks_off_is_not_seen(hub: RangeHub) -> None:
    hub.head = hub.head[:1000]
    with pytest.raises(UnseenError, match=r"the answer broke off after 992 of [0-9]+ bytes"):
        remote_tensors(hub.endpoint + hub.path, model_file(hub), {})


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "status 401: it needs a token"),
        (403, "status 403: the token does not admit it"),
        (429, "status 429: too many requests"),
        (500, "status 500"),
    ],
)
def test_a_refusal_is_not_a_fault_of_the_entry(hub: RangeHub, status: int, words: str) -> None:
    hub.status = status
    with pytest.raises(UnseenError, match=words) as caught:
        remote_tensors(hub.endpoint + hub.path, model_file(hub), {})
    assert not caught.value.host


def test_a_missing_file_is_one(hub: RangeHub) -> None:
    with pytest.raises(WeightsError, match=r"other\.safetensors is not there \(status 404\)"):
        remote_tensors(f"{hub.endpoint}/other.safetensors", model_file(hub), {})


def test_a_host_that_is_away() -> None:
    with pytest.raises(UnseenError, match=r"refused|connect") as caught:
        remote_tensors("http://127.0.0.1:9/x", FileSpec(name="x"), {})
    assert caught.value.host


class TestCheck:
    """The same through `check`."""

    @pytest.fixture
    def right_size(self, copy: Copy, hub: RangeHub) -> Copy:
        copy.edit("nest.toml", "size = 151061672", f"size = {hub.size}")
        return copy

    def test_a_seen_header_is_compared_with_the_list(self, right_size: Copy, hub: RangeHub) -> None:
        report = run(right_size, checkpoints=Checkpoints(), require_headers=True)
        assert report.faults == []
        assert said(report, "bindings", "note") == []
        assert said(report, "bindings", "ok") == [
            "167 parameters, 167 tensors of the header of model.safetensors, one to one"
        ]
        assert len(hub.requests) == 2

    def test_a_list_that_differs(self, right_size: Copy, hub: RangeHub) -> None:
        right_size.edit_json(
            "tensors.json", lambda all_: all_["tensors"].update({"model.encoder.conv1.bias": "f32[385]"})
        )
        (fault,) = said(run(right_size, checkpoints=Checkpoints()), "bindings", "fault")
        assert fault == (
            f"{right_size.folder / 'tensors.json'}: it is not the checkpoint's (the header of model.safetensors): "
            "'model.encoder.conv1.bias': f32[385] here, f32[384] there"
        )

    def test_many_differences_are_counted(self, right_size: Copy, hub: RangeHub) -> None:
        right_size.edit_json("tensors.json", lambda all_: all_.update(tensors={"x": "f32[1]"}))
        (fault,) = said(run(right_size, checkpoints=Checkpoints()), "bindings", "fault")
        assert fault.endswith("; and 160 more")

    def test_the_list_is_written_from_the_header(self, right_size: Copy, hub: RangeHub) -> None:
        before = read_tensors(right_size.folder, "x")
        (right_size.folder / "tensors.json").write_text("{}")
        report = run(right_size, checkpoints=Checkpoints())
        assert "'tensors': missing" in said(report, "bindings", "fault")[0]
        (right_size.folder / "tensors.json").unlink()
        report = run(right_size, checkpoints=Checkpoints(), write_tensors=True)
        assert report.faults == []
        assert said(report, "bindings", "note") == [f"wrote {right_size.folder / 'tensors.json'}"]
        after = read_tensors(right_size.folder, "x")
        assert before is not None
        assert after is not None
        assert (after.specs, after.source) == (before.specs, "header")

    def test_a_list_is_not_written_from_a_list(self, copy: Copy) -> None:
        before = (copy.folder / "tensors.json").read_bytes()
        assert "tensors.json was not written" in said(run(copy, write_tensors=True), "bindings", "fault")[0]
        assert (copy.folder / "tensors.json").read_bytes() == before

    def test_a_list_is_not_enough_where_headers_are_required(self, copy: Copy) -> None:
        report = run(copy, checkpoints=Checkpoints(), require_headers=True)
        (fault,) = said(report, "bindings", "fault")
        assert fault.startswith("checkpoint not seen: 127.0.0.1:9 cannot be reached (")
        assert fault.endswith("--require-headers accepts the checkpoint's own header only")

    def test_a_host_that_is_away_is_asked_once(self, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
        checkpoints, asked = Checkpoints(), []

        def remote(url: str, *_: object) -> object:
            asked.append(url)
            raise UnseenError("no route", host=True)

        monkeypatch.setattr("nest.checking.tensors.remote_tensors", remote)
        for _ in range(2):
            (note,) = said(run(copy, checkpoints=checkpoints), "bindings", "note")
            assert note.startswith("checkpoint not seen: 127.0.0.1:9 cannot be reached (no route).")
        assert len(asked) == 1

    def test_a_site_that_forbids_the_hub_is_heeded(
        self, right_size: Copy, hub: RangeHub, tmp_path: Path
    ) -> None:
        (tmp_path / "machine.toml").write_text('sources = ["directory"]\n', "utf-8")
        (note,) = said(run(right_size, checkpoints=Checkpoints()), "bindings", "note")
        assert note.startswith(
            "checkpoint not seen: the site's configuration allows no server to be asked. Checked against"
        )
        assert hub.requests == []

    def test_a_mirror_of_the_site_has_headers_too(
        self, right_size: Copy, hub: RangeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_of_mine")
        hub.path = f"/{REPO}/{REVISION}/model.safetensors"
        (tmp_path / "machine.toml").write_text(
            f'sources = ["url"]\n[[mirror]]\nurl = "{hub.endpoint}/{{repo}}/{{revision}}/{{file}}"\n', "utf-8"
        )
        report = run(right_size, checkpoints=Checkpoints(), require_headers=True)
        assert report.faults == []
        assert [request.split()[0] for request in hub.requests] == [hub.path] * 2
        assert not any("Bearer" in request for request in hub.requests)

    def test_a_mirror_without_the_file_is_no_fault_of_the_entry(
        self, right_size: Copy, hub: RangeHub, tmp_path: Path
    ) -> None:
        (tmp_path / "machine.toml").write_text(
            f'sources = ["url"]\n[[mirror]]\nurl = "{hub.endpoint}/nowhere/{{repo}}/{{revision}}/{{file}}"\n',
            "utf-8",
        )
        report = run(right_size, checkpoints=Checkpoints())
        assert report.faults == []
        assert "/model.safetensors is not there (status 404). Checked" in said(report, "bindings", "note")[0]

    @pytest.mark.parametrize("how", ["option", "variable"])
    def test_offline_asks_nobody(
        self, how: str, right_size: Copy, hub: RangeHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if how == "variable":
            monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        report = run(right_size, checkpoints=Checkpoints(offline=how == "option"))
        assert said(report, "bindings", "note")[0].startswith(
            "checkpoint not seen: the network was not asked."
        )
        assert hub.requests == []

    def test_the_token_goes_along(
        self, right_size: Copy, hub: RangeHub, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_of_mine")
        run(right_size, checkpoints=Checkpoints())
        assert all(request.endswith("Bearer hf_of_mine") for request in hub.requests)


@pytest.mark.weights
def test_a_cached_checkpoint_is_seen_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real caches
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    report = check("whisper-tiny.en", require_headers=True)
    assert report.faults == []
    assert said(report, "bindings", "ok") == [
        "167 parameters, 167 tensors of the cached model.safetensors, one to one"
    ]
    assert find("whisper-tiny.en").directory == report.folder
