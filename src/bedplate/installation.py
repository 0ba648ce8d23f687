"""Where the files are that come with bedplate beside its package, and how this bedplate is called.

A checkout has them beside `src`; an installed package has them in its folder `shipped`, with the same names.
"""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "shipped"
IS_INSTALLED = _SHIPPED.is_dir()

# As it is typed where a message says what to do next.
COMMAND = "bedplate" if IS_INSTALLED else "./bedplate"


def sources() -> Path:
    """The folder that holds the package `bedplate`, for PYTHONPATH."""
    return _PACKAGE.parent


def top() -> Path:
    """The folder of the launcher and its requirements; of a wheel there is neither."""
    return _PACKAGE.parents[1]


def shipped(folder: str) -> Path:
    """`plans`, `claims` or `drivers`; `examples` are there for a plan that names them."""
    return (_SHIPPED if IS_INSTALLED else top()) / folder


def launcher() -> Path:
    """The program that starts this bedplate: its own launcher, or what pip made of a wheel."""
    own = top() / "bedplate"
    return own if own.is_file() else Path(sys.prefix) / "bin" / "bedplate"
