"""What every file system type does alike: make, mount, read back, unmount, check.

A new type is one file with one such class and one entry in `registry.py`. Its attributes name the tools and their words;
it overrides what it does in another way.
"""

from __future__ import annotations

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, PlanError, VerifyFailed
from bedplate.filesystem.blocks import Layout, Nilfs2AtRest, PoolAtRest
from bedplate.host.mount import MountEntry, mount, mount_entry, unmount
from bedplate.host.requirement import Need
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import (
    BARRIER_BY_WRITE_CACHE,
    TRAITS,
    FilesystemTraits,
    contradictions,
    option_words,
    unsafe_options,
)
from bedplate.model.levels import Scalar
from bedplate.model.visit import ReadBack
from bedplate.units import parse_size

if TYPE_CHECKING:
    from bedplate.host.command import Commands, Completed
    from bedplate.host.scratch_device import AttachedDevice


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


def joined(
    defaults: Iterable[Argument], additions: Iterable[Argument], *, lists: Iterable[str]
) -> tuple[str, ...]:
    """The command line of both; the values of a flag in `lists` become one, the asked parts last."""
    together = [*defaults, *additions]
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


MOUNT_OPTION = "filesystem.mount_options."
MKFS_OPTION = "filesystem.mkfs_options."
FILL_FACT = "filesystem.fill"
NOT_VERIFIABLE = "not verifiable"

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def compared(name: str, level: Scalar | None, effective: Scalar | None, source: str) -> ReadBack:
    """A level that is read back whether or not it was asked for; unasked it matches nothing."""
    return ReadBack(name, level, effective, source, None if level is None else level == effective)


def fact(name: str, effective: Scalar | None, source: str) -> ReadBack:
    """Something in force that no plan asks for, but that explains a figure."""
    return ReadBack(name, None, effective, source, None)


def not_verifiable(name: str, level: Scalar, reason: str) -> ReadBack:
    """An asked option whose effect cannot be read anywhere: said, not assumed."""
    return ReadBack(name, level, None, f"{NOT_VERIFIABLE}: {reason}", None)


def verify(comparisons: Iterable[ReadBack]) -> None:
    """Raise VerifyFailed with one reason per asked option that is not in force."""
    reasons = [_reason(item) for item in comparisons if item.matches is False]
    if reasons:
        raise VerifyFailed(*reasons)


def effective_facts(comparisons: Iterable[ReadBack]) -> Mapping[str, Scalar]:
    """What tells two effective configurations apart, by name: the input of an `effective_digest`.

    The words that were asked are left out, since what they did is in the facts (so an option that
    the kernel ignored makes no difference); those whose effect cannot be read are kept. UUIDs,
    device numbers and absent facts are left out.
    """
    facts: dict[str, Scalar] = {}
    for item in comparisons:
        if item.asked is not None and item.source.startswith(NOT_VERIFIABLE):
            facts[item.name] = item.asked
        elif item.effective is None or item.name.startswith((MOUNT_OPTION, MKFS_OPTION)):
            continue
        elif not (isinstance(item.effective, str) and _UUID.search(item.effective)):
            facts[item.name] = item.effective
    return dict(sorted(facts.items()))


def _reason(item: ReadBack) -> str:
    if item.effective is None:
        return f"{item.name}: asked {item.asked!r}, not shown by {item.source}: it was ignored"
    return f"{item.name}: asked {item.asked!r}, effective is {item.effective!r} ({item.source})"


# Stands for the device in every comparison: its number is another one in the next visit.
GIVEN = "the given device"

# Words of a mount that name the device.
_WORDS = ("logdev=", "jdev=", "journal_dev=", "journal_path=")


def journal_comparisons(
    levels: FilesystemLevels, kind: str, journal_name: str | None, journal: AttachedDevice | None, source: str
) -> tuple[ReadBack, ...]:
    """The journal's kind (`internal`, `external`, `none`), and whether it is on the given device.

    `journal_name` is what the file system names: a device's path or its `major:minor`; None if it names none.
    """
    kinds = (compared("filesystem.journal", levels.journal, kind, source),)
    if journal is None:
        return kinds
    there = journal_name is not None and device_number(journal_name) == device_number(journal.path)
    return (
        *kinds,
        compared("filesystem.journal_device", GIVEN, GIVEN if there else journal_name, source),
        fact("filesystem.journal_device_bytes", journal.size_bytes, "the block device"),
    )


def device_number(text: str) -> str | None:
    """`major:minor` of a path or of what is one already; None if there is no such block device."""
    if not text.startswith("/"):
        return text
    try:
        status = Path(text).stat()
    except OSError:
        return None
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def decoded_number(code: int) -> str:
    """`major:minor` of a number as superblocks keep it (include/linux/kdev_t.h, new_decode_dev)."""
    return f"{(code & 0xFFF00) >> 8}:{(code & 0xFF) | ((code >> 12) & 0xFFF00)}"


def without_device(words: Iterable[str]) -> tuple[str, ...]:
    """The shown words, sorted, without those that name the journal's device."""
    return tuple(sorted(word for word in words if not word.startswith(_WORDS)))


# Words of the VFS that it shows only by not showing the opposite (proc_pid_mountinfo(5), mount(8)).
_VFS_HIDDEN: Mapping[str, tuple[str, ...]] = {
    "rw": ("ro",),
    "async": ("sync",),
    "atime": ("noatime",),
    "diratime": ("nodiratime",),
    "strictatime": ("noatime", "relatime"),
    "norelatime": ("noatime", "relatime"),
    "nostrictatime": (),
    "suid": ("nosuid",),
    "dev": ("nodev",),
    "exec": ("noexec",),
    "nolazytime": ("lazytime",),
    "nomand": ("mand",),
    "symfollow": ("nosymfollow",),
}

# Words that mount(8) keeps to itself (mount(8), "filesystem-independent mount options").
_FOR_MOUNT_ONLY = ("auto", "noauto", "user", "users", "nouser", "owner", "group", "nofail", "_netdev")


@dataclass(frozen=True)
class OptionRules:
    """How one type shows its options.

    `synonyms` turn an asked word into the shown one. `hidden` maps a word that is in force unless one
    of its opposites is shown. `unseen` are words (or `key=`) that the driver obeys and shows nowhere.
    """

    synonyms: Mapping[str, str] = field(default_factory=dict)
    hidden: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()

    def compare(self, words: Iterable[str], effective: Collection[str], source: str) -> tuple[ReadBack, ...]:
        """One comparison per asked word, in the asked order."""
        return tuple(self._compare(word, effective, source) for word in dict.fromkeys(words))

    def _compare(self, word: str, effective: Collection[str], source: str) -> ReadBack:
        key, equals, _ = word.partition("=")
        name = f"{MOUNT_OPTION}{key}"
        if word == "defaults":
            return ReadBack(name, word, word, "mount(8): a word without effect", True)
        if key in _FOR_MOUNT_ONLY or key.lower().startswith("x-") or key == "comment":
            return not_verifiable(name, word, "mount(8) keeps it to itself")
        wanted = self.synonyms.get(word, word)
        same = next((item for item in effective if _same(wanted, item)), None)
        if same is not None:
            return ReadBack(name, word, same, source, True)
        opposites = {**_VFS_HIDDEN, **self.hidden}.get(wanted)
        against = next(
            (item for item in effective if item in _negations(wanted) or _contradicts(wanted, item)), None
        )
        if opposites is not None and against is None:
            keys = tuple(opposite for opposite in opposites if opposite.endswith("="))
            against = next((item for item in effective if item in opposites or item.startswith(keys)), None)
            if against is None:
                return ReadBack(name, word, wanted, f"{source}: hidden while its opposite is", True)
        if against is None and (wanted in self.unseen or (equals and f"{key}=" in self.unseen)):
            return not_verifiable(name, word, "the driver shows it nowhere")
        return ReadBack(name, word, against, source, False)


def factor_words(levels: FilesystemLevels) -> tuple[str, ...]:
    """The words for the factors barrier, data and nodatacow, where the type has a word for what is asked."""
    traits = TRAITS[levels.type]
    words = []
    if levels.barrier is not None:
        word = traits.barrier_on_option if levels.barrier else traits.barrier_off_option
        if word is not None:
            words.append(word)
    if "data" in levels.features:
        words.append(f"data={levels.features['data']}")
    if "nodatacow" in levels.features:
        words.append("nodatacow" if levels.features.flag("nodatacow") else "datacow")
    return tuple(words)


def plan_words(levels: FilesystemLevels) -> tuple[str, ...]:
    """The plan's own words, one by one."""
    return option_words(levels.mount_options, separator=",")


def _same(expected: str, effective: str) -> bool:
    if expected == effective:
        return True
    wanted_key, _, wanted_value = expected.partition("=")
    shown_key, _, shown_value = effective.partition("=")
    if wanted_key != shown_key or not wanted_value or not shown_value:
        return False
    # `zstd` asks for no level; `zstd:3` is one.
    return shown_value.partition(":")[0] == wanted_value or _same_size(wanted_value, shown_value)


def _same_size(first: str, second: str) -> bool:
    try:
        return parse_size(first) == parse_size(second)
    except ValueError:
        return False


def _contradicts(expected: str, effective: str) -> bool:
    """True if `effective` gives the asked key another value."""
    key, equals, _ = expected.partition("=")
    return bool(equals) and effective.startswith(f"{key}=")


def _negations(word: str) -> tuple[str, ...]:
    if word.startswith("no"):
        return (word.removeprefix("no").removeprefix("_"), f"no{word}")
    return (f"no{word}", f"no_{word}")


@dataclass(frozen=True)
class Site:
    """The asked levels, the device, the directory to mount it on, and who runs the tools.

    `journal` is the device of an external journal: there if the levels ask for one, else None.
    """

    levels: FilesystemLevels
    device: AttachedDevice
    target: Path
    commands: Commands
    journal: AttachedDevice | None = None

    @property
    def journal_path(self) -> str | None:
        """The node of the journal's device, if it has one of its own."""
        return None if self.journal is None else self.journal.path


def number(text: str | None) -> int | None:
    """A text that is nothing but a number; None for any other."""
    return int(text) if text is not None and text.isdigit() else None


def number_or_text(text: str) -> Scalar:
    """A number where the text is nothing else."""
    return int(text) if text.isdigit() else text


def size_or_text(text: str) -> Scalar:
    """Bytes where the text is a size (`64k`)."""
    try:
        return parse_size(text)
    except ValueError:
        return text


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


def checked_by(completion: Completed) -> CheckResult:
    """What a tool says that ends with status 0 where all is well; a signal that ended it is no finding."""
    return CheckResult(completion.status == 0, completion.output, ran=completion.status >= 0)


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
    at_rest: Callable[[Sequence[Path], Commands], PoolAtRest] | None = None
    # What finds metadata there, of a type that keeps none in fixed places.
    metadata_at_rest: Callable[[Sequence[Path], Commands], Nilfs2AtRest] | None = None

    # The words of the check, and the flag before an external journal. A check that does not end with status 0 for clean
    # is the type's own.
    fsck: tuple[str, ...]
    fsck_journal_flag: str | None = None

    rules = OptionRules()
    # Any of these among the shown options: no barriers.
    barrier_off_shown: frozenset[str] = frozenset({"nobarrier"})
    # The tool that shows the superblock, and its words for the block size, for mkfs's flags, and for what nobody asked for but
    # explains a figure: the label, and facts by our own words.
    reader: str
    block_size_key: str
    number_flags: Mapping[str, str] = {}
    label_key: str = "Filesystem volume name"
    text_facts: Mapping[str, str] = {}
    number_facts: Mapping[str, str] = {}
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

    def _type(self, site: Site, mount: Mounted) -> ReadBack:
        return compared("filesystem.type", site.levels.type, mount.entry.type, "mountinfo")

    def _block_sizes(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        asked, size = site.levels.block_size_bytes, self._block_bytes(mount.superblock)
        yield compared("filesystem.block_size_bytes", asked, os.statvfs(site.target).f_bsize, "statvfs")
        yield compared("filesystem.superblock.block_size_bytes", asked, size, self.reader)

    def _block_bytes(self, superblock: Mapping[str, str]) -> int | None:
        return self._number(superblock.get(self.block_size_key))

    def _number(self, text: str | None) -> int | None:
        """A number as the tool prints it."""
        return number(text)

    def _barrier(self, site: Site, mount: Mounted) -> Iterator[ReadBack]:
        if self.traits.barrier_by == BARRIER_BY_WRITE_CACHE:
            # It flushes always; whether a flush reaches the device, the switch decides.
            cache = (site.device.queue / "write_cache").read_text(encoding="ascii").strip()
            is_on, source = cache == "write back", "the queue's write_cache"
        else:
            is_on, source = self.barrier_off_shown.isdisjoint(mount.shown), mount.source
        if self.traits.barrier_by is not None:
            yield compared("filesystem.barrier", site.levels.barrier, is_on, source)

    def _state(self, _site: Site, _mount: Mounted, /) -> Iterable[ReadBack]:
        """The type's own factors, its journal, and what else can be seen only while it is mounted."""
        return ()

    def _option_comparisons(self, site: Site, mount: Mounted) -> Iterable[ReadBack]:
        words = plan_words(site.levels)
        if self.discards_by_itself and _NO_DISCARD in self.mount_options(site.levels):
            words = (_NO_DISCARD, *words)
        return mount.rules.compare(words, mount.shown, mount.source)

    def _compare_argument(self, argument: Argument, superblock: Mapping[str, str]) -> Iterable[ReadBack]:
        name, key = f"{MKFS_OPTION}{argument.flag}", self.number_flags.get(argument.flag)
        if key is None or argument.value is None:
            yield not_verifiable(name, argument.text, self.not_shown)
        else:
            yield compared(name, number_or_text(argument.value), number(superblock.get(key)), self.reader)

    def _facts(self, superblock: Mapping[str, str], /) -> Iterable[ReadBack]:
        yield fact("filesystem.label", superblock.get(self.label_key), self.reader)
        for name, key in self.text_facts.items():
            yield fact(f"filesystem.superblock.{name}", superblock.get(key), self.reader)
        for name, key in self.number_facts.items():
            yield fact(f"filesystem.superblock.{name}", self._number(superblock.get(key)), self.reader)
