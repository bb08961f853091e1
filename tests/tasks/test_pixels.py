"""Preprocessing against the reference library's processors (those of Pillow), to the bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from nest.registry import entries, find
from nest.tasks._image_settings import pixel_settings
from nest.tasks.image import load
from nest.tasks.pixels import PixelSettings

COFFEE = Path(__file__).parents[2] / "assets" / "images" / "coffee.jpg"
PICTURES = [e.name for e in entries() if e.manifest.preprocess and e.manifest.preprocess.resize]


def processor(name: str) -> Any:
    """The library's processor as the checkpoint's preprocessor_config.json has it."""
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    square, middle = {"height": 224, "width": 224}, {"shortest_edge": 224}
    half = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    imagenet = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    own = {
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    family = find(name).manifest.model.family
    if family == "vit":
        return ViTImageProcessorPil(size=square, resample=2, **half)
    if family == "dinov2":
        return BitImageProcessorPil(size={"shortest_edge": 256}, crop_size=square, resample=3, **imagenet)
    if family == "resnet":
        return ConvNextImageProcessorPil(size=middle, crop_pct=0.875, resample=3, **imagenet)
    if family == "clip":
        return CLIPImageProcessorPil(size=middle, crop_size=square, resample=3, **own)
    return SiglipImageProcessorPil(size=square, resample=3, **half)


def more_pictures() -> Iterator[Any]:
    """Those of the folder that NEST_TEST_PICTURES names, for who has photographs at hand."""
    folder = os.environ.get("NEST_TEST_PICTURES")
    for path in sorted(Path(folder).iterdir()) if folder else []:
        yield load(path)


@pytest.mark.reference
@pytest.mark.parametrize("name", PICTURES)
def test_pixels_are_the_reference_library_s(name: str) -> None:
    """Wide, high, odd, tiny and enlarged; the photograph's own pixels and noise."""
    theirs, ours = processor(name), pixel_settings(find(name))
    noise = np.random.default_rng(0).integers(0, 256, (301, 117, 3), dtype=np.uint8)
    with Image.open(COFFEE) as image:
        photograph = image.convert("RGB")
    shapes = [
        photograph,
        photograph.crop((0, 0, 201, 399)),
        photograph.resize((31, 23)),
        Image.fromarray(noise),
    ]
    for picture in [*shapes, photograph.resize((1, 1)), photograph.resize((700, 9)), *more_pictures()]:
        wanted = theirs(picture, return_tensors="np")["pixel_values"][0]
        found = ours(picture)
        assert found.dtype == wanted.dtype == np.float32
        np.testing.assert_array_equal(found, wanted)


def test_every_vision_entry_is_compared() -> None:
    assert len(PICTURES) == 6


def test_what_is_smaller_than_its_middle_has_black_around() -> None:
    settings = PixelSettings((3, 5), "nearest", crop=(6, 4))
    found = settings(Image.new("RGB", (9, 9), (255, 255, 255)))
    assert found.shape == (3, 6, 4)
    np.testing.assert_array_equal(found[0, :, 0], [0, 0, 1, 1, 1, 0])


def test_another_size_of_model_sees_the_same_part() -> None:
    middle = PixelSettings(256, "bicubic", crop=(224, 224))
    assert middle.to(224, 224) is middle
    assert (middle.to(518, 518).resize, middle.to(518, 518).crop) == (592, (518, 518))
    whole = PixelSettings((224, 224), "bilinear")
    assert whole.to(320, 224).resize == (320, 224)
    with Image.open(COFFEE) as image:
        assert middle.to(112, 224)(image).shape == (3, 112, 224)
