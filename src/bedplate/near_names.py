"""What somebody may have meant who wrote a name that there is not: `did you mean`, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

# A hostile name must not fill a screen, nor a folder of a million files be read to its end.
_LONGEST = 100
_MOST_FILES = 10_000
_MOST_HINTS = 3
_CHANCE_LETTERS = 4


def near_names(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that a word may stand for, the likeliest first: of the same letters, alike, or with it as a part."""
    from difflib import get_close_matches  # noqa: PLC0415 -- a start of the command line has no wrong name

    names = {name.casefold(): name for name in known}
    wanted = word[:_LONGEST].casefold()
    turned = [name for name in names if sorted(name) == sorted(wanted)]
    # Above the usual 0.6: by that, zfs would be xfs.
    close = get_close_matches(wanted, names, n=_MOST_HINTS, cutoff=0.7)
    holding = [name for name in names if len(wanted) > 1 and wanted in name]
    # `fullpage` is a part of `full_page_writes`. Of fewer letters that is chance.
    bare = _bare(wanted)
    holding += [name for name in names if len(bare) > _CHANCE_LETTERS and bare in _bare(name)]
    return tuple(names[name] for name in dict.fromkeys((*turned, *close, *holding)))[:_MOST_HINTS]


def _bare(name: str) -> str:
    """Without what parts its words."""
    return name.replace("_", "").replace("-", "")


def did_you_mean(word: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """`did you mean tps?`; `otherwise` where no known name is near."""
    near = near_names(word, known)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def unknown_name(kind: str, word: str, known: Iterable[str]) -> str:
    """`metric 'tsp' is not known; did you mean tps?`, or all that are known where none is near."""
    names = tuple(dict.fromkeys(known))
    listed = f"known are {', '.join(names) or 'none'}"
    return f"{kind} {quoted(word)} is not known; {did_you_mean(word, names, otherwise=listed)}"


def unknown_run(word: str, known: Iterable[str]) -> str:
    """`no run is called 'read-onyl'; did you mean read-only?`, or all runs where none is near."""
    names = tuple(dict.fromkeys(known))
    listed = f"there are {', '.join(names) or 'none'}"
    return f"no run is called {quoted(word)}; {did_you_mean(word, names, otherwise=listed)}"


def near_paths(path: Path) -> tuple[Path, ...]:
    """Paths beside one that is not there, whose names are alike."""
    try:
        beside = {entry.name: entry for entry in islice(path.parent.iterdir(), _MOST_FILES)}
    except (OSError, ValueError):
        return ()
    return tuple(beside[name] for name in near_names(path.name, beside) if name.isprintable())


def of_near_paths(path: Path, error: Exception) -> str:
    """`; did you mean mine.toml?`, to stand behind what an error says; empty where the path is there, or nothing near it."""
    near = near_paths(path) if isinstance(error, FileNotFoundError) else ()
    return f"; did you mean {' or '.join(map(str, near))}?" if near else ""


def quoted(word: str) -> str:
    """A name as a message shows it: in quotes, and cut where it would fill a screen."""
    return f"{word[:_LONGEST]!r}{f'… ({len(word):,} characters)' if len(word) > _LONGEST else ''}"
