"""What every file system type does alike: make, mount, read back, unmount, check.

A new type is one file with one such class and one entry in `registry.py`. Its attributes name the tools and their words;
it overrides what it does in another way.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, refuse, warnings_in
from bedplate.filesystem.blocks.owners import Layout
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.journal import without_device
from bedplate.filesystem.options import OptionRules, factor_words, plan_words
from bedplate.filesystem.superblock import number, number_or_text
from bedplate.host.mount import mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.filesystem import BARRIER_BY_WRITE_CACHE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from bedplate.filesystem.blocks.resting import AtRest, MetadataAtRest
    from bedplate.filesystem.site import Site
    from bedplate.host.command import Commands, Completed
    from bedplate.host.mount import MountEntry
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.filesystem import FilesystemTraits
    from bedplate.model.visit import ReadBack

_NO_DISCARD = "nodiscard"
_LIMIT_S = 3600.0


@dataclass(frozen=True)
class CheckResult:
    """What a read-only fsck found; `text` is what it printed.

    `ran` is false where it did not come to its end: then it found nothing, neither good nor bad. `mended` says that it found errors,
    and left none.
    """

    clean: bool
    text: str
    ran: bool = True
    mended: bool = False


def checked_by(done: Completed) -> CheckResult:
    """What a tool says that ends with status 0 where all is well; a signal that ended it is no finding."""
    return CheckResult(done.status == 0, done.output, ran=done.status >= 0)


@dataclass(frozen=True)
class Mounted:
    """What a mounted file system shows: the words of its mount, and its superblock in the words of its tool.

    `source` is where the words are read, `rules` how they are spelt there.
    """

    entry: MountEntry
    shown: AbstractSet[str]
    source: str
    rules: OptionRules
    superblock: Mapping[str, str]


class Filesystem(ABC):
    """One file system type. Nothing here touches a device but `mkfs`, and `mount` through the kernel."""

    # What is known of the type without asking a kernel.
    traits: FilesystemTraits
    # A size on which every combination of levels can be made: for `refusals.probe_refusals`.
    probe_bytes: int

    # The tools that the methods below start, with what each is for, and their package.
    package: str
    tools: tuple[tuple[str, str], ...]
    # What says the version. Some tools end with another status than 0 while they say it.
    version_argv: tuple[str, ...]
    version_pattern: str
    version_by_status: bool = True

    # mkfs: its first words, the letters of its getopt string that take a value, and what is always asked of it.
    mkfs_words: tuple[str, ...]
    valued: str = ""
    own: tuple[Argument, ...] = ()
    # The flag for the block size, and its value around the number.
    block_size_option: tuple[str, str] | None = None
    # Flags of which mkfs obeys only the last.
    joined_flags: tuple[str, ...] = ()

    # mount(8), or what mounts in its place; the type that the kernel shows, where that is another one.
    mount_program: tuple[str, ...] | None = None
    shown_type: str | None = None
    # The option that names an external journal, where the superblock does not, or may be wrong.
    journal_option: str | None = None
    # Whether it would discard unless it is mounted with `nodiscard`.
    discards_by_itself: bool = False

    # What finds the blocks of files and the superblock where the kernel maps no file: images of the devices, at rest.
    at_rest: Callable[[Sequence[Path], Commands], AtRest] | None = None
    # What finds metadata there, of a type that keeps none in fixed places.
    metadata_at_rest: Callable[[Sequence[Path], Commands], MetadataAtRest] | None = None

    # The words of the check, and the flag before an external journal. A check that does not end with status 0 for clean
    # is the type's own.
    fsck: tuple[str, ...]
    fsck_journal_flag: str | None = None

    rules = OptionRules()
    # Any of these among the shown options: no barriers.
    barrier_off_shown: frozenset[str] = frozenset({"nobarrier"})
    # The tool that shows the superblock, and its words for the block size and for mkfs's flags.
    reader: str
    block_size_key: str
    number_flags: Mapping[str, str] = {}
    not_shown: str = "the superblock does not show it"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The tools that the methods below start, with their packages."""
        return tuple(Need(tool, self.package, f"{does} {self.traits.type}") for tool, does in self.tools)

    def versions(self, *, commands: Commands) -> Mapping[str, str]:
        """The version of each tool, by the name of its package."""
        said = commands.run(self.version_argv, check=self.version_by_status).output
        found = re.search(self.version_pattern, said)
        if found is None:
            raise OutputNotUnderstood(" ".join(self.version_argv), expected="a version", found=said)
        return {self.package: found[1]}

    def mkfs_defaults(self) -> Mapping[str, str]:
        """What decides beside levels and versions what mkfs makes, such as the digest of a configuration file, by its name."""
        return {}

    def mkfs(self, site: Site) -> tuple[str, ...]:
        """Make the file system and its journal, without discarding and without work left for later.

        Returns what mkfs warned of while it ended with status 0. PlanError before anything is
        touched if the levels are unsafe or contradict each other, CommandFailed if mkfs refuses.
        """
        refuse(site.levels, site.journal_path)
        size = site.levels.block_size_bytes
        own = list(self.own)
        if size is not None and self.block_size_option is not None:
            flag, value = self.block_size_option
            own.append(Argument(flag, value.format(size)))
        own += self._mkfs_arguments(site)
        words = joined(own, self.mkfs_arguments(site.levels), lists=self.joined_flags)
        for argv in self._before_mkfs(site):
            site.commands.run(argv, timeout_s=_LIMIT_S)
        done = site.commands.run([*self.mkfs_words, *words, site.device.path], timeout_s=_LIMIT_S)
        return warnings_in(done.output)

    def mkfs_arguments(self, levels: FilesystemLevels) -> tuple[Argument, ...]:
        """The plan's own options for mkfs, flag by flag; PlanError for what is none."""
        return parse_arguments(levels.mkfs_options, valued=self.valued)

    def mount_options(self, levels: FilesystemLevels) -> tuple[str, ...]:
        """The words for `mount -o`: no discard of its own, the factors, and the plan's own last."""
        asked = plan_words(levels)
        discards = any(word.partition("=")[0] in ("discard", _NO_DISCARD) for word in asked)
        own = (_NO_DISCARD,) if self.discards_by_itself and not discards else ()
        return (*own, *factor_words(levels), *asked)

    def mount(self, site: Site) -> MountEntry:
        """Mount it; MountRefused with the kernel's words if it will not."""
        words = self.mount_options(site.levels)
        if self.journal_option is not None and site.journal is not None:
            words = (*words, f"{self.journal_option}={site.journal.path}")
        return mount(
            site.device.path,
            site.target,
            self.traits.type,
            words,
            commands=site.commands,
            program=self.mount_program,
            shown_as=self.shown_type,
        )

    def read_back(self, site: Site) -> tuple[ReadBack, ...]:
        """Every asked level and option against what is in force, and the facts that nobody asked for."""
        found = self._look(site)
        return (
            self._type(site, found),
            *self._block_sizes(site, found),
            *self._barrier(site, found),
            *self._state(site, found),
            *self._option_comparisons(site, found),
            *self.superblock_comparisons(site.levels, found.superblock),
            fact("filesystem.mount_options", ",".join(without_device(found.shown)), found.source),
        )

    def superblock_comparisons(
        self, levels: FilesystemLevels, superblock: Mapping[str, str]
    ) -> Iterator[ReadBack]:
        """The plan's own options for mkfs against the superblock, and the facts in it."""
        for argument in self.mkfs_arguments(levels):
            yield from self._compare_argument(argument, superblock)
        yield from self._facts(superblock)

    def unmount(self, site: Site) -> bool:
        """Unmount what lies on the target, and end what served it; False if nothing was mounted there.

        DeviceInUse names who holds it. Safe to repeat. Its devices are free afterwards.
        """
        return unmount(site.target, commands=site.commands)

    def check(self, site: Site) -> CheckResult:
        """Fsck without writing, on the unmounted devices."""
        return checked_by(self._run_fsck(site))

    def layout(self, _site: Site, /) -> Layout:
        """Which blocks of the unmounted device are the file system's own, as far as a tool tells."""
        return Layout()

    def complaints(self, _site: Site, /) -> tuple[str, ...]:
        """What the mounted file system says of errors to who asks it, and not in the kernel's log."""
        return ()

    def resume(self, _site: Site, _repaired: Callable[[], object], /) -> bool:
        """Where it keeps every request waiting until an operator says that the disk works again: have it `repaired`, and say so.

        Whether any waited. Most give errors, and wait for nobody.
        """
        return False

    def _mkfs_arguments(self, _site: Site, /) -> Iterable[Argument]:
        """What the levels and the journal ask of mkfs beside the block size."""
        return ()

    def _before_mkfs(self, _site: Site, /) -> Iterable[Sequence[str]]:
        """The commands that make an external journal, where mkfs only attaches one."""
        return ()

    def _run_fsck(self, site: Site) -> Completed:
        argv = [*self.fsck]
        if self.fsck_journal_flag is not None and site.journal is not None:
            argv += (self.fsck_journal_flag, site.journal.path)
        return site.commands.run([*argv, site.device.path], timeout_s=_LIMIT_S, check=False)

    def _look(self, site: Site) -> Mounted:
        entry = mount_entry(site.target)
        shown = {*entry.options, *entry.super_options}
        return Mounted(entry, shown, "mountinfo", self.rules, self._superblock(site))

    @abstractmethod
    def _superblock(self, site: Site, /) -> Mapping[str, str]:
        """What the tool says of the mounted file system."""

    def _type(self, site: Site, found: Mounted) -> ReadBack:
        return compared("filesystem.type", site.levels.type, found.entry.type, "mountinfo")

    def _block_sizes(self, site: Site, found: Mounted) -> Iterator[ReadBack]:
        asked, size = site.levels.block_size_bytes, self._block_bytes(found.superblock)
        yield compared("filesystem.block_size_bytes", asked, os.statvfs(site.target).f_bsize, "statvfs")
        yield compared("filesystem.superblock.block_size_bytes", asked, size, self.reader)

    def _block_bytes(self, superblock: Mapping[str, str]) -> int | None:
        return number(superblock.get(self.block_size_key))

    def _barrier(self, site: Site, found: Mounted) -> Iterator[ReadBack]:
        if self.traits.barrier_by == BARRIER_BY_WRITE_CACHE:
            # It flushes always; whether a flush reaches the device, the switch decides.
            cache = (site.device.queue / "write_cache").read_text(encoding="ascii").strip()
            is_on, source = cache == "write back", "the queue's write_cache"
        else:
            is_on, source = self.barrier_off_shown.isdisjoint(found.shown), found.source
        if self.traits.barrier_by is not None:
            yield compared("filesystem.barrier", site.levels.barrier, is_on, source)

    def _state(self, _site: Site, _found: Mounted, /) -> Iterable[ReadBack]:
        """The type's own factors, its journal, and what else can be seen only while it is mounted."""
        return ()

    def _option_comparisons(self, site: Site, found: Mounted) -> Iterable[ReadBack]:
        words = plan_words(site.levels)
        if self.discards_by_itself and _NO_DISCARD in self.mount_options(site.levels):
            words = (_NO_DISCARD, *words)
        return found.rules.compare(words, found.shown, found.source)

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterable[ReadBack]:
        name, key = f"{MKFS_OPTION}{argument.flag}", self.number_flags.get(argument.flag)
        if key is None or argument.value is None:
            yield not_verifiable(name, argument.text, self.not_shown)
        else:
            yield compared(name, number_or_text(argument.value), number(superblock.get(key)), self.reader)

    @abstractmethod
    def _facts(self, superblock: Mapping[str, str], /) -> Iterable[ReadBack]:
        """What nobody asked for, but explains a figure."""
