"""Source trees and patches in a plan: `source = { tree = "~/src/x", commit = "master~1" }`, `patches = ["v3-0001-y.patch"]`."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from bedplate.errors import BedplateError, PlanError, StudyError
from bedplate.model import codec, limits
from bedplate.model.cell import (
    SOURCES,
    UNTRACKED,
    WORKING_TREE,
    KernelSource,
    SourceCommit,
    SourceTree,
    patch_level,
)
from bedplate.model.limits import TEXT_LIMIT, read_at_most
from bedplate.plan import values
from bedplate.plan.fields import distinct_levels, levels_of, one_or_varied, within
from bedplate.plan.values import TEXT, Form
from bedplate.plan.words import in_quotes, joined
from bedplate.text_encoding import decode_text
from bedplate.units import KIB, MIB, format_size

_LONGEST = 1000


def at_home(path: str, directory: Path) -> Path:
    """A path of a plan: from the root, from the plan, or from the home of whoever called, under sudo too."""
    if path == "~" or path.startswith("~/"):
        return Path(_home(), path[2:])
    return directory / path


def _home() -> str:
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and uid.isdecimal():
        try:
            return pwd.getpwuid(int(uid)).pw_dir
        except (KeyError, OverflowError):
            pass
    return str(Path.home())


def is_name(value: Any) -> bool:
    """Whether a value may be a path of a plan's."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST


def note_name(*words: str) -> str:
    """What a study calls its note of something that a plan names by these words."""
    return f"{SOURCES}/{hashlib.sha256(chr(0).join(words).encode('utf-8', 'replace')).hexdigest()[:16]}"


def kept_note(note: str, context: Mapping[str, Any]) -> str | None:
    """What the study keeps of it: the one that a plan goes on with, or the one whose own plan this is."""
    kept: Mapping[str, str] = context.get("kept") or {}
    return kept[note] if note in kept else own_note(note, context)


def own_note(note: str, context: Mapping[str, Any]) -> str | None:
    """The note that stands beside the plan of a study."""
    path = Path(context["directory"]) / note
    try:
        return read_at_most(path, TEXT_LIMIT.most_bytes).decode("utf-8") if limits.is_file(path) else None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the study's note of it ({note}) cannot be read: {error}") from None


_KEYS = ("tree", "commit")
_MOST_COMMITS = 100

_VARIED_TEXT = values.either(
    TEXT, values.table({"vary": {"type": "array", "items": TEXT, "minItems": 1}}, required=("vary",))
)

SOURCE: Form = values.table(dict.fromkeys(_KEYS, _VARIED_TEXT) | {"tree": TEXT}, required=_KEYS)

# A kernel's has the configuration, too.
TREE: Form = values.table({**SOURCE["properties"], "config": _VARIED_TEXT}, required=_KEYS)

PATCHES: Form = {"type": "array", "items": TEXT}

_EXAMPLE = '{ tree = "~/src/x", commit = "master" }'


class Revisions(Protocol):
    """Looks commits up: git, where a plan is read on the machine that has the trees."""

    def find(self, path: Path, revision: str, facts_of: FactsOf) -> Found:
        """The commit, what `facts_of` makes of it, and changes beside it where `WORKING_TREE` is asked for; PlanError, RequirementMissing."""

    def is_patch(self, text: str) -> bool:
        """Whether a text has a patch that can be applied."""


def source_trees(value: Any, context: Mapping[str, Any], facts_of: FactsOf) -> tuple[SourceTree, ...]:
    """The levels of a key `source`; ValueError with all reasons."""
    if not isinstance(value, dict):
        raise ValueError(f"allowed is a table such as {_EXAMPLE}")
    unknown = [key for key in value if key not in _KEYS]
    missing = [key for key in _KEYS if key not in value]
    if unknown or missing:
        raise ValueError(
            joined(
                [
                    *(f"it has the unknown key {in_quotes(key)}" for key in unknown),
                    *(f"{key} is missing" for key in missing),
                    f"allowed is a table such as {_EXAMPLE}",
                ]
            )
        )
    tree = value["tree"]
    reasons = [] if is_name(tree) else ["tree is a path: a work tree or a bare repository"]
    try:
        revisions = one_or_varied(value["commit"])
    except ValueError as error:
        raise ValueError(joined([*reasons, f"commit: {error}"])) from None
    if len(revisions) > _MOST_COMMITS:
        reasons.append(f"{len(revisions)} commits; allowed are {_MOST_COMMITS}")
    reasons += [f"commit {in_quotes(each)} is no text" for each in revisions if not isinstance(each, str)]
    if reasons:
        raise ValueError(joined(reasons))
    found: list[SourceTree] = []
    for revision in revisions:
        try:
            found.append(_source_tree(tree, revision, context, facts_of))
        except (BedplateError, ValueError) as error:
            reasons += error.reasons if isinstance(error, BedplateError) else [str(error)]
    reasons += _alike(found)
    if reasons:
        raise ValueError(joined(dict.fromkeys(reasons)))
    for each in found:
        context["trees"][each.level] = each
    return tuple(found)


def left_out(tree: SourceTree) -> str | None:
    """A warning where files of a work tree are no part of what is built; None where all are."""
    count = tree.facts.get(UNTRACKED)
    return count and (
        f"{tree.tree}: {count} {'file' if count == '1' else 'files'} that git does not know are left out of the {WORKING_TREE}; "
        "`git add` them, or remove them"
    )


def _source_tree(tree: str, revision: str, context: Mapping[str, Any], facts_of: FactsOf) -> SourceTree:
    note = f"{note_name(tree, revision)}.json"
    text = kept_note(note, context)
    if text is not None:
        try:
            found = codec.loads(SourceTree, text)
        except StudyError as error:
            raise ValueError(f"the study's note of it ({note}) is damaged: {error}") from None
    else:
        revisions: Revisions | None = context.get("revisions")
        if revisions is None:
            raise ValueError(f"the study has no note of it ({note}), and nobody looks commits up here")
        path = at_home(tree, Path(context["directory"])).absolute()
        commit, known, changes = revisions.find(path, revision, facts_of)
        found = SourceTree(tree, str(path), revision, commit, known, changes)
    context["files"][note] = codec.dumps(found) + "\n"
    return found


def _alike(trees: Iterable[SourceTree]) -> list[str]:
    named: dict[str, list[str]] = {}
    for each in trees:
        named.setdefault(each.level, []).append(in_quotes(each.revision))
    return [
        f"{' and '.join(names)} are one and the same: {level}"
        + ("; there is nothing that is not committed" if in_quotes(WORKING_TREE) in names else "")
        for level, names in named.items()
        if len(names) > 1
    ]


if TYPE_CHECKING:
    ReadFile = Callable[[str], str | None]
    FactsOf = Callable[[ReadFile], Mapping[str, str]]
    Found = tuple[SourceCommit, Mapping[str, str], str | None]

# The shipped configuration; everything else is the path of a fragment that is put on top of it.
GUEST = "guest"

VERSION = "version"

_CONFIG = "config"
_FRAGMENT_BYTES_MOST = 256 * KIB

_OF_MAKEFILE = re.compile(
    r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)[ \t]*$", re.MULTILINE
)

_OPTION = re.compile(
    r"CONFIG_\w+=(?:[ymn]|-?\d+|0x[0-9a-fA-F]+|\"[^\"\n]*\")|# CONFIG_\w+ is not set", re.ASCII
)


def version_of_kernel(read_file: Callable[[str], str | None]) -> Mapping[str, str]:
    """The version in a tree's Makefile; PlanError where it is no kernel."""
    found = dict(_OF_MAKEFILE.findall(read_file("Makefile") or ""))
    if not found.get("VERSION", "").isdecimal() or not found.get("PATCHLEVEL", "").isdecimal():
        raise PlanError("it is no kernel: its Makefile does not say VERSION and PATCHLEVEL")
    numbers = (found["VERSION"], found["PATCHLEVEL"], found.get("SUBLEVEL", ""))
    return {VERSION: ".".join(filter(None, numbers)) + found.get("EXTRAVERSION", "")}


def _kernels(levels: tuple[Any, ...], info: ValidationInfo) -> tuple[str, ...]:
    """The levels, each a text; a table is as many as it has commits and configurations. ValueError with all reasons."""
    context = info.context or {}
    found: list[str] = []
    reasons: list[str] = []
    for level in levels:
        try:
            if isinstance(level, dict):
                found += _of_tree(level, context)
            else:
                found.append(_kernel_level(level, context))
        except ValueError as error:
            reasons.append(str(error))
    if reasons:
        raise ValueError(joined(dict.fromkeys(reasons)))
    return tuple(found)


def _kernel_level(level: Any, context: Mapping[str, Any]) -> str:
    if isinstance(level, str) and level.startswith("~/"):
        level = str(at_home(level, Path(context.get("directory", "."))))
    return values.kernel(level)


def _of_tree(table: dict[str, Any], context: Mapping[str, Any]) -> list[str]:
    configs = levels_of(table.get(_CONFIG, GUEST))
    trees = source_trees(
        {key: value for key, value in table.items() if key != _CONFIG}, context, version_of_kernel
    )
    fragments = [_fragment(config, context) for config in configs]
    found = [KernelSource(tree, *fragment) for fragment in fragments for tree in trees]
    for each in found:
        context["kernels"][each.level] = each
    return [each.level for each in found]


def _fragment(config: Any, context: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Name and text of a fragment; nothing for the shipped configuration alone."""
    if config == GUEST:
        return None, None
    if not is_name(config):
        raise ValueError(
            f'config {in_quotes(config)}: allowed is "{GUEST}", or the path of a file with lines of a .config'
        )
    note = f"{note_name(_CONFIG, config)}.config"
    text = own_note(note, context)
    path = at_home(config, Path(context["directory"]))
    if text is None and not path.exists():
        text = (context.get("kept") or {}).get(note)
    if text is None:
        text = _read_configuration(config, path)
    context["files"][note] = text
    return path.name, text


def _read_configuration(config: str, path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError(f"config {in_quotes(config)}: there is no such file ({path})")
        if path.stat().st_size > _FRAGMENT_BYTES_MOST:
            raise ValueError(
                f"config {in_quotes(config)}: the file is larger than {format_size(_FRAGMENT_BYTES_MOST)}"
            )
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"config {in_quotes(config)}: the file cannot be read: {error.strerror}") from None
    try:
        text = decode_text(data)
    except ValueError as error:
        raise ValueError(f"config {in_quotes(config)}: {error}") from None
    # Nothing but options is copied into a study, which is then shared.
    wrong = [
        line
        for line in text.splitlines()
        if line.strip() and not _OPTION.fullmatch(line.strip()) and not line.startswith("#")
    ]
    if wrong:
        raise ValueError(
            f"config {in_quotes(config)}: allowed are lines such as CONFIG_BTRFS_FS=y and # CONFIG_BTRFS_FS is not set; it has {in_quotes(wrong[0])}"
        )
    return text


Kernels: TypeAlias = Annotated[
    tuple[str, ...],
    within(_kernels, form={"type": "array", "items": values.either(TEXT, TREE)}),
    BeforeValidator(levels_of),
    AfterValidator(distinct_levels),
]

_MOST_PATCHES = 100
_PATCH_BYTES_MOST = 8 * MIB


def patch_levels(value: Any, context: Mapping[str, Any]) -> tuple[str, ...]:
    """The levels of a list of patches, in the order in which they are applied; ValueError with all reasons."""
    if not isinstance(value, list) or len(value) > _MOST_PATCHES:
        raise ValueError(
            'allowed is a list of files, such as ["v3-0001-x.patch"]; vary takes a list of such lists'
        )
    levels: list[str] = []
    reasons: list[str] = []
    for name in value:
        try:
            levels.append(_patch(name, context))
        except ValueError as error:
            reasons.append(f"{in_quotes(name)}: {error}")
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(levels)


def _patch(name: Any, context: Mapping[str, Any]) -> str:
    if not is_name(name):
        raise ValueError("allowed is the path of a patch")
    note = f"{note_name(name)}.patch"
    text = own_note(note, context)
    path = at_home(name, Path(context["directory"]))
    if text is None and not path.exists():
        # A patch that changed is another plan; one that is gone is the study's.
        text = (context.get("kept") or {}).get(note)
    if text is None:
        text = _read_patch(path)
        # Nothing but a patch is copied into a study, which is then shared.
        revisions: Revisions | None = context.get("revisions")
        if revisions is None or not revisions.is_patch(text):
            raise ValueError(
                "the file has no diff in it; allowed is a patch of git format-patch, git diff or diff -u"
            )
    level = patch_level(Path(name).name, text)
    files: MutableMapping[str, str] = context["files"]
    files[note] = text
    context["patches"][level] = text
    return level


def _read_patch(path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError(f"there is no such file ({path})")
        if path.stat().st_size > _PATCH_BYTES_MOST:
            raise ValueError(f"the file is larger than {format_size(_PATCH_BYTES_MOST)}")
        return decode_text(path.read_bytes())
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None
