"""What a name of a tensor says: which part of a network it is of, whatever its author calls that."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Template", "likeness", "meaning", "templates"]

_NOT = r"(?<![a-z])"
_END = r"(?![a-z])"


def _word(*names: str) -> re.Pattern[str]:
    return re.compile(rf"{_NOT}(?:{'|'.join(names)}){_END}")


_GROUPS: dict[str, dict[str, re.Pattern[str]]] = {
    "kind": {"bias": re.compile(r"(?:bias|beta)$")},
    "side": {
        "decoder": _word("decoder", "text_model", "text"),
        "encoder": _word("encoder", "vision_model", "vision"),
    },
    "reach": {
        "cross": _word("encoder_attn", "cross", "cross_attn", "crossattention"),
        "self": _word("self_attn", "self"),
    },
    "norm": {"norm": re.compile(r"norm|(?<![a-z])ln(?![a-z])|(?<![a-z])bn(?![a-z])|ln_f")},
    "place": {
        "last": re.compile(
            r"(?:^|\.)(?:[a-z]+\.)?(?:norm|ln_f|final_norm|layernorm|final_layernorm|encoder_norm|decoder_norm|layer_norm"
            r"|post_layernorm|last_norm)\.(?:weight|bias)$"
        ),
    },
    "projection": {
        "qkv": _word("c_attn", "wqkv", "qkv", "qkv_proj", "in_proj_weight", "in_proj", "query_key_value"),
        "gate_up": _word("gate_up_proj", "wi"),
        "q": _word("q", "q_proj", "query", "wq", "q_lin", "q_norm"),
        "k": _word("k", "k_proj", "key", "wk", "k_lin", "k_norm"),
        "v": _word("v", "v_proj", "value", "wv", "v_lin"),
        "gate": _word("gate", "gate_proj", "w1"),
        "up": _word("up", "up_proj", "fc1", "fc_in", "c_fc", "intermediate", "lin1", "w3", "dense_h_to_4h"),
        "down": _word("down", "down_proj", "fc2", "fc_out", "lin2", "w2", "dense_4h_to_h"),
    },
    "table": {
        "position": re.compile(r"position|wpe|pos_embed"),
        "type": re.compile(r"token_type|type_embedding|segment"),
        "token": re.compile(r"embed_tokens|tok_embeddings|token_embedding|word_embedding|wte"),
        "patch": re.compile(r"patch"),
        "class": re.compile(r"cls_token|class_token|class_embedding"),
        "embedding norm": re.compile(r"embedding_norm|embeddings\.(?:layernorm|norm)"),
    },
    "end": {
        "pooler": re.compile(r"pooler"),
        "follows": re.compile(r"seq_relationship|follows"),
        "head": re.compile(r"head|classifier|predictions|cls\.|proj_out"),
    },
    "number": {
        "1": re.compile(r"conv1|\.layer\.0\."),
        "2": re.compile(r"conv2|\.layer\.1\."),
        "3": re.compile(r"conv3|\.layer\.2\."),
        "shortcut": re.compile(r"shortcut|downsample"),
    },
    "statistic": {"mean": re.compile(r"running_mean"), "variance": re.compile(r"running_var")},
}
_FIRST = re.compile(
    r"input_layernorm|ln_1|norm1|layernorm_before|attention_norm|attn_norm|attn_layer_norm|attention\.output\.layernorm|self_attn_layer_norm"
)
_SECOND = re.compile(
    r"post_attention_layernorm|ln_2|norm2|layernorm_after|mlp_norm|final_layer_norm|(?<!attention\.)output\.layernorm"
)
_ATTENTION = re.compile(r"attn|attention")
_OUT = re.compile(
    r"(?:out_proj|o_proj|out_lin|wo|c_proj|output\.dense|attention\.output)(?=\.(?:weight|bias)$)"
)


_INDEX = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class Template:
    """A name in which `{i}`, `{j}`, ... stand for indices, and the names that it stands for, in the order of those."""

    text: str
    names: tuple[str, ...]
    indices: tuple[tuple[int, ...], ...]


def templates(names: Iterable[str], *, deepest: int = 8) -> list[Template]:
    """The names, those that differ by indices alone together; a name that is alone stands for itself.

    Args:
        names: all of them.
        deepest: so many indices are taken as such; further ones are part of a name.
    """
    found: dict[str, list[tuple[tuple[int, ...], str]]] = {}
    for name in names:
        parts = _INDEX.split(name, maxsplit=deepest)
        text = parts[0] + "".join(
            f"{{{letter}}}{part}" for letter, part in zip("ijklmnop", parts[1:], strict=False)
        )
        found.setdefault(text, []).append((tuple(map(int, _INDEX.findall(name)[:deepest])), name))
    return [
        Template(
            text if len(group) > 1 else group[0][1],
            tuple(name for _, name in sorted(group)),
            tuple(index for index, _ in sorted(group)) if len(group) > 1 else ((),),
        )
        for text, group in found.items()
    ]


def meaning(name: str) -> dict[str, str]:
    """The role that a name has in each group of roles where it says one."""
    text = name.lower()
    found = {
        group: next(role for role, pattern in roles.items() if pattern.search(text))
        for group, roles in _GROUPS.items()
        if any(pattern.search(text) for pattern in roles.values())
    }
    found.setdefault("kind", "weight")
    if "{i}" in text or _INDEX.search(text):
        found.pop("place", None)
        for role, pattern in (("first", _FIRST), ("second", _SECOND)):
            if pattern.search(text):
                found["place"] = role
    if "norm" in found:
        if found.get("table") != "embedding norm":
            found.pop("table", None)
        if "cross" in text or "encoder_attn" in text:
            found["place"] = "cross"
        if found.get("projection") in ("up", "down", "gate"):
            found.pop("projection")
    elif "projection" not in found and (out := _OUT.search(text)) is not None:
        attends = _ATTENTION.search(text) is not None
        found["projection"] = (
            "o" if attends or (out[0] in ("o_proj", "out_proj", "wo") and "mlp" not in text) else "down"
        )
    if "norm" not in found and found.get("projection") in ("up", "down", "gate", "gate_up"):
        found["part"] = "mlp"
    elif _ATTENTION.search(text) and "norm" not in found:
        found["part"] = "attention"
    elif re.search(r"mlp|ffn|feed_forward", text) and "norm" not in found:
        found["part"] = "mlp"
    return found


_STRICT = ("kind", "projection", "norm", "place", "table", "end", "reach", "number", "statistic")
_WEIGHTS = {"kind": 1.0, "side": 1.0, "projection": 3.0, "norm": 2.0, "place": 3.0, "table": 3.0, "end": 2.0,
            "part": 1.0, "reach": 2.0, "number": 3.0, "statistic": 3.0}  # fmt: skip


def likeness(one: str, other: str) -> float | None:
    """How much two names say the same; None where they contradict each other."""
    ours, theirs = meaning(one), meaning(other)
    if (
        any((group in ours) != (group in theirs) for group in ("norm", "statistic"))
        or ours["kind"] != theirs["kind"]
    ):
        return None
    score = 0.0
    for group in ours.keys() | theirs.keys():
        mine, its = ours.get(group), theirs.get(group)
        if mine == its:
            score += _WEIGHTS[group]
        elif mine is not None and its is not None:
            if group in _STRICT or group == "part":
                return None
            score -= _WEIGHTS[group]
        else:
            score -= 0.4 * _WEIGHTS[group]
    return score + _shared(one, other)


def _shared(one: str, other: str) -> float:
    """The share of the words that both names have, as a tie breaker."""
    ours, theirs = ({word for word in re.split(r"[._{}]+", name.lower()) if word} for name in (one, other))
    return len(ours & theirs) / max(1, len(ours | theirs))
