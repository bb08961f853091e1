"""CTranslate2's Whisper file: a small one written here, converted, damaged and forged."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nest.errors import WeightsError
from nest.weights import open_checkpoint
from nest.weights._ct2_file import read_ct2_file
from nest.weights.ct2 import convert_whisper

D, INNER, VOCAB, MELS = 4, 6, 7, 3
DTYPES = {np.dtype(np.float32): 0, np.dtype(np.int8): 1, np.dtype(np.int16): 2, np.dtype(np.float16): 4}
ENCODER, DECODER = "model.encoder.layers", "model.decoder.layers"
Variables = dict[str, np.ndarray]


def _text(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def _variable(name: str, array: np.ndarray) -> bytes:
    shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
    return _text(name) + shape + struct.pack("<BI", DTYPES[array.dtype], array.nbytes) + array.tobytes()


def _write(
    path: Path,
    variables: Variables,
    *,
    version: int = 6,
    specification: str = "WhisperSpec",
    revision: int = 3,
    aliases: dict[str, str] | None = None,
) -> Path:
    aliases = {"decoder/projection/weight": "decoder/embeddings/weight"} if aliases is None else aliases
    content = struct.pack("<I", version) + _text(specification) + struct.pack("<II", revision, len(variables))
    content += b"".join(_variable(name, array) for name, array in variables.items())
    content += struct.pack("<I", len(aliases)) + b"".join(_text(a) + _text(b) for a, b in aliases.items())
    path.write_bytes(content)
    return path


def _whisper(layers: int = 2) -> Variables:
    """The variables of a small Whisper, each value different; key biases are zeros."""
    counter = iter(range(10_000))

    def floats(*shape: int) -> np.ndarray:
        return (np.arange(np.prod(shape)) + 100 * next(counter)).astype(np.float16).reshape(shape) / 64

    made: Variables = {}

    def norm(name: str) -> None:
        made[f"{name}/gamma"], made[f"{name}/beta"] = floats(D), floats(D)

    def linear(name: str, rows: int, *columns: int, key: slice | None = None) -> None:
        made[f"{name}/weight"], made[f"{name}/bias"] = floats(rows, *columns), floats(rows)
        if key is not None:
            made[f"{name}/bias"][key] = 0

    for side in ("encoder", "decoder"):
        made[f"{side}/position_encodings/encodings"] = floats(5, D)
        norm(f"{side}/layer_norm")
        made[f"{side}/num_heads"] = np.array(2, np.int16)
        for index in range(layers):
            layer = f"{side}/layer_{index}"
            norm(f"{layer}/self_attention/layer_norm")
            linear(f"{layer}/self_attention/linear_0", 3 * D, D, key=slice(D, 2 * D))
            linear(f"{layer}/self_attention/linear_1", D, D)
            if side == "decoder":
                norm(f"{layer}/attention/layer_norm")
                linear(f"{layer}/attention/linear_0", D, D)
                linear(f"{layer}/attention/linear_1", 2 * D, D, key=slice(0, D))
                linear(f"{layer}/attention/linear_2", D, D)
            norm(f"{layer}/ffn/layer_norm")
            linear(f"{layer}/ffn/linear_0", INNER, D)
            linear(f"{layer}/ffn/linear_1", D, INNER)
    linear("encoder/conv1", D, MELS, 3)
    linear("encoder/conv2", D, D, 3)
    made["decoder/embeddings/weight"] = floats(VOCAB, D)
    made["decoder/activation"] = np.array(3, np.int8)
    made["decoder/scale_embeddings"] = np.array(0, np.int8)
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return _write(tmp_path / "model.bin", _whisper())


def _converted(path: Path) -> dict[str, np.ndarray]:
    target = path.with_name("model.safetensors")
    convert_whisper(path, target)
    return {name: view.array() for name, view in open_checkpoint(target).items()}


def test_every_tensor_has_its_published_name(source: Path) -> None:
    found = _converted(source)
    layer = 15 + 9 + 15  # encoder; then the decoder's cross-attention and its other tensors
    assert len(found) == 2 * layer + 2 * 3 + 4 + 1
    assert all(array.dtype == np.float32 for array in found.values())
    assert not any("k_proj.bias" in name or "proj_out" in name for name in found)


@pytest.mark.parametrize(
    ("name", "variable", "rows"),
    [
        ("model.encoder.conv1.weight", "encoder/conv1/weight", slice(None)),
        ("model.encoder.embed_positions.weight", "encoder/position_encodings/encodings", slice(None)),
        ("model.encoder.layer_norm.bias", "encoder/layer_norm/beta", slice(None)),
        (f"{ENCODER}.1.self_attn.q_proj.weight", "encoder/layer_1/self_attention/linear_0/weight", slice(0, D)),
        (f"{ENCODER}.0.self_attn.k_proj.weight", "encoder/layer_0/self_attention/linear_0/weight", slice(D, 2 * D)),
        (f"{ENCODER}.0.self_attn.v_proj.bias", "encoder/layer_0/self_attention/linear_0/bias", slice(2 * D, None)),
        (f"{ENCODER}.1.fc1.weight", "encoder/layer_1/ffn/linear_0/weight", slice(None)),
        ("model.decoder.embed_tokens.weight", "decoder/embeddings/weight", slice(None)),
        (f"{DECODER}.0.encoder_attn_layer_norm.weight", "decoder/layer_0/attention/layer_norm/gamma", slice(None)),
        (f"{DECODER}.1.encoder_attn.q_proj.bias", "decoder/layer_1/attention/linear_0/bias", slice(None)),
        (f"{DECODER}.0.encoder_attn.k_proj.weight", "decoder/layer_0/attention/linear_1/weight", slice(0, D)),
        (f"{DECODER}.0.encoder_attn.v_proj.weight", "decoder/layer_0/attention/linear_1/weight", slice(D, None)),
        (f"{DECODER}.0.encoder_attn.out_proj.bias", "decoder/layer_0/attention/linear_2/bias", slice(None)),
        (f"{DECODER}.1.final_layer_norm.weight", "decoder/layer_1/ffn/layer_norm/gamma", slice(None)),
    ],
)  # fmt: skip
def test_a_tensor(source: Path, name: str, variable: str, rows: slice) -> None:
    np.testing.assert_array_equal(_converted(source)[name], _whisper()[variable][rows].astype(np.float32))


def test_the_same_file_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    convert_whisper(source, tmp_path / "1")
    convert_whisper(source, tmp_path / "2")
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def _drop(name: str) -> Callable[[Variables], None]:
    return lambda variables: variables.pop(name) is None


def _set(name: str, array: np.ndarray) -> Callable[[Variables], None]:
    return lambda variables: variables.update({name: array})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_drop("encoder/conv1/bias"), "the variable 'encoder/conv1/bias' is missing"),
        (
            _drop("decoder/layer_1/ffn/linear_1/weight"),
            "the variable 'decoder/layer_1/ffn/linear_1/weight' is missing",
        ),
        (_set("decoder/extra", np.zeros(2, np.float16)), "no place for: ['decoder/extra']"),
        (_set("decoder/activation", np.array(0, np.int8)), "expected 'decoder/activation' to be 3; it is 0"),
        (
            _set("encoder/conv1/weight", np.zeros((D, MELS, 3), np.int8)),
            "'encoder/conv1/weight' is stored as i8",
        ),
        (
            _set("encoder/layer_0/self_attention/linear_0/bias", np.ones(3 * D, np.float16)),
            "'encoder/layer_0/self_attention/linear_0/bias' rows 4:8, of "
            "model.encoder.layers.0.self_attn.k_proj, are not all zero",
        ),
        (
            _set("encoder/layer_0/self_attention/linear_0/weight", np.zeros((3 * D + 1, D), np.float16)),
            "'encoder/layer_0/self_attention/linear_0' has the shape [13, 4]: no 3 projections with a bias each",
        ),
        (_set("encoder/conv1/bias", np.zeros(D + 1, np.float16)), "no 1 projections with a bias each"),
        (_set("encoder/layer_7/ffn/layer_norm/beta", np.zeros(D, np.float16)), "'encoder/layer_2/"),
    ],
)
def test_a_file_that_is_no_plain_whisper(
    tmp_path: Path, change: Callable[[Variables], None], words: str
) -> None:
    variables = _whisper()
    change(variables)
    path = _write(tmp_path / "model.bin", variables)
    with pytest.raises(WeightsError) as caught:
        _converted(path)
    assert f"{path} cannot be converted to a Whisper checkpoint: " in str(caught.value)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


def test_another_specification(tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _whisper(), specification="TransformerSpec", revision=7)
    with pytest.raises(
        WeightsError, match="expected WhisperSpec revision 3; it is TransformerSpec revision 7"
    ):
        _converted(path)


def test_an_untied_head(tmp_path: Path) -> None:
    path = _write(tmp_path / "m", _whisper(), aliases={})
    with pytest.raises(
        WeightsError, match="expected 'decoder/projection/weight' to be 'decoder/embeddings/weight'"
    ):
        _converted(path)


class TestDamage:
    def test_another_version(self, tmp_path: Path) -> None:
        path = _write(tmp_path / "m", _whisper(), version=5)
        with pytest.raises(WeightsError, match="at byte 0, its format version is 5; nest reads version 6"):
            read_ct2_file(path)

    def test_an_empty_and_a_missing_file(self, tmp_path: Path) -> None:
        (tmp_path / "m").touch()
        with pytest.raises(WeightsError, match="it is empty"):
            read_ct2_file(tmp_path / "m")
        with pytest.raises(WeightsError, match="cannot be read: No such file"):
            read_ct2_file(tmp_path / "n")

    def test_bytes_after_the_end(self, source: Path) -> None:
        source.write_bytes(source.read_bytes() + b"x")
        with pytest.raises(WeightsError, match="1 bytes follow its last alias"):
            read_ct2_file(source)

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (
                struct.pack("<IH", 6, 9) + b"x",
                "at byte 6, it is truncated: the specification takes 9 bytes; 1 are left",
            ),
            (struct.pack("<IH", 6, 1) + b"x", "the specification does not end in a NUL"),
            (struct.pack("<IH", 6, 2) + b"\xff\0", "the specification is not UTF-8 text"),
            (
                struct.pack("<I", 6) + _text("S") + struct.pack("<II", 3, 2**32 - 1),
                "it states 4294967295 variables",
            ),
        ],
    )
    def test_a_forged_start(self, tmp_path: Path, content: bytes, words: str) -> None:
        (tmp_path / "m").write_bytes(content)
        with pytest.raises(WeightsError) as caught:
            read_ct2_file(tmp_path / "m")
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        ("variable", "words"),
        [
            (struct.pack("<B", 9), "variable 'v' has 9 axes (at most 8 are accepted)"),
            (struct.pack("<BIBI", 1, 2, 9, 8), "variable 'v' has the dtype number 9; nest knows 0 to 5"),
            (struct.pack("<BIBI", 1, 2, 0, 4), "variable 'v', f32[2], takes 8 bytes; it states 4"),
            (struct.pack("<BIBI", 1, 2**30, 0, 2**32 - 1), "takes 4294967296 bytes; it states 4294967295"),
            (struct.pack("<BIBI", 1, 2**20, 0, 2**22), "the data of 'v' takes 4194304 bytes; 0 are left"),
        ],
    )
    def test_a_forged_variable(self, tmp_path: Path, variable: bytes, words: str) -> None:
        start = struct.pack("<I", 6) + _text("S") + struct.pack("<II", 3, 1) + _text("v")
        (tmp_path / "m").write_bytes(start + variable)
        with pytest.raises(WeightsError) as caught:
            read_ct2_file(tmp_path / "m")
        assert words in str(caught.value)

    def test_an_alias_of_nothing(self, tmp_path: Path) -> None:
        path = _write(tmp_path / "m", _whisper(), aliases={"a": "b"})
        with pytest.raises(WeightsError, match="alias 'a' names the variable 'b', which is not there"):
            read_ct2_file(path)

    def test_every_truncation_is_an_error(self, tmp_path: Path) -> None:
        path = _write(tmp_path / "m", {"v": np.zeros(3, np.float32)}, aliases={"a": "v"})
        whole = path.read_bytes()
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            with pytest.raises(WeightsError):
                read_ct2_file(path)

    @given(position=st.integers(0, 3000), value=st.integers(0, 255))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_a_changed_byte_gives_tensors_or_an_error(self, source: Path, position: int, value: int) -> None:
        content = bytearray(source.read_bytes())
        content[position] = value
        changed = source.with_name("changed.bin")
        changed.write_bytes(content)
        with contextlib.suppress(WeightsError):
            assert _converted(changed)
