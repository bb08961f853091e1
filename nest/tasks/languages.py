"""Names of the languages that Whisper's checkpoints know by their codes."""

from __future__ import annotations

__all__ = ["NAMES", "language_code", "language_name"]

_TABLE = """
af Afrikaans|am Amharic|ar Arabic|as Assamese|az Azerbaijani|ba Bashkir|be Belarusian|bg Bulgarian|bn Bengali
bo Tibetan|br Breton|bs Bosnian|ca Catalan|cs Czech|cy Welsh|da Danish|de German|el Greek|en English|es Spanish
et Estonian|eu Basque|fa Persian|fi Finnish|fo Faroese|fr French|gl Galician|gu Gujarati|ha Hausa|haw Hawaiian
he Hebrew|hi Hindi|hr Croatian|ht Haitian Creole|hu Hungarian|hy Armenian|id Indonesian|is Icelandic|it Italian
ja Japanese|jw Javanese|ka Georgian|kk Kazakh|km Khmer|kn Kannada|ko Korean|la Latin|lb Luxembourgish|ln Lingala
lo Lao|lt Lithuanian|lv Latvian|mg Malagasy|mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay
mt Maltese|my Myanmar|ne Nepali|nl Dutch|nn Nynorsk|no Norwegian|oc Occitan|pa Punjabi|pl Polish|ps Pashto
pt Portuguese|ro Romanian|ru Russian|sa Sanskrit|sd Sindhi|si Sinhala|sk Slovak|sl Slovenian|sn Shona|so Somali
sq Albanian|sr Serbian|su Sundanese|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai|tk Turkmen|tl Tagalog
tr Turkish|tt Tatar|uk Ukrainian|ur Urdu|uz Uzbek|vi Vietnamese|yi Yiddish|yo Yoruba|yue Cantonese|zh Chinese
"""

NAMES = {
    code: name for line in _TABLE.split("\n") for code, _, name in (i.partition(" ") for i in line.split("|"))
}
NAMES.pop("")
"""English name of each code."""

_OTHERS = {
    "burmese": "my", "castilian": "es", "catalan; valencian": "ca", "farsi": "fa", "flemish": "nl", "haitian": "ht",
    "letzeburgesch": "lb", "mandarin": "zh", "moldavian": "ro", "moldovan": "ro", "panjabi": "pa", "pushto": "ps",
    "sinhalese": "si", "valencian": "ca", "javanese": "jw", "jv": "jw", "nb": "no", "iw": "he",
}  # fmt: skip
_CODES = {name.casefold(): code for code, name in NAMES.items()} | _OTHERS


def language_code(given: str) -> str:
    """The code of a language that is given by its code or its English name; what is neither is given back as it is."""
    wanted = given.strip().casefold()
    return wanted if wanted in NAMES else _CODES.get(wanted, given)


def language_name(code: str) -> str:
    """The English name of the language with this code; of one that is not known, the code."""
    return NAMES.get(code, code)
