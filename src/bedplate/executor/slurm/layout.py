"""Where a study keeps what it and its nodes say to each other, below `<study>/fleet`."""

from __future__ import annotations

import os
import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bedplate
from bedplate.executor.slurm.job_folder import JobFolders
from bedplate.study.layout import StudyLayout
from bedplate.study.nodes import nodes_directory, read_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.fleet import NodeFacts


@dataclass(frozen=True)
class FleetLayout:
    """Paths of one study's fleet."""

    directory: Path

    @classmethod
    def of_study(cls, study: Path) -> FleetLayout:
        """That of a study, which need not exist yet."""
        return cls(StudyLayout(study).fleet)

    @property
    def jobs(self) -> JobFolders:
        """The jobs that live visits."""
        return JobFolders(self.directory / "jobs")

    @property
    def cancelled(self) -> Path:
        """There while `bedplate cancel` wants no further job."""
        return self.directory / "cancelled"

    def key(self) -> str:
        """What the names of all of the study's jobs begin with; made on first use."""
        file = self.directory / "key"
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            # Of two starts at once the first one's is kept, and nobody reads half of one.
            fresh = self.directory / f".key-{secrets.token_hex(5)}"
            fresh.write_text(f"bedplate-{secrets.token_hex(5)}\n", encoding="utf-8")
            try:
                os.link(fresh, file)
            except FileExistsError:
                pass
            except OSError:
                # A file system without second names.
                fresh.replace(file)
            fresh.unlink(missing_ok=True)
        return file.read_text(encoding="utf-8").strip()

    def facts_of(self, node: str) -> Path:
        """The file of a node's facts."""
        return nodes_directory(StudyLayout(self.directory.parent)) / f"{node}.json"

    def facts(self) -> Mapping[str, NodeFacts]:
        """What was found about the nodes, by name; empty before that."""
        return read_nodes(StudyLayout(self.directory.parent))


def launcher() -> tuple[str, ...]:
    """The words that start this bedplate on a node, where the checkout stands at the same path."""
    return (str(Path(bedplate.__file__).resolve().parents[2] / "bedplate"),)


def job_script(words: tuple[str, ...], folder: Path) -> str:
    """The script that sbatch takes: it becomes the job's payload, so that signals reach that."""
    return f"#!/bin/sh\nexec {shlex.join((*words, 'run-visits-of-job', str(folder)))}\n"
