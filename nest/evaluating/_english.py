"""English texts as they are compared: contractions, titles, spelling and numbers in one form.

Source: Radford et al., 2022, arXiv 2212.04356, appendix C; where the paper is silent, the reference implementation.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from nest.evaluating._letters import plain_letters, without_asides
from nest.evaluating._numbers import digits

__all__ = ["english"]

_FILLERS = re.compile(r"\b(hmm|mm|mhm|mmm|uh|um)\b")

_INFORMAL = {
    "won't": "will not",
    "can't": "can not",
    "let's": "let us",
    "ain't": "aint",
    "y'all": "you all",
    "wanna": "want to",
    "gotta": "got to",
    "gonna": "going to",
    "i'ma": "i am going to",
    "imma": "i am going to",
    "woulda": "would have",
    "coulda": "could have",
    "shoulda": "should have",
    "ma'am": "madam",
}
_TITLES = {
    "mr": "mister",
    "mrs": "missus",
    "st": "saint",
    "dr": "doctor",
    "prof": "professor",
    "capt": "captain",
    "gov": "governor",
    "ald": "alderman",
    "gen": "general",
    "sen": "senator",
    "rep": "representative",
    "pres": "president",
    "rev": "reverend",
    "hon": "honorable",
    "asst": "assistant",
    "assoc": "associate",
    "lt": "lieutenant",
    "col": "colonel",
    "jr": "junior",
    "sr": "senior",
    "esq": "esquire",
}
_ENDINGS = {
    "'d been": "had been",
    "'s been": "has been",
    "'d gone": "had gone",
    "'s gone": "has gone",
    "'d done": "had done",
    "'s got": "has got",
    "n't": "not",
    "'re": "are",
    "'s": "is",
    "'d": "would",
    "'ll": "will",
    "'t": "not",
    "'ve": "have",
    "'m": "am",
}
"""What may follow a word; the longer ones, which say more of what is meant, come first."""

_LONG_FORMS = [
    *((re.compile(rf"\b{short}\b"), long) for short, long in _INFORMAL.items()),
    *((re.compile(rf"\b{short}\b"), f"{long} ") for short, long in _TITLES.items()),
    *((re.compile(rf"{short}\b"), f" {long}") for short, long in _ENDINGS.items()),
]


def english(text: str) -> str:
    """The text in lower case, American spelling, without marks but those of numbers; one space between words."""
    text = _FILLERS.sub("", without_asides(text.lower()))
    text = re.sub(r"\s+'", "'", text)
    for short, long in _LONG_FORMS:
        text = short.sub(long, text)
    text = re.sub(r"(\d),(\d)", r"\1\2", text)
    text = re.sub(r"\.([^0-9]|$)", r" \1", text)
    text = digits(plain_letters(text, keep=".%$¢€£"))
    text = " ".join(_american().get(word, word) for word in text.split())
    # Marks of numbers that are of none.
    text = re.sub(r"[.$¢€£]([^0-9])", r" \1", text)
    text = re.sub(r"([^0-9])%", r"\1 ", text)
    return " ".join(text.split())


@cache
def _american() -> dict[str, str]:
    """British spellings -> American ones; the table is openai-whisper's, whose licence is beside it."""
    table = Path(__file__).with_name("data").joinpath("british_american.tsv").read_text(encoding="utf-8")
    return dict(line.split("\t") for line in table.splitlines())
