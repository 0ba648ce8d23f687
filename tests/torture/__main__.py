"""`python -m tests.torture`; the trials' own processes import `run` by its name."""

from __future__ import annotations

import sys

from tests.torture.run import main

if __name__ == "__main__":
    sys.exit(main())
