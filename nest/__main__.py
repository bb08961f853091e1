"""`python -m nest`: the same as the command `nest`."""

from __future__ import annotations

import sys

from nest.cli import main

if __name__ == "__main__":
    sys.exit(main())
