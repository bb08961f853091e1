"""Folders of recordings with transcripts: the three forms, and what is wrong with a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nest.errors import InputError
from nest.evaluating.dataset import Fault, read_dataset


def made(folder: Path, **files: str | bytes) -> Path:
    """A folder of files by name: `__` is a slash, `_dot_` a dot; recordings need no content."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def texts(folder: Path) -> dict[str, str]:
    data = read_dataset(folder)
    assert data.faults == ()
    return {one.name: one.reference for one in data.recordings}


def test_a_text_beside_each_recording(tmp_path: Path) -> None:
    made(
        tmp_path,
        b_dot_wav="",
        b_dot_txt="\ufeffTwo\nlines. ",
        deep__a_dot_MP3="",
        deep__a_dot_txt="One.",
        README_dot_txt="x",
    )
    assert texts(tmp_path) == {"b.wav": "Two lines.", "deep/a.MP3": "One."}


def test_librispeech(tmp_path: Path) -> None:
    lines = "19-198-0000 NORTHANGER ABBEY\n\n19-198-0001 THIS LITTLE WORK\n"
    folder = made(tmp_path, **{"19__198__19-198_dot_trans_dot_txt": lines})
    for number in (0, 1):
        (folder / f"19/198/19-198-000{number}.flac").touch()
    assert texts(folder) == {
        "19/198/19-198-0000.flac": "NORTHANGER ABBEY",
        "19/198/19-198-0001.flac": "THIS LITTLE WORK",
    }


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("transcripts.tsv", 'file\tid\ttext\na.wav\t1\t"Yes," he said.\n\nin/b.wav\t2\tNo.\n'),
        ("transcripts.csv", 'text,file\n"""Yes,"" he said.",a.wav\nNo.,in/b.wav\n'),
        (
            "transcripts.jsonl",
            '{"file": "a.wav", "text": "\\"Yes,\\" he said."}\n\n{"file": "in/b.wav", "text": "No."}',
        ),
    ],
)
def test_a_table(tmp_path: Path, name: str, table: str) -> None:
    made(tmp_path, a_dot_wav="", in__b_dot_wav="")
    (tmp_path / name).write_text(table)
    assert texts(tmp_path) == {"a.wav": '"Yes," he said.', "in/b.wav": "No."}


def test_what_is_wrong_is_named_and_the_rest_is_there(tmp_path: Path) -> None:
    made(
        tmp_path, a_dot_wav="", a_dot_txt="Yes.", b_dot_wav="", c_dot_wav="", c_dot_txt=" \n", d_dot_wav="",
        d_dot_txt=b"\xff\xfe\xfa", e_dot_wav="", e_dot_txt="One.", x_dot_trans_dot_txt="e Two.\nz Three.\n",
    )  # fmt: skip
    rows = ["gone.wav\tx", "a.wav"]
    (tmp_path / "transcripts.tsv").write_text("file\ttext\n" + "\n".join(rows))
    data = read_dataset(tmp_path)
    assert [one.name for one in data.recordings] == ["a.wav"]
    assert data.faults == (
        Fault("d.txt", "is no UTF-8 text"),
        Fault("transcripts.tsv:2", "names 'gone.wav', which is no recording of the folder"),
        Fault("transcripts.tsv:3", "expected 'file' and 'text', both texts"),
        Fault("x.trans.txt", "names 'z', and no recording beside it is called so"),
        Fault("b.wav", "has no transcript"),
        Fault("c.wav", "has an empty transcript in c.txt"),
        Fault("d.wav", "has no transcript"),
        Fault("e.wav", "has 2 transcripts, in e.txt and x.trans.txt: keep one"),
    )


def test_a_line_that_is_no_json(tmp_path: Path) -> None:
    made(
        tmp_path,
        a_dot_wav="",
        transcripts_dot_jsonl=f"{json.dumps({'file': 'a.wav', 'text': 'x'})}\n{{\n[1]\n",
    )
    data = read_dataset(tmp_path)
    assert len(data.recordings) == 1
    assert [fault.name for fault in data.faults] == ["transcripts.jsonl:2", "transcripts.jsonl:3"]


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'no/where' is not there: give a folder of recordings"):
        read_dataset("no/where")
    made(tmp_path, a_dot_txt="x")
    with pytest.raises(InputError, match=r"'.*a.txt' is no directory"):
        read_dataset(tmp_path / "a.txt")
    with pytest.raises(InputError, match=r"There is no recording in '.*': expected files such as .wav"):
        read_dataset(tmp_path)
    made(tmp_path, b_dot_wav="")
    with pytest.raises(
        InputError, match=r"has 1 recording and no transcript: expected clip.txt beside clip.wav"
    ):
        read_dataset(tmp_path)
