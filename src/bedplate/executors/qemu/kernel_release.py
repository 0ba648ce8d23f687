"""Names of kernels: what a plan may ask for, and which release answers it."""

from __future__ import annotations

import re

from bedplate.errors import PlanError
from bedplate.model.cell import KernelLevels

# `6.12`, `6.1.0-56`, `6.12.95+deb12-amd64`
_RELEASE = re.compile(r"\d+\.\d+[\w.+~-]*", re.ASCII)


def is_path(asked: str) -> bool:
    """Whether a path of a self-built kernel was asked for, and no release."""
    return "/" in asked


def check_asked(asked: str) -> str:
    """The beginning of a release, as it was asked for; PlanError says what is allowed."""
    if _RELEASE.fullmatch(asked) is None:
        raise PlanError(
            f"{asked!r} names no kernel; ask for the beginning of a release ('6.12'), a whole one "
            f"('6.12.95+deb12-amd64') or the path of a kernel ('/usr/src/linux')"
        )
    return asked


def accepts(asked: str, release: str) -> bool:
    """Whether `release` begins with what was asked, and no number is cut: 6.1 is not 6.12."""
    return KernelLevels(asked).takes(release)


def release_key(release: str) -> tuple[int, ...]:
    """The numbers of a release, for ordering: (6, 12, 95, 12) of `6.12.95+deb12-amd64`.

    The flavour counts for nothing, so that the 64 of `amd64` is no number here.
    """
    numbers = re.match(r"[\d.]+(?:[+~][a-z]*[\d.]+)*(?:-\d+)?", release)
    return tuple(int(number) for number in re.findall(r"\d+", numbers[0])) if numbers else ()
