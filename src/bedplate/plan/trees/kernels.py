"""`kernel` of a plan: versions, paths of images, and commits of a kernel's tree, which are built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, PlainValidator, ValidationInfo

from bedplate.errors import PlanError
from bedplate.model.source_commit import KernelSource
from bedplate.plan import values
from bedplate.plan.fields import distinct_levels, levels_of
from bedplate.plan.trees.commits import source_trees
from bedplate.plan.trees.notes import at_home, is_name, note_name, own_note
from bedplate.plan.words import joined, shown
from bedplate.text_encoding import decode_text
from bedplate.units import KIB, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


def version_of_kernel(read: Callable[[str], str | None]) -> Mapping[str, str]:
    """The version in a tree's Makefile; PlanError where it is no kernel."""
    found = dict(_OF_MAKEFILE.findall(read("Makefile") or ""))
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
                found.append(_named(level, context))
        except ValueError as error:
            reasons.append(str(error))
    if reasons:
        raise ValueError(joined(dict.fromkeys(reasons)))
    return tuple(found)


def _named(level: Any, context: Mapping[str, Any]) -> str:
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
            f'config {shown(config)}: allowed is "{GUEST}", or the path of a file with lines of a .config'
        )
    note = f"{note_name(_CONFIG, config)}.config"
    text = own_note(note, context)
    path = at_home(config, Path(context["directory"]))
    if text is None and not path.exists():
        text = (context.get("kept") or {}).get(note)
    if text is None:
        text = _read(config, path)
    context["files"][note] = text
    return path.name, text


def _read(config: str, path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError(f"config {shown(config)}: there is no such file ({path})")
        if path.stat().st_size > _FRAGMENT_BYTES_MOST:
            raise ValueError(
                f"config {shown(config)}: the file is larger than {format_size(_FRAGMENT_BYTES_MOST)}"
            )
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"config {shown(config)}: the file cannot be read: {error.strerror}") from None
    try:
        text = decode_text(data)
    except ValueError as error:
        raise ValueError(f"config {shown(config)}: {error}") from None
    # Nothing but options is copied into a study, which is then shared.
    wrong = [
        line
        for line in text.splitlines()
        if line.strip() and not _OPTION.fullmatch(line.strip()) and not line.startswith("#")
    ]
    if wrong:
        raise ValueError(
            f"config {shown(config)}: allowed are lines such as CONFIG_BTRFS_FS=y and # CONFIG_BTRFS_FS is not set; it has {shown(wrong[0])}"
        )
    return text


Kernels: TypeAlias = Annotated[
    tuple[str, ...], PlainValidator(_kernels), BeforeValidator(levels_of), AfterValidator(distinct_levels)
]
