"""What records alone say of an engine: the role `model` of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate import registry

if TYPE_CHECKING:
    from bedplate.model.cell import Cell
    from bedplate.model.levels import Levels

# How commits wait is left to what each test is called, as in the published microbenchmark.
BY_TEST = "by-test"


@dataclass(frozen=True)
class EngineModel:
    """An engine whose commits wait for the device; others say so.

    `label` is what a person calls it; `plan_words` says how a plan begins the names of its cells' levels, by how cells do.
    `is_built`: it is built beforehand, so that its version and what is compiled in are levels of a cell.
    `making` is what the step of a visit is called that makes a server's data directory. `block_level` is the level of a cell that is its block size, chosen when it is built, made or opened; None where there is
    none to choose. `before_block` stands before it where a cell is named by that alone. So many power cuts `cuts_per_s` are
    replayed, on two idle cores. `configuration_words` is what a text beside its settings is called. A cell's name has its settings but the
    `unnamed_settings`.
    `commit_setting` is what says how a commit waits, of an engine of which each test of a microbenchmark may have another
    (`BY_TEST`); `commit_modes` are its values in tests that are called synchronous, and in the others. `more_tests` are those of a
    microbenchmark that not every engine has. `library_settings` say in cells which library it is, where a plan may name one.
    """

    label: str
    plan_words: Mapping[str, str] = field(default_factory=dict)
    is_built: bool = False
    making: str = "initdb"
    block_level: str | None = None
    before_block: str | None = None
    # Of PostgreSQL: 70 took two workers 20 to 24 s, half of which they waited; a third uses that time. Not measured.
    cuts_per_s: float = 4.0
    configuration_words: str = "own configuration"
    unnamed_settings: frozenset[str] = frozenset()
    commit_setting: str = ""
    commit_modes: tuple[str, str] = ("", "")
    more_tests: tuple[str, ...] = ()
    library_settings: tuple[str, ...] = ()

    def block_bytes(self, cell: Cell) -> int | None:
        """The database block size of a cell; None where there is none to choose, or none was asked for."""
        found = None if self.block_level is None else cell.levels.get(self.block_level)
        return found if isinstance(found, int) else None

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:  # noqa: ARG002 -- of engines that may not
        """Whether a commit waits for a sync, by what was read back (`in_force`, by name), else by what the cell asks for."""
        return True

    def lets_one_in(self, settings: Levels) -> str | None:  # noqa: ARG002 -- of engines that may
        """The setting, as a plan says it, by which one connection keeps all others out; None where several may come."""
        return None

    def commit_mode(self, settings: Levels, *, synchronous: bool = True) -> str:
        """How a commit waits, by the setting's value: of a test that is called synchronous, or of another."""
        asked = settings.text(self.commit_setting) or BY_TEST
        return self.commit_modes[0 if synchronous else 1] if asked == BY_TEST else asked

    def waits_in_test(self, settings: Levels, *, synchronous: bool) -> bool:
        """Whether the commits of a test wait for a sync."""
        mode = self.commit_mode(settings, synchronous=synchronous)
        return self.waits(settings.updated(**{self.commit_setting: mode}), {})


def database_block_levels() -> frozenset[str]:
    """What the engines call the database block size, each a level by its dotted name."""
    named = (engine_model(engine).block_level for engine in registry.ENGINES)
    return frozenset(name for name in named if name is not None)


def library_levels() -> frozenset[str]:
    """What says in cells which library an engine is, each a level by its dotted name."""
    named = (engine_model(engine).library_settings for engine in registry.ENGINES)
    return frozenset(f"cluster.settings.{name}" for names in named for name in names)


def engine_model(engine: str) -> EngineModel:
    """That of an engine; PlanError lists the known ones."""
    model: EngineModel = registry.engine_part(engine, "model")
    return model
