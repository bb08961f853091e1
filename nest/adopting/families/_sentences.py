"""How a sentence encoder makes a vector of a text, as `modules.json` and the files that it names say."""

from __future__ import annotations

from typing import Any

from nest.adopting.families._text import tokenizer_table
from nest.adopting.family import Refused, Tables
from nest.adopting.keys import shown
from nest.adopting.repository import Repository

__all__ = ["sentence_facts", "sentence_tables"]

_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_IDLE = ("word_embedding_dimension", "embedding_dimension", "include_prompt")


def sentence_facts(repository: Repository) -> dict[str, Any]:
    """The static fields `pooling` and `normalize`.

    Raises:
        Refused: another chain of modules than encoder, pooling and perhaps scaling, or another pooling.
    """
    modules = repository.json("modules.json")
    kinds = [str(one.get("type")).rpartition(".")[2] for one in modules] if isinstance(modules, list) else []
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise Refused(
            f"modules.json has {shown(kinds)}, and the definition has Transformer, Pooling and perhaps Normalize"
        )
    if modules[0].get("path"):
        raise Refused(
            f"modules.json: the encoder is in {shown(modules[0]['path'])}, and the repository's root is expected"
        )
    return {
        "pooling": _pooling(repository, f"{modules[1].get('path')}/config.json"),
        "normalize": len(kinds) == 3,
    }


def _pooling(repository: Repository, file: str) -> str:
    given = repository.json(file)
    if not isinstance(given, dict):
        raise Refused(f"{file}, which modules.json names, is not there")
    chosen = [key for key, value in given.items() if key.startswith("pooling_mode_") and value is not False]
    if isinstance(mode := given.get("pooling_mode"), str) and mode in _POOLINGS.values() and not chosen:
        return mode
    unknown = [key for key in given if not key.startswith("pooling_mode") and key not in _IDLE]
    if len(chosen) != 1 or chosen[0] not in _POOLINGS or unknown:
        what = unknown or chosen or ["pooling_mode"]
        raise Refused(
            f"{file}: '{what[0]}' is {shown(given.get(what[0]))}, and the definition has the mean or the first token"
        )
    if given.get("include_prompt") is False:
        raise Refused(f"{file}: 'include_prompt' is false, and the definition pools all tokens of a text")
    return _POOLINGS[chosen[0]]


def sentence_tables(repository: Repository, most: int) -> Tables:
    """`[task]`, `[tokenizer]` and `[embedding]`; none where there is no tokenizer that nest reads.

    Args:
        most: tokens that the encoder has positions for.

    Raises:
        Refused: texts are changed before they are tokenized, in a way that nest does not.
    """
    given = repository.json("sentence_bert_config.json")
    given = given if isinstance(given, dict) else {}
    if given.get("do_lower_case") is True:
        raise Refused(
            "sentence_bert_config.json: 'do_lower_case' is true, and nest leaves case to the tokenizer"
        )
    limit = given.get("max_seq_length")
    tables = tokenizer_table(repository, max_tokens=min(limit, most) if type(limit) is int else most)
    if not tables:
        return {}
    prompts = _prompts(repository)
    return {
        "task": {"kind": "sentence-embedding"},
        **tables,
        **({"embedding": {"prompts": prompts}} if prompts else {}),
    }


def _prompts(repository: Repository) -> dict[str, str]:
    """What is put in front of some texts, by what they are."""
    given = repository.json("config_sentence_transformers.json")
    given = given if isinstance(given, dict) else {}
    if given.get("default_prompt_name") is not None:
        raise Refused(
            f"config_sentence_transformers.json: 'default_prompt_name' is {shown(given['default_prompt_name'])}, and "
            f"nest puts a prompt in front of a text only where it is asked to"
        )
    prompts = given.get("prompts")
    pairs = prompts.items() if isinstance(prompts, dict) else ()
    return {name: text for name, text in pairs if isinstance(text, str) and text}
