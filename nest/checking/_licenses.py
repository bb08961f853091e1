"""Identifiers of licences that models and their weights come under, as the SPDX list spells them (spdx.org)."""

from __future__ import annotations

import re

from nest._suggest import did_you_mean

__all__ = ["license_fault"]

_KNOWN = (
    "0BSD", "AFL-3.0", "AGPL-3.0-only", "AGPL-3.0-or-later", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause",
    "BSD-3-Clause", "BSD-3-Clause-Clear", "BSL-1.0", "CC-BY-2.0", "CC-BY-2.5", "CC-BY-3.0", "CC-BY-4.0",
    "CC-BY-NC-2.0", "CC-BY-NC-3.0", "CC-BY-NC-4.0", "CC-BY-NC-ND-3.0", "CC-BY-NC-ND-4.0", "CC-BY-NC-SA-2.0",
    "CC-BY-NC-SA-3.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CC0-1.0",
    "CDLA-Permissive-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0", "ECL-2.0", "EPL-1.0", "EPL-2.0", "EUPL-1.1",
    "EUPL-1.2", "GFDL-1.3-only", "GFDL-1.3-or-later", "GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-only",
    "GPL-3.0-or-later", "ISC", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later",
    "LPPL-1.3c", "MIT", "MIT-0", "MPL-2.0", "MS-PL", "NCSA", "ODbL-1.0", "OFL-1.1", "OSL-3.0", "PDDL-1.0",
    "PostgreSQL", "Unlicense", "WTFPL", "Zlib",
)  # fmt: skip
_OWN = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")
_UNKNOWN = "NOASSERTION"
"""SPDX's word where nobody has said."""


def license_fault(given: str) -> str | None:
    """What is wrong with an identifier; None where it is one: a site's list of licences compares them by name."""
    if given in (*_KNOWN, _UNKNOWN) or _OWN.fullmatch(given):
        return None
    spelt = next((known for known in _KNOWN if known.lower() == given.lower()), None)
    hint = f" SPDX spells it {spelt}." if spelt else did_you_mean(given, _KNOWN)
    return (
        f"expected an SPDX identifier, such as Apache-2.0 (LicenseRef-NAME for one that SPDX does not list, "
        f"{_UNKNOWN} where nobody has said); came '{given}'.{hint}"
    )
