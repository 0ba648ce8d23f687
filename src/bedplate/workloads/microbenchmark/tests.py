"""What a visit of the microbenchmark consists of, by the names that plans, records and figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec

WORKLOAD = "microbenchmark"

# Level `kind` of a run, and level `pass` of one that reads: mounted anew before each test, or as it was left.
WRITE = "write"
READ = "read"
COLD = "cold"

# The phase under which the tests' figures stand, an item for each; in the course each test is a phase itself.
TESTS = "tests"
# A folder of the run with a document of the driver for each test, `<test>.json`, and what it was called before.
DOCUMENTS = "tests"
FORMER_DOCUMENTS = "lmdb"
# Beside the document of a test that has transactions: how many had ended at each second.
PROGRESS = "{test}.progress.jsonl"
# Processes that meet at the locks of one database, of engines that have it; on tables of its own.
TPCB = "tpcb"
# What the tests that a cell's settings do not have are called in the facts of a run, with commas between.
LEFT_OUT = "left_out"


def tests_of(spec: RunSpec) -> tuple[str, ...]:
    """The tests of a run in their order; they are its phases too."""
    return tuple(name for name in (spec.levels.text("tests") or "").split(",") if name)


def is_fill(test: str) -> bool:
    """Whether the test makes a new database."""
    return test.startswith("fill") or test == TPCB


def writes(test: str) -> bool:
    """Whether the test commits anything."""
    return is_fill(test) or test in ("overwrite", "readwhilewriting")


def is_synchronous(test: str) -> bool:
    """Whether its commits wait where the engine's settings leave it to the tests."""
    return demands_waiting(test) or test == TPCB


def demands_waiting(test: str) -> bool:
    """Whether it is left out where commits do not wait, as its name says that they do."""
    return test.endswith("sync")


def has_transactions(test: str) -> bool:
    """Whether what it counts are transactions, which its course has for each second."""
    return test == TPCB


def has_several_connections(test: str) -> bool:
    """Whether several have the database open at once."""
    return test in ("readwhilewriting", TPCB)
