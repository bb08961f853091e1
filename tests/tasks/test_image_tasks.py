"""Classes, vectors and matches of pictures, over small models with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import InputError, WeightsError
from nest.registry import find
from nest.tasks._image_settings import _names, pixel_settings
from nest.tasks.captions import CaptionTokenizer, canonical
from nest.tasks.classify_image import ImageClassifier
from nest.tasks.embed_image import ImageEmbedder
from nest.tasks.match import ImageTextMatcher
from nest.tasks.text import TruncatedTextWarning

RNG = np.random.default_rng(0)
COFFEE = Path(__file__).parents[2] / "assets" / "images" / "coffee.jpg"
SIZES = [(40, 31, 3), (35, 45, 3), (9, 80, 3), (64, 64, 3), (1, 1, 3)]
PICTURES = [RNG.integers(0, 256, shape, dtype=np.uint8) for shape in SIZES]


def tiny(name: str, backend: str = "torch") -> Any:
    """Three channels, as pictures have."""
    generics = {**find(name).manifest.tiny, "Channels": 3}
    return nest.load(name, backend=backend, weights=None, **generics)


def words() -> dict[str, Any]:
    """A vocabulary of words, with ids below 97."""
    names = ["[UNK]", "[PAD]", "[BEGIN]", "[END]", "a", "cup", "of", "coffee", "cat"]
    return {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {n: i for i, n in enumerate(names)}, "unk_token": "[UNK]"},
    }


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(words()), "utf-8")
    return path


@pytest.fixture(scope="module")
def classifier() -> ImageClassifier:
    model = tiny("vit-base-patch16-224")
    return ImageClassifier(model, pixel_settings(model.entry), [f"class {i}" for i in range(17)])


def test_classes_are_the_likeliest_first(classifier: ImageClassifier) -> None:
    found = classifier(COFFEE, top=17)
    scores = [f.score for f in found]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) == pytest.approx(1)
    assert sorted(f.index for f in found) == list(range(17))
    assert all(f.label == f"class {f.index}" for f in found)
    assert classifier(COFFEE) == found[:5]
    assert len(classifier(COFFEE, top=100)) == 17


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_pictures_of_any_sizes_beside_each_other_are_as_if_alone(
    classifier: ImageClassifier, batch: int
) -> None:
    alone = np.concatenate([classifier.logits(picture) for picture in PICTURES])
    np.testing.assert_allclose(classifier.logits(PICTURES, batch_size=batch), alone, atol=2e-6)
    found = classifier(PICTURES, batch_size=batch, top=1)
    assert [f[0].index for f in found] == alone.argmax(1).tolist()


def test_an_array_of_several_is_a_list(classifier: ImageClassifier) -> None:
    several = np.stack([PICTURES[3], PICTURES[3][::-1]])
    assert [f[0].index for f in classifier(several)] == [classifier(p)[0].index for p in several]


def test_what_is_no_picture_is_named_by_its_place(classifier: ImageClassifier) -> None:
    with pytest.raises(InputError, match=r"^Picture 2 of 3: There is no file 'none.jpg'"):
        classifier([COFFEE, "none.jpg", COFFEE])
    with pytest.raises(InputError, match=r"^There is no file 'none.jpg'"):
        classifier("none.jpg")
    for options, message in (
        ({"top": 0}, "top is at least 1"),
        ({"batch_size": 0}, "batch_size is at least 1"),
    ):
        with pytest.raises(InputError, match=message):
            classifier(COFFEE, **options)
    with pytest.raises(InputError, match="No picture was given"):
        classifier([])


@pytest.mark.parametrize("backend", ["onnx", "jax"])
def test_every_backend_gives_the_same_vectors(backend: str) -> None:
    embedders = []
    for name in ("torch", backend):
        model = tiny("dinov2-base", name)
        embedders.append(ImageEmbedder(model, pixel_settings(model.entry)))
    wanted, found = (embed(PICTURES[:3], batch_size=2) for embed in embedders)
    assert found.shape == (3, 32)
    np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_vectors_and_their_cosine() -> None:
    model = tiny("resnet-18")
    embed = ImageEmbedder(model, pixel_settings(model.entry))
    vectors = embed(PICTURES[:2])
    assert embed(PICTURES[0]).shape == (20,)
    np.testing.assert_allclose(embed.similarity(vectors, vectors).diagonal(), 1, atol=1e-6)
    np.testing.assert_allclose(
        embed.similarity(vectors, 2 * vectors[1]), embed.similarity(vectors, vectors)[:, 1:]
    )


def test_classes_must_be_as_many_as_the_model_has(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for text in ("{}", '{"id2label": 3}', "{", '{"id2label": {"x": "y"}}'):
        path.write_text(text, "utf-8")
        with pytest.raises(WeightsError, match="expected JSON with the object 'id2label'"):
            _names(path)


def matcher(name: str, vocabulary: Path, **options: Any) -> ImageTextMatcher:
    model = tiny(name)
    return ImageTextMatcher(
        model, pixel_settings(model.entry), CaptionTokenizer(vocabulary, max_tokens=11, **options)
    )


def test_clip_chooses_among_texts(vocabulary: Path) -> None:
    match = matcher("clip-vit-base-patch32", vocabulary, begin=2, end=3)
    texts = ["a cup of coffee", "a cat", "", "cat cat cat cat cat"]
    found = match(PICTURES[:2], texts)
    assert found.shape == (2, 4)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(match(PICTURES[0], texts), found[0], atol=1e-6)
    # A text beside longer ones is as if alone, and another order is another order.
    alone = np.stack([match.embed_texts(text) for text in texts])
    np.testing.assert_allclose(match.embed_texts(texts), alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(match.embed_texts(texts[::-1]), alone[::-1], atol=1e-6)


def test_siglip_judges_each_pair(vocabulary: Path) -> None:
    match = matcher("siglip-base-patch16-224", vocabulary, end=1, pad=1, canonical=True)
    texts = ["a cup of coffee", "a cat"]
    found = match(PICTURES[:2], texts)
    np.testing.assert_allclose(match(PICTURES[:2], texts[:1]), found[:, :1], atol=1e-6)
    np.testing.assert_allclose(match.embed_texts("A cup, of COFFEE!"), match.embed_texts(texts[0]), atol=1e-6)
    np.testing.assert_allclose(
        match.embed_images(PICTURES[:2])[0], match.embed_images(PICTURES[0]), atol=1e-6
    )


def test_what_a_matcher_does_not_take(vocabulary: Path) -> None:
    match = matcher("clip-vit-base-patch32", vocabulary, begin=2, end=3)
    for texts, message in (
        ([], "No text was given"),
        ([b"a"], r"texts\[0\] is of type bytes"),
        (3, "Expected a text"),
    ):
        with pytest.raises(InputError, match=message):
            match(COFFEE, texts)


def test_captions_are_cut_before_their_end_token_and_filled(vocabulary: Path) -> None:
    cut = CaptionTokenizer(vocabulary, max_tokens=5, begin=2, end=3)
    with pytest.warns(TruncatedTextWarning, match="1 of 2 texts is longer than the 5 tokens"):
        assert cut(["a cup of coffee", "cat"]) == [[2, 4, 5, 6, 3], [2, 8, 3]]
    filled = CaptionTokenizer(vocabulary, max_tokens=5, end=1, pad=1, canonical=True)
    assert filled(["A  cat!", ""]) == [[4, 8, 1, 1, 1], [1, 1, 1, 1, 1]]
    with pytest.raises(WeightsError, match="cannot be read"):
        CaptionTokenizer(COFFEE, max_tokens=5)


def test_canonical_texts() -> None:
    assert canonical("  It's a Cat,\n(two)  DOGS & café! ") == "its a cat two dogs café"
