"""Where a study keeps what it and its nodes say to each other, below `<study>/fleet`."""

from __future__ import annotations

import os
import secrets
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate import installation
from bedplate.executors.slurm.controller import KEY_START
from bedplate.executors.slurm.job_folder import JobFolders
from bedplate.model import codec
from bedplate.study.layout import StudyLayout
from bedplate.study.nodes import nodes_directory, read_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.executors.slurm.job_folder import JobOrder
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
        """What the names of all of the study's jobs begin with; made on first use, and anew for a copy of a study."""
        known = self._own_key()
        if known is not None:
            return known
        self.directory.mkdir(parents=True, exist_ok=True)
        # Of two starts at once the first one's is kept, and nobody reads half of one.
        fresh = self.directory / f".key-{secrets.token_hex(5)}"
        fresh.touch()
        # A copy stands at another place and is another file; a study that was moved, or is seen below another
        # mount point, is the same file.
        place = f"{fresh.stat().st_ino} {self.directory.resolve()}"
        fresh.write_text(f"{KEY_START}{secrets.token_hex(5)}\n{place}\n", encoding="utf-8")
        try:
            if self._key_file.exists():
                fresh.replace(self._key_file)
            else:
                os.link(fresh, self._key_file)
        except FileExistsError:
            pass
        except OSError:
            # A file system without second names.
            fresh.replace(self._key_file)
        fresh.unlink(missing_ok=True)
        return self._read_key()[0]

    def is_own(self, order: JobOrder) -> bool:
        """Whether a job is this study's own; a copy of a study has the folders of the other one's jobs too."""
        if not self._key_file.exists():
            return True
        key = self._own_key()
        return key is not None and order.name.startswith(f"{key}-")

    @property
    def _key_file(self) -> Path:
        return self.directory / "key"

    def _own_key(self) -> str | None:
        """None before there is one, and where it came with a copy."""
        if not self._key_file.exists():
            return None
        key, inode, path = self._read_key()
        if not path:  # of a time when keys did not say whose they are
            return key
        here = (str(self._key_file.stat().st_ino), str(self.directory.resolve()))
        return key if inode == here[0] or path == here[1] else None

    def _read_key(self) -> tuple[str, str, str]:
        """The key, the number of its file, and where it was made."""
        key, _, place = codec.read_text(self._key_file).strip().partition("\n")
        inode, _, path = place.partition(" ")
        return key, inode, path

    def facts_of(self, node: str) -> Path:
        """The file of a node's facts."""
        return nodes_directory(StudyLayout(self.directory.parent)) / f"{node}.json"

    def facts(self) -> Mapping[str, NodeFacts]:
        """What was found about the nodes, by name; empty before that."""
        return read_nodes(StudyLayout(self.directory.parent))


def launcher() -> tuple[str, ...]:
    """The words that start this bedplate on a node, where the checkout stands at the same path."""
    return (str(installation.launcher()),)


def job_script(words: tuple[str, ...], folder: Path) -> str:
    """The script that sbatch takes: it becomes the job's payload, so that signals reach that."""
    return f"#!/bin/sh\nexec {shlex.join((*words, 'run-visits-of-job', str(folder)))}\n"
