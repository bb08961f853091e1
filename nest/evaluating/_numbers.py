"""Numbers and amounts of money in English words -> digits: `two hundred dollars` is `$200`.

Source: Radford et al., 2022, arXiv 2212.04356, appendix C; where the paper is silent, the reference implementation, and
what looks odd here is what that gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

__all__ = ["digits"]

_SMALL = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_ROUND = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_POWERS = (
    "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion", "octillion",
    "nonillion", "decillion",
)  # fmt: skip
_ONES = {word: value for value, word in enumerate(_SMALL, 1)}
_TENS = {word: 10 * value for value, word in enumerate(_ROUND, 2)}
_LARGE = {"hundred": 100} | {word: 1000**power for power, word in enumerate(_POWERS, 1)}
_ZEROS = {"o", "oh", "zero"}
_DIGITS = {*_ZEROS, *_ONES, *_TENS}
"""What may follow a point."""

Ended = dict[str, tuple[int, str]]
_ODD_ORDINALS: Ended = {
    "zeroth": (0, "th"),
    "first": (1, "st"),
    "second": (2, "nd"),
    "third": (3, "rd"),
    "fifth": (5, "th"),
    "twelfth": (12, "th"),
}


def _ordinal(word: str) -> str:
    return word + ("h" if word.endswith("t") else "th")


_ENDED_ONES: Ended = (
    {("sixes" if word == "six" else word + "s"): (value, "s") for word, value in _ONES.items()}
    | _ODD_ORDINALS
    | {_ordinal(word): (value, "th") for word, value in _ONES.items() if value > 3 and value not in (5, 12)}
)
_ENDED_TENS: Ended = {word[:-1] + "ies": (value, "s") for word, value in _TENS.items()} | {
    word[:-1] + "ieth": (value, "th") for word, value in _TENS.items()
}
_ENDED_LARGE: Ended = {
    word + ending: (value, ending) for word, value in _LARGE.items() for ending in ("s", "th")
}

_SIGNS = {"minus": "-", "negative": "-", "plus": "+", "positive": "+"}
_MONEY = {
    "pound": "£", "pounds": "£", "euro": "€", "euros": "€", "dollar": "$", "dollars": "$", "cent": "¢", "cents": "¢",
}  # fmt: skip
_SYMBOLS = {*_SIGNS.values(), *_MONEY.values()}
_TWICE = {"double": 2, "triple": 3}
_WORDS = {
    *_DIGITS, *_ENDED_ONES, *_ENDED_TENS, *_LARGE, *_ENDED_LARGE, *_SIGNS, *_MONEY, *_TWICE,
    "per", "percent", "and", "point",
}  # fmt: skip
_FIGURES = re.compile(r"\d+(\.\d+)?")
_HALF = re.compile(r"\band\s+a\s+half\b")


def digits(text: str) -> str:
    """The text, in lower case, with its numbers in digits; words are set apart by one space.

    `nineteen seventy six` is `1976`, `twenty first` is `21st`, `three point one percent` is `3.1%`, `one` stays.
    """
    words = _apart(_halves(text)).split()
    return _coins(" ".join(_Reader(words).read()))


def _halves(text: str) -> str:
    """`two and a half` as `two point five`; after a word that is no number, it stays."""
    *parts, last = _HALF.split(text)
    found = []
    for part in parts:
        if words := part.split():
            found += [part, "point five" if words[-1] in _DIGITS or words[-1] in _LARGE else "and a half"]
    return " ".join([*found, last])


def _apart(text: str) -> str:
    """Letters and figures as words of their own, but for the endings of numbers: `7pm` is `7 pm`, `7th` stays."""
    text = re.sub(r"([a-z])([0-9])", r"\1 \2", text)
    text = re.sub(r"([0-9])([a-z])", r"\1 \2", text)
    return re.sub(r"([0-9])\s+(st|nd|rd|th|s)\b", r"\1\2", text)


def _coins(text: str) -> str:
    """`$2 and ¢7` as `$2.07`, `$0.50` as `¢50`; and `one`, which is no number more often than it is."""
    text = re.sub(
        r"([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})\b", lambda m: f"{m[1]}{m[2]}.{int(m[3]):02d}", text
    )
    text = re.sub(r"[€£$]0.([0-9]{1,2})\b", lambda m: f"¢{int(m[1])}", text)
    return re.sub(r"\b1(s?)\b", r"one\1", text)


class _Reader:
    """Words in, words out: a number that is being said is held until a word comes that is no part of it.

    `held` is an integer that more can be added to, or a text of digits to which more can only be appended, such as a
    decimal fraction or a year said in two halves.
    """

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.held: int | str | None = None
        self.sign = ""

    def read(self) -> Iterator[str]:
        """The words, with numbers in digits."""
        at = 0
        while at < len(self.words):
            before = self.words[at - 1] if at else ""
            after = self.words[at + 1] if at + 1 < len(self.words) else ""
            used = 1
            for word in self._word(self.words[at], before, after):
                if word is None:
                    used = 2
                else:
                    yield word
            at += used
        yield from self._release()

    def _word(self, word: str, before: str, after: str) -> Iterator[str | None]:
        """What one word gives; None says that it takes the next one with it."""
        numeric = after in _WORDS or _is_figures(after)
        if _is_figures(word[1:] if word[0] in _SYMBOLS else word):
            yield from self._figures(word)
        elif word not in _WORDS:
            yield from self._plain(word)
        elif word in _DIGITS or word in _LARGE:
            yield from self._number(word, before)
        elif word in _ENDED_ONES or word in _ENDED_TENS or word in _ENDED_LARGE:
            yield from self._ended(word, before)
        elif word in _SIGNS:
            if numeric:
                yield from self._release()
                self.sign = _SIGNS[word]
            else:
                yield from self._plain(word)
        elif word in _MONEY:
            if self.held is None:
                yield self._said(word)
            else:
                self.sign = _MONEY[word]
                yield from self._release()
        elif word in ("per", "percent"):
            yield from self._hundredths(word, after)
        elif numeric:
            yield from self._joint(word, before, after)
        else:
            yield from self._plain(word)

    def _said(self, word: str) -> str:
        """A word behind the sign or symbol that waits for one."""
        found, self.sign, self.held = f"{self.sign}{word}", "", None
        return found

    def _release(self) -> Iterator[str]:
        if self.held is not None:
            yield self._said(str(self.held))

    def _plain(self, word: str) -> Iterator[str]:
        yield from self._release()
        yield self._said(word)

    def _figures(self, word: str) -> Iterator[str]:
        if isinstance(self.held, str) and self.held.endswith("."):
            self.held += word
            return
        yield from self._release()
        if word[0] in _SYMBOLS:
            self.sign, word = word[0], word[1:]
        value = Fraction(word)
        self.held = value.numerator if value.denominator == 1 else word

    def _number(self, word: str, before: str) -> Iterator[str]:
        if word in _ZEROS:
            self.held = f"{self.held or ''}0"
        elif word in _ONES:
            self.held = self._with_ones(_ONES[word], before)
        elif word in _TENS:
            self.held = self._with_tens(_TENS[word])
        else:
            yield from self._times(_LARGE[word], "", fails=self.held == 0)

    def _ended(self, word: str, before: str) -> Iterator[str]:
        """An ordinal or a plural: no number goes on after it."""
        if word in _ENDED_LARGE:
            value, ending = _ENDED_LARGE[word]
            yield from self._times(value, ending, fails=False)
            return
        if word in _ENDED_ONES:
            value, ending = _ENDED_ONES[word]
            whole = self._with_ones(value, before)
        else:
            value, ending = _ENDED_TENS[word]
            whole = self._with_tens(value)
        yield self._said(f"{whole}{ending}")

    def _with_ones(self, value: int, before: str) -> int | str:
        """What is held, and 1 to 19 after it."""
        if self.held is None:
            return value
        if isinstance(self.held, str) or before in _ONES:
            text = str(self.held)
            return f"{text[:-1] if before in _TENS and value < 10 else text}{value}"
        return self._sum(value, 10 if value < 10 else 100)

    def _with_tens(self, value: int) -> int | str:
        """What is held, and 20 to 90 after it."""
        if self.held is None:
            return value
        return f"{self.held}{value}" if isinstance(self.held, str) else self._sum(value, 100)

    def _sum(self, value: int, room: int) -> int | str:
        """Their sum where the held integer ends in enough zeros, else one behind the other."""
        assert isinstance(self.held, int)
        return self.held + value if self.held % room == 0 else f"{self.held}{value}"

    def _times(self, value: int, ending: str, *, fails: bool) -> Iterator[str]:
        """What is held, so many times; of an integer its last three digits, since the others were multiplied before."""
        if self.held is None:
            found: int = value
        elif isinstance(self.held, str) or fails:
            product = Fraction(self.held) * value if _is_fraction(str(self.held)) else None
            if product is None or product.denominator != 1:
                yield from self._release()
                found = value
            else:
                found = product.numerator
        else:
            found = self.held // 1000 * 1000 + self.held % 1000 * value
        if ending:
            yield self._said(f"{found}{ending}")
        else:
            self.held = found

    def _hundredths(self, word: str, after: str) -> Iterator[str | None]:
        if self.held is not None and (word == "percent" or after == "cent"):
            yield self._said(f"{self.held}%")
            if word == "per":
                yield None
        else:
            yield from self._plain(word)

    def _joint(self, word: str, before: str, after: str) -> Iterator[str | None]:
        """`and`, `point`, `double` and `triple` before what may be a number."""
        if word == "and":
            if before not in _LARGE:
                yield from self._plain(word)
        elif word == "point":
            if after in _DIGITS or _is_figures(after):
                self.held = f"{self.held or ''}."
        elif after in _ONES or after in _ZEROS:
            self.held = f"{self.held or ''}{str(_ONES.get(after, 0)) * _TWICE[word]}"
            yield None
        else:
            yield from self._plain(word)


def _is_figures(word: str) -> bool:
    return _FIGURES.fullmatch(word) is not None


def _is_fraction(text: str) -> bool:
    try:
        Fraction(text)
    except ValueError:
        return False
    return True
