"""Whether backends compute what a definition says: the parity matrix, and the first block that diverges."""

from __future__ import annotations

from nest.verify._diff import Divergence, diff
from nest.verify._matrix import matrix
from nest.verify.conditions import conditions
from nest.verify.rows import Row, markdown
from nest.verify.saving import save
from nest.verify.setting import Setting, setting_of

__all__ = ["Divergence", "Row", "Setting", "conditions", "diff", "markdown", "matrix", "save", "setting_of"]
