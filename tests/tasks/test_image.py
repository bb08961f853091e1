"""Pictures of every mode, from wherever people have them, and what is said of those that are none."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nest.errors import InputError, MissingDependencyError
from nest.tasks.image import is_one, load

COFFEE = Path(__file__).parents[2] / "assets" / "images" / "coffee.jpg"
RNG = np.random.default_rng(0)
LEVELS = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def levels(source: Any) -> np.ndarray:
    picture = load(source)
    assert picture.mode == "RGB"
    return np.asarray(picture)


def test_path_text_bytes_view_file_and_picture_are_one() -> None:
    expected = np.asarray(Image.open(COFFEE))
    content = COFFEE.read_bytes()
    for source in (
        COFFEE,
        str(COFFEE),
        content,
        bytearray(content),
        memoryview(content),
        io.BytesIO(content),
    ):
        np.testing.assert_array_equal(levels(source), expected)
    with COFFEE.open("rb") as file:
        np.testing.assert_array_equal(levels(file), expected)
    with Image.open(COFFEE) as image:
        np.testing.assert_array_equal(levels(image), expected)
    np.testing.assert_array_equal(levels(expected), expected)


@pytest.mark.parametrize(
    "array",
    [
        LEVELS,
        LEVELS / 255,
        (LEVELS / 255).astype(np.float32),
        LEVELS.astype(np.uint16) * 257,
        np.dstack([LEVELS, np.zeros((5, 7), np.uint8)]),
    ],
    ids=["uint8", "f64", "f32", "uint16", "alpha"],
)
def test_arrays_of_every_type(array: np.ndarray) -> None:
    np.testing.assert_array_equal(levels(array), LEVELS)


@pytest.mark.parametrize("array", [LEVELS[:, :, 0], LEVELS[:, :, :1]])
def test_grey_is_the_same_in_each_channel(array: np.ndarray) -> None:
    np.testing.assert_array_equal(levels(array), np.repeat(LEVELS[:, :, :1], 3, 2))


def test_black_and_white() -> None:
    mask = LEVELS[:, :, 0] > 100
    np.testing.assert_array_equal(levels(mask)[:, :, 1], mask * 255)
    np.testing.assert_array_equal(levels(encoded(Image.fromarray(mask)))[:, :, 2], mask * 255)


def test_sixteen_bits_are_scaled_not_cut_off() -> None:
    deep = LEVELS[:, :, 0].astype(np.uint16) * 257
    for source in (
        encoded(Image.fromarray(deep)),
        Image.fromarray(deep),
        Image.fromarray(deep.astype(np.int32)),
    ):
        np.testing.assert_array_equal(levels(source)[:, :, 0], LEVELS[:, :, 0])


def test_transparency_is_left_out_and_what_is_under_it_seen() -> None:
    see_through = Image.fromarray(np.dstack([LEVELS, np.zeros((5, 7), np.uint8)]), "RGBA")
    np.testing.assert_array_equal(levels(encoded(see_through)), LEVELS)
    grey = Image.merge("LA", [Image.fromarray(LEVELS[:, :, 0]), Image.new("L", (7, 5), 3)])
    np.testing.assert_array_equal(levels(encoded(grey))[:, :, 0], LEVELS[:, :, 0])


def test_palettes_with_and_without_transparency() -> None:
    palette = Image.fromarray(LEVELS).quantize(64)
    wanted = np.asarray(palette.convert("RGB"))
    np.testing.assert_array_equal(levels(encoded(palette)), wanted)
    np.testing.assert_array_equal(levels(encoded(palette, transparency=bytes(range(64)))), wanted)
    np.testing.assert_array_equal(levels(encoded(palette, "GIF")), wanted)


def test_inks() -> None:
    inks = Image.fromarray(np.dstack([LEVELS, np.zeros((5, 7), np.uint8)]), "CMYK")
    np.testing.assert_array_equal(levels(encoded(inks, "TIFF")), 255 - LEVELS)


@pytest.mark.parametrize(
    ("orientation", "turned"),
    [
        (1, LEVELS),
        (3, LEVELS[::-1, ::-1]),
        (6, np.rot90(LEVELS, -1)),
        (8, np.rot90(LEVELS)),
        (2, LEVELS[:, ::-1]),
    ],
)
def test_a_picture_is_turned_as_its_camera_says(orientation: int, turned: np.ndarray) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    np.testing.assert_array_equal(levels(encoded(Image.fromarray(LEVELS), exif=exif)), turned)


def test_a_tensor_is_an_array() -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(levels(torch.from_numpy(LEVELS)), LEVELS)
    with pytest.raises(InputError, match="cannot be read as numbers"):
        load(torch.zeros(2, 2, 3, requires_grad=True))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.zeros((3, 5, 7), np.uint8),
            r"\[3, 5, 7\]. Its channels come first: pass array.transpose\(1, 2, 0\)",
        ),
        (np.zeros((5, 7, 2), np.uint8), r"third axis; this one has the shape \[5, 7, 2\]"),
        (np.zeros(4, np.uint8), r"the shape \[4\]"),
        (np.zeros((0, 7, 3), np.uint8), "no pixels"),
        (np.full((2, 2, 3), 255.0), r"floats from 255 to 255; expected them in \[0, 1\]"),
        (np.full((2, 2, 3), -0.1), "floats from -0.1"),
        (np.full((2, 2, 3), np.nan), "not all finite"),
        (np.zeros((2, 2, 3), np.int64), "levels are int64; expected uint8"),
    ],
)
def test_arrays_that_are_no_picture(array: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(array)


def test_files_that_are_no_picture(tmp_path: Path) -> None:
    closed = io.BytesIO(b"x")
    closed.close()
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "words.jpg").write_text("These are words.")
    for source, message in (
        (tmp_path / "none.jpg", "There is no file '.*none.jpg'. Check the path; the working directory is"),
        (tmp_path, "is a directory. Pass the path of one picture"),
        ("", "The path of the picture is empty"),
        ("a\0b", "cannot be read"),
        (tmp_path / "empty.jpg", "There is no picture in '.*empty.jpg': it is empty"),
        (tmp_path / "words.jpg", r"No picture could be read from '.*words.jpg' \(16 bytes\)"),
        (b"GIF89a", "the bytes given"),
        (io.StringIO("text"), "open in text mode"),
        (closed, "file object cannot be read .I/O operation on closed file.*mode 'rb'"),
        (7, "cannot be read from a int"),
        (None, "cannot be read from a NoneType"),
    ):
        with pytest.raises(InputError, match=message):
            load(source)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "TIFF", "BMP", "WEBP"])
def test_a_file_that_is_cut_short_is_damaged(form: str) -> None:
    content = encoded(Image.fromarray(np.tile(LEVELS, (40, 40, 1))), form)
    with pytest.raises(InputError, match=r"damaged or cut short|No picture could be read"):
        load(content[: len(content) // 2])


@pytest.mark.parametrize("seed", range(8))
def test_bytes_changed_anywhere_give_a_picture_or_a_message(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for form in ("JPEG", "PNG", "GIF", "TIFF"):
        content = bytearray(encoded(Image.fromarray(LEVELS), form))
        for place in rng.integers(0, len(content), 4):
            content[place] = rng.integers(0, 256)
        with contextlib.suppress(InputError):
            assert load(bytes(content)).mode == "RGB"


def test_a_picture_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(InputError, match="too large to be read"):
        load(encoded(Image.fromarray(LEVELS)))


@pytest.mark.parametrize("mode", ["I", "F"])
def test_levels_without_a_white_are_refused(mode: str) -> None:
    with pytest.raises(InputError, match="nothing says which of them is white"):
        load(Image.fromarray(np.full((2, 2), 70000, np.int32 if mode == "I" else np.float32)))


def test_one_or_several() -> None:
    assert all(map(is_one, ("a.jpg", b"", LEVELS, Image.fromarray(LEVELS), Path("a"))))
    assert not any(map(is_one, (["a.jpg"], [], (LEVELS,), LEVELS[None])))


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingDependencyError, match=r"nest-zoo\[vision\]"):
        load(COFFEE)
