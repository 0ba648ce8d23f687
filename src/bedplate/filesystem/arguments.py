"""The words of a mkfs: taken apart, joined with bedplate's own, and refused where they are unsafe.

mke2fs obeys only the last `-E` and the last `-O`, so a plan's own would silently undo what bedplate
asks for (`lazy_itable_init=0`, `^has_journal`); here they are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.model.filesystem import contradictions, option_words, unsafe_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bedplate.model.cell import FilesystemLevels


@dataclass(frozen=True)
class Argument:
    """One flag of a mkfs; `value` is None where it takes none."""

    flag: str
    value: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """As it goes on a command line."""
        return (self.flag,) if self.value is None else (self.flag, self.value)

    @property
    def text(self) -> str:
        """As a person writes it."""
        return " ".join(self.words)

    @property
    def parts(self) -> tuple[tuple[str, str | None], ...]:
        """The value's comma-separated parts, each `name=value` or a lone name."""
        split = (part.partition("=") for part in (self.value or "").split(",") if part)
        return tuple((name, value if equals else None) for name, equals, value in split)


def parse_arguments(options: Iterable[str], *, valued: str) -> tuple[Argument, ...]:
    """Flags and values as getopt(3) reads them; `valued` are the letters that take a value.

    PlanError for a word that belongs to no flag, or a flag that lacks its value.
    """
    words = iter(option_words(options))
    return tuple(argument for word in words for argument in _parse(word, words, valued))


def joined(own: Iterable[Argument], asked: Iterable[Argument], *, lists: Iterable[str]) -> tuple[str, ...]:
    """The command line of both; the values of a flag in `lists` become one, the asked parts last."""
    together = [*own, *asked]
    words: list[str] = []
    for flag in lists:
        values = [item.value for item in together if item.flag == flag and item.value]
        if values:
            words += [flag, ",".join(values)]
    for item in together:
        if item.flag not in lists:
            words += item.words
    return tuple(words)


def refuse(levels: FilesystemLevels, journal_path: str | None = None) -> None:
    """Raise PlanError, with every reason, for levels that are unsafe or that no kernel could have.

    That an external journal has its device, and no other journal has one, is one of them.
    """
    reasons = (*unsafe_options(levels), *contradictions(levels))
    if levels.journal == "external" and journal_path is None:
        reasons += (f"{levels.type}: journal = 'external' needs a journal device; set journal_device",)
    if levels.journal != "external" and journal_path is not None:
        reasons += (f"{levels.type}: {journal_path} is given for a journal that is not external",)
    if reasons:
        raise PlanError(*reasons)


def warnings_in(text: str) -> tuple[str, ...]:
    """The lines in which a tool that ended with status 0 says that the result may not do."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line.lower().startswith("warning") or "deprecated" in line.lower())


def _parse(word: str, rest: Iterator[str], valued: str) -> Iterator[Argument]:
    if word.startswith("--") and len(word) > 2:
        name, equals, value = word.partition("=")
        yield Argument(name, value if equals else None)
        return
    if not word.startswith("-") or len(word) < 2:
        raise PlanError(f"mkfs option {word!r} belongs to no flag; write '-I 512' or '--name=value'")
    letters = word[1:]
    for position, letter in enumerate(letters):
        if letter in valued:
            taken = letters[position + 1 :] or next(rest, None)
            if taken is None:
                raise PlanError(f"mkfs option '-{letter}' lacks its value, as in '-{letter} VALUE'")
            yield Argument(f"-{letter}", taken)
            return
        yield Argument(f"-{letter}", None)
