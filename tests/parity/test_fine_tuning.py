"""The guide on fine-tuning, run on each framework beside the reference library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest

from ..docs import shell
from ..docs.markdown import ROOT, blocks

pytestmark = [pytest.mark.reference, pytest.mark.weights]

Array = np.ndarray[Any, Any]
# Of the largest one.
GRADIENTS = 1e-4
LOGITS = 1e-5


def sections() -> dict[str, list[str]]:
    """The guide's Python by heading."""
    found: dict[str, list[str]] = {}
    for block in blocks("docs/guides/fine-tuning.md"):
        if block.language == "python":
            found.setdefault(block.heading, []).append(block.code)
    return found


def run(blocks: list[str], names: dict[str, Any]) -> None:
    for block in blocks:
        exec(compile(block, "fine-tuning", "exec"), names)


def tensors(folder: Path) -> dict[str, Array]:
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def library(folder: Path) -> Any:
    from transformers import WhisperForConditionalGeneration

    return WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="sdpa").eval()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The library's loss and gradients on the guide's batch, by the checkpoint's names.

    From logits in doubles: torch's cross entropy of this many ids in f32 is 1.6e-5 off.
    """
    import torch

    folder = tmp_path_factory.mktemp("published")
    model = nest.load("whisper-tiny.en", backend="torch")
    nest.save(model, folder, "hf")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        run(sections()["The data"], names)
        mel, tokens, counted = map(torch.from_numpy, names["batch"](model))
    theirs = library(folder)
    logits = theirs(input_features=mel, decoder_input_ids=tokens[:, :-1].long()).logits
    loss = torch.nn.functional.cross_entropy(logits[counted].double(), tokens[:, 1:][counted].long())
    loss.backward()
    gradients = {n: p.grad.numpy() for n, p in theirs.named_parameters() if p.grad is not None}
    return {"loss": loss.item(), "gradients": gradients, "mel": mel, "tokens": tokens}


def gradients_of_nnx(names: dict[str, Any]) -> tuple[float, Any]:
    """The first step's, as a model that holds them for parameters."""
    from flax import nnx

    given = [names[n] for n in ("model", "mel", "tokens", "counted")]
    loss, gradients = names["loss_and_gradients"](*given)
    holder = nnx.clone(names["model"])
    nnx.update(holder, gradients)
    return float(loss), holder


def gradients_of_torch(names: dict[str, Any]) -> tuple[float, Any]:
    import copy

    loss = names["loss_of"](names["model"])
    loss.backward()
    holder = copy.deepcopy(names["model"])
    holder.load_state_dict({path: p.grad for path, p in names["model"].named_parameters()})
    return loss.item(), holder


FRAMEWORKS = {"Flax NNX": gradients_of_nnx, "PyTorch": gradients_of_torch}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_guide(
    framework: str,
    reference: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    blocks = sections()
    make, *train = blocks[framework]
    names: dict[str, Any] = {}
    run([*blocks["The data"], make], names)

    loss, holder = FRAMEWORKS[framework](names)
    assert loss == pytest.approx(reference["loss"], rel=2e-6)
    nest.save(holder, "gradients", "hf")  # under the checkpoint's names
    found = tensors(tmp_path / "gradients")
    wanted = reference["gradients"]
    assert wanted.keys() - found.keys() == set()
    assert found.keys() - wanted.keys() <= {"model.encoder.embed_positions.weight", "proj_out.weight"}
    for name, want in wanted.items():
        assert np.abs(found[name] - want).max() <= GRADIENTS * np.abs(want).max(), name

    run(train, names)
    assert len(names["losses"]) <= 30
    assert names["losses"][-1] < names["losses"][0] / 2
    assert capsys.readouterr().out.splitlines()[-1] == "HE MIGHT EVEN HAVE BEEN MADE AMIABLE HIMSELF."

    run(blocks["What was saved"], names)
    reopened(names, reference)


def test_nothing_of_the_guide_is_left_over(tmp_path: Path) -> None:
    assert sections().keys() == {"The data", *FRAMEWORKS, "What was saved"}
    others = [b for b in blocks("docs/guides/fine-tuning.md") if b.language != "python"]
    assert [shell.run(b.code, tmp_path) for b in others] == [("", 0)]


def reopened(names: dict[str, Any], reference: dict[str, Any]) -> None:
    """The trained module, what nest reads again and what the library reads again give the same logits."""
    import torch

    mel, tokens = reference["mel"][3:], reference["tokens"][3:, :-1]
    with torch.no_grad():
        want = names["library"](input_features=mel, decoder_input_ids=tokens.long()).logits.numpy()
    for model in (names["model"], names["again"]):
        states = np.asarray(numpy_of(model.encode(mel.numpy())))
        logits = numpy_of(model.decode(tokens.numpy(), states))
        assert np.abs(logits - want).max() <= LOGITS * np.abs(want).max(), model.backend


def numpy_of(value: Any) -> Array:
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)
