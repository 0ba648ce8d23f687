"""bonnie++ 2.00 as packaged: its argument list, and how far it is, from what it says meanwhile.

The source of 2.00a decides several things that its manual page says otherwise, and they are held
here: `-D` (O_DIRECT) reaches only the stages that create the file, so `direct` speaks of the block
writes alone, and the per-character stage, which writes single bytes, fails under it; the per-character
stage moves 3 MiB by default, not 20; `-c` changes a label and starts nothing; the chunk size of
the small files (the fifth word of `-n`) frees a buffer that stays in use. The last two are not offered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bedplate.units import GIB, KIB, MIB, format_size

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = "bonnie++"
# bonnie++ counts the files of its create stages in units of 1024, and holds their names in memory:
# 37 bytes each, at most 1 GiB (TestDirOps).
_FILES_UNIT = 1024
_FILE_NAME_BYTES = 37
_FILES_MAX = (GIB // _FILE_NAME_BYTES) // _FILES_UNIT * _FILES_UNIT
_INT_MAX = 2**31 - 1
_SEEKS_MAX = 10**8
# As bonnie++ has it by default. Over one, its CPU figure of the seeks is wrong (`output.py`).
_SEEKERS = 5
# The kernel may refuse less than the device's logical block, and 4096 is the largest in use.
_DIRECT_CHUNK_MIN = 4096


class BonnieStage(StrEnum):
    """The stages in their order, by the names that bonnie++'s CSV gives them."""

    PUTC = "putc"
    PUT_BLOCK = "put_block"
    REWRITE = "rewrite"
    GETC = "getc"
    GET_BLOCK = "get_block"
    SEEKS = "seeks"
    SEQ_CREATE = "seq_create"
    SEQ_STAT = "seq_stat"
    SEQ_DEL = "seq_del"
    RAN_CREATE = "ran_create"
    RAN_STAT = "ran_stat"
    RAN_DEL = "ran_del"


# What bonnie++ prints on its standard error as a stage begins, and as it ends; between stages it does other things:
# before the seeks it sleeps for seconds. Each of the seekers says that it is done, so that the end of the seeks is
# the beginning of what follows.
_SAID: dict[bytes, BonnieStage] = {
    b"Writing a byte at a time...": BonnieStage.PUTC,
    b"Writing intelligently...": BonnieStage.PUT_BLOCK,
    b"Rewriting...": BonnieStage.REWRITE,
    b"Reading a byte at a time...": BonnieStage.GETC,
    b"Reading intelligently...": BonnieStage.GET_BLOCK,
    b"start 'em...": BonnieStage.SEEKS,
    b"Create files in sequential order...": BonnieStage.SEQ_CREATE,
    b"Stat files in sequential order...": BonnieStage.SEQ_STAT,
    b"Delete files in sequential order...": BonnieStage.SEQ_DEL,
    b"Create files in random order...": BonnieStage.RAN_CREATE,
    b"Stat files in random order...": BonnieStage.RAN_STAT,
    b"Delete files in random order...": BonnieStage.RAN_DEL,
}
_DONE = b"done"
_ANY_SAID = re.compile(b"|".join(re.escape(words) for words in (*_SAID, _DONE)))
_LONGEST_SAID = max(map(len, _SAID))


@dataclass(frozen=True)
class BonnieJob:
    """One run of bonnie++; ValueError names the level, what was found, and what is allowed.

    `file_size_bytes` of 0 leaves the file stages out, `files` of 0 the create, stat and delete
    stages, `per_character_bytes` of 0 the two stages that move single bytes. `direct` opens the file
    with O_DIRECT for the block writes; bonnie++ rewrites, reads and seeks through the page cache
    all the same. Its small files are empty, and lie in one directory.
    """

    file_size_bytes: int
    seed: int
    chunk_size_bytes: int = 8 * KIB
    per_character_bytes: int = 0
    seeks: int = 8192
    direct: bool = False
    files: int = 0

    def __post_init__(self) -> None:
        reasons = _file_reasons(self)
        if not 0 <= self.files <= _FILES_MAX or self.files % _FILES_UNIT:
            reasons.append(
                f"files = {self.files}: bonnie++ takes multiples of {_FILES_UNIT}, at most {_FILES_MAX} (their "
                "names stay in memory)"
            )
        if not self.file_size_bytes and not self.files:
            reasons.append("bonnie++ has nothing to do: give it a file_size or files")
        if not 0 <= self.seed < 2**32:
            reasons.append(f"seed = {self.seed}: bonnie++ takes 0 to {2**32 - 1}")
        if reasons:
            raise ValueError("; ".join(reasons))

    def argv(self, directory: Path, program: str = PROGRAM) -> list[str]:
        """The argument list; standard output is then one CSV line, standard error the progress.

        `-x 1` prints the CSV alone and keeps the progress, which `-q` would switch off. A fixed
        `-m` keeps the machine's name out of the record, and commas out of the line.
        """
        return [
            program,
            *("-d", str(directory)),
            *("-m", "bedplate"),
            *("-x", "1"),
            *("-z", str(self.seed)),
            # It shall not refuse a file that the memory may hold: what a cache answered makes a run suspect.
            *("-r", "0"),
            *("-s", self._file_words()),
            # The size must be joined to its letter: it is an optional argument.
            f"-f{self.per_character_bytes // MIB}",
            *("-n", f"{self.files // _FILES_UNIT}:0:0:1" if self.files else "0"),
            *(["-D"] if self.direct else []),
        ]

    def stages(self) -> tuple[BonnieStage, ...]:
        """The stages that this job goes through, in order."""
        byte_stages = {BonnieStage.PUTC, BonnieStage.GETC}
        all_stages = tuple(BonnieStage)
        of_file = all_stages[:6] if self.file_size_bytes else ()
        of_small_files = all_stages[6:] if self.files else ()
        return tuple(
            stage
            for stage in (*of_file, *of_small_files)
            if self.per_character_bytes or stage not in byte_stages
        )

    def _file_words(self) -> str:
        if not self.file_size_bytes:
            return "0"
        return f"{self.file_size_bytes // MIB}:{self.chunk_size_bytes}:{self.seeks}:{_SEEKERS}"


def _file_reasons(job: BonnieJob) -> list[str]:
    chunk, size, bytewise = job.chunk_size_bytes, job.file_size_bytes, job.per_character_bytes
    reasons = []
    if not 256 <= chunk <= MIB or chunk & (chunk - 1):
        # What follows divides by it.
        return [f"chunk_size = {chunk}: bonnie++ takes a power of two from 256 bytes to 1 MiB"]
    if size < 0 or size % MIB:
        reasons.append(f"file_size = {size}: bonnie++ takes whole MiB")
    # bonnie++ counts chunks and KiB in an int, and overflows in silence.
    elif size // chunk > _INT_MAX or size // KIB > _INT_MAX:
        reasons.append(
            f"file_size = {format_size(size)} is more than bonnie++ can count in chunks of {chunk}"
        )
    if bytewise < 0 or bytewise % MIB or bytewise > max(size, 0):
        reasons.append(f"per_character = {bytewise}: bonnie++ takes whole MiB, at most the file_size")
    if job.direct and bytewise:
        reasons.append(
            "direct: the per-character stage writes single bytes, which O_DIRECT refuses; set per_character = 0"
        )
    if job.direct and chunk < _DIRECT_CHUNK_MIN:
        reasons.append(f"direct: chunk_size = {chunk} may be refused; use at least {_DIRECT_CHUNK_MIN}")
    if not 1 <= job.seeks <= _SEEKS_MAX:
        reasons.append(f"seeks = {job.seeks}: bonnie++ takes 1 to {_SEEKS_MAX}")
    return reasons


class BonnieProgress:
    """Follows bonnie++'s standard error, in whatever pieces it arrives."""

    def __init__(self) -> None:
        self._tail = b""
        self._stage: BonnieStage | None = None

    def feed(self, piece: bytes) -> list[BonnieStage | None]:
        """The stages that have begun since the last call, in order; None where the one under way has ended."""
        text = self._tail + piece
        steps: list[BonnieStage | None] = []
        end = 0
        for found in _ANY_SAID.finditer(text):
            end = found.end()
            if found[0] != _DONE:
                self._stage = _SAID[found[0]]
                steps.append(self._stage)
            elif self._stage not in (None, BonnieStage.SEEKS):
                self._stage = None
                steps.append(None)
        # Words may be cut anywhere: what could still be a beginning is kept, what was counted is not.
        self._tail = text[max(end, len(text) - _LONGEST_SAID + 1) :]
        return steps
