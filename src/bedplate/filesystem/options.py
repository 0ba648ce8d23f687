"""The words of `mount -o`: what bedplate's own factors make of them, and what a kernel then shows.

A kernel spells options in its own way: it shows `nobarrier` for `barrier=0`, `64k` for `65536`,
`zstd:3` for `zstd`, and hides some defaults. `OptionRules` holds one type's spelling. A word that is
neither shown, nor a hidden default, nor known to be shown nowhere, was ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.filesystem.comparison import MOUNT_OPTION, not_verifiable
from bedplate.model.filesystem import TRAITS, option_words
from bedplate.model.visit import ReadBack
from bedplate.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from bedplate.model.cell import FilesystemLevels

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

    def compare(self, asked: Iterable[str], shown: Collection[str], source: str) -> tuple[ReadBack, ...]:
        """One comparison per asked word, in the asked order."""
        return tuple(self._compare(word, shown, source) for word in dict.fromkeys(asked))

    def _compare(self, word: str, shown: Collection[str], source: str) -> ReadBack:
        key, equals, _ = word.partition("=")
        name = f"{MOUNT_OPTION}{key}"
        if word == "defaults":
            return ReadBack(name, word, word, "mount(8): a word without effect", True)
        if key in _FOR_MOUNT_ONLY or key.lower().startswith("x-") or key == "comment":
            return not_verifiable(name, word, "mount(8) keeps it to itself")
        wanted = self.synonyms.get(word, word)
        same = next((item for item in shown if _same(wanted, item)), None)
        if same is not None:
            return ReadBack(name, word, same, source, True)
        opposites = {**_VFS_HIDDEN, **self.hidden}.get(wanted)
        against = next((item for item in shown if item in _negations(wanted) or _other(wanted, item)), None)
        if opposites is not None and against is None:
            against = next((item for item in shown if item in opposites or _keyed(opposites, item)), None)
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


def _same(wanted: str, shown: str) -> bool:
    if wanted == shown:
        return True
    wanted_key, _, wanted_value = wanted.partition("=")
    shown_key, _, shown_value = shown.partition("=")
    if wanted_key != shown_key or not wanted_value or not shown_value:
        return False
    # `zstd` asks for no level; `zstd:3` is one.
    return shown_value.partition(":")[0] == wanted_value or _same_size(wanted_value, shown_value)


def _same_size(first: str, second: str) -> bool:
    try:
        return parse_size(first) == parse_size(second)
    except ValueError:
        return False


def _other(wanted: str, shown: str) -> bool:
    """True if `shown` gives the asked key another value."""
    key, equals, _ = wanted.partition("=")
    return bool(equals) and shown.startswith(f"{key}=")


def _keyed(opposites: tuple[str, ...], shown: str) -> bool:
    return any(item.endswith("=") and shown.startswith(item) for item in opposites)


def _negations(word: str) -> tuple[str, ...]:
    if word.startswith("no"):
        return (word.removeprefix("no").removeprefix("_"), f"no{word}")
    return (f"no{word}", f"no_{word}")
