"""Where things stand in a study's directory (docs/STUDY_FORMAT.md)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.model import no_links

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.plan import ScheduledVisit

CANARY = "canary"
# A visit under way has this in its name; nothing that reads a study looks at it.
UNFINISHED = ".unfinished"
_NUMBER = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class StudyLayout:
    """Paths below `directory`."""

    directory: Path

    @property
    def facts(self) -> Path:
        """`study.json`."""
        return self.directory / "study.json"

    @property
    def plan(self) -> Path:
        """The frozen plan."""
        return self.directory / "plan.toml"

    @property
    def plan_files(self) -> Path:
        """Where the frozen plan's own files (scripts, configurations) stand."""
        return self.directory / "plan"

    @property
    def machine(self) -> Path:
        """`machine.json`."""
        return self.directory / "machine.json"

    @property
    def schedule(self) -> Path:
        """`schedule.json`."""
        return self.directory / "schedule.json"

    @property
    def search(self) -> Path:
        """`search.json`; there only where the study is a search."""
        return self.directory / "search.json"

    @property
    def paired(self) -> Path:
        """`paired.json`; there only where the study measures pairs until it can tell."""
        return self.directory / "paired.json"

    @property
    def visits(self) -> Path:
        """Below it: <cell>/<dataset>/<repetition>.<attempt>/."""
        return self.directory / "visits"

    @property
    def scratch(self) -> Path:
        """Where an image file stands while a visit uses it."""
        return self.directory / "scratch"

    @property
    def fleet(self) -> Path:
        """What a study on several nodes and its jobs say to each other; there only on a fleet."""
        return self.directory / "fleet"

    @property
    def extension(self) -> Path:
        """New top files, complete, on their way into place; there only while a study is extended."""
        return self.directory / ".extension"

    @property
    def staged(self) -> Path:
        """The same while they are written."""
        return self.directory / ".extension.part"

    @property
    def lock(self) -> Path:
        """Held by the one process that may write."""
        return self.directory / ".lock"

    def place_of(self, visit: ScheduledVisit) -> Path:
        """The directory of all attempts at a visit."""
        cell = CANARY if visit.canary else visit.cell_id
        return self.visits / cell / visit.dataset_id

    def attempts_at(self, visit: ScheduledVisit) -> dict[int, Path]:
        """Finished attempts by number, those too that were damaged since."""
        found = {}
        place = self.place_of(visit)
        for name, is_folder in no_links.names_in(place).items():
            repetition, _, number = name.partition(".")
            if is_folder and repetition == str(visit.repetition) and _NUMBER.fullmatch(number):
                found[int(number)] = place / name
        return dict(sorted(found.items()))

    def attempt(self, visit: ScheduledVisit, number: int) -> Path:
        """The directory of one attempt."""
        return self.place_of(visit) / f"{visit.repetition}.{number}"


def is_study(directory: Path) -> bool:
    """Whether a directory holds a study, be it one that is refused since its `study.json` is a link."""
    return os.path.lexists(StudyLayout(directory).facts)
