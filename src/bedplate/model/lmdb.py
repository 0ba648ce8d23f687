"""What an LMDB visit consists of, by the names that plans, records and figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.cell import RunSpec
    from bedplate.model.levels import Scalar

WORKLOAD = "lmdb"

# Level `kind` of a run, and level `pass` of one that reads: mounted anew before each test, or as it was left.
WRITE = "write"
READ = "read"
COLD = "cold"
WARM = "warm"

# Level `sync` of the environment: as published, or one of the library's modes for every test that writes.
BY_TEST = "by-test"
# What commits a test that is called synchronous cannot do.
ASYNCHRONOUS = ("nosync", "mapasync")

# What a plan may ask for. `by-test` is the published way: synchronous for the tests that are called so, else nosync.
SYNC_MODES = (BY_TEST, "full", "nometasync", "nosync", "mapasync")
PREALLOCATIONS = ("none", "ftruncate", "fallocate", "written")

# The phase under which the tests' figures stand, an item for each; in the course each test is a phase itself.
TESTS = "tests"

# How the environment is opened where a plan says nothing.
_SETTINGS: Mapping[str, Scalar] = {
    "sync": BY_TEST,
    "writemap": False,
    "readahead": True,
    "preallocation": "none",
}

# A folder of the run with a document of the driver for each test: `<test>.json`.
DOCUMENTS = "lmdb"
# What the tests that a cell's sync mode does not have are called in the facts of a run, with commas between.
LEFT_OUT = "left_out"


def tests_of(spec: RunSpec) -> tuple[str, ...]:
    """The tests of a run in their order; they are its phases too."""
    return tuple(name for name in (spec.levels.text("tests") or "").split(",") if name)


def settings_in_force(asked: Levels) -> Levels:
    """Every setting of the environment, asked for or not."""
    return Levels({**_SETTINGS, **asked})


def is_fill(test: str) -> bool:
    """Whether the test makes a new database."""
    return test.startswith("fill")


def writes(test: str) -> bool:
    """Whether the test commits anything."""
    return is_fill(test) or test in ("overwrite", "readwhilewriting")


def is_synchronous(test: str) -> bool:
    """Whether the test commits synchronously by its name."""
    return test.endswith("sync")
