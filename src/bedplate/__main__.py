"""`python -m bedplate`: the command line."""

from __future__ import annotations

from bedplate.cli import main

if __name__ == "__main__":
    main()
