"""The programs of an own engine as visits run them: a copy in the cache, named by its digest, that nobody changes any more."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import Unused
from bedplate.campaign.engine_preparation import NamedEngine
from bedplate.engines.external.description import DIGEST, FILE, NAME, read_description
from bedplate.engines.external.folder import PROGRAMS_KEY, digest_of, files_of, read_folder
from bedplate.errors import PlanError, RequirementMissing
from bedplate.host.cache import cache_directory
from bedplate.host.file_lock import file_lock
from bedplate.host.whole_folder import (
    is_work_folder,
    lock_of,
    put_in_place,
    sweep_work_folders,
    work_folder,
)
from bedplate.near_names import unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.campaign.engine_preparation import OwnPrograms
    from bedplate.engines.external.description import EngineDescription, Setting
    from bedplate.model.levels import Scalar
    from bedplate.model.plan import EngineSetup

_INTERPRETER = b"#!"
_ENV = "env"
_FOLDER = "engines"
# The copy of an engine and the digest of its programs, as `keep` calls it.
_COPY = re.compile(r"(.+)-[0-9a-f]{16}")


class ExternalPrograms:
    """Copied once; a later change of the folder is another engine."""

    def named(self, folder: Path, settings: Mapping[str, Sequence[str]]) -> NamedEngine:
        """The table has the digest of the programs, so that changed ones are another plan."""
        found = read_folder(folder.resolve())
        known = found.description.settings
        varied = {name: _values(name, words, known) for name, words in settings.items()}
        lines = [
            f"# {DIGEST} {found.digest}",
            "[engine]",
            f"path = {json.dumps(str(found.path), ensure_ascii=False)}",
        ]
        if varied:
            lines.append("[engine.settings]")
            lines += (f"{name} = {{ vary = [{', '.join(values)}] }}" for name, values in varied.items())
        return NamedEngine(found.description.name, "\n".join(("", *lines, "")))

    def keep(self, setup: EngineSetup) -> Mapping[str, str]:
        """The folder of the copy; RequirementMissing where the programs are gone, or could not be started here."""
        cluster = setup.clusters[0]
        digest, name = cluster.settings.text(DIGEST) or "", cluster.settings.text(NAME) or ""
        description = read_description(cluster.configuration or "")
        kept = cache_directory() / _FOLDER / f"{name}-{digest}"
        if not _is_whole(kept):
            if setup.folder is None:
                raise RequirementMissing(
                    f"the programs of {name} are not in {kept} any more; run the plan that names their folder"
                )
            _copy(Path(setup.folder), kept, digest)
        reasons = tuple(_cannot_start(kept, description))
        if reasons:
            raise RequirementMissing(*reasons)
        # When it was used last (`unused`).
        os.utime(kept)
        return {PROGRAMS_KEY: str(kept)}

    def unused(self, cache: Path, days: float) -> Iterator[Unused]:
        """Copies of programs that were changed since, or that nobody started in more than so many days, and those half made.

        A study that stands on one asks for its folder when it goes on.
        """
        copies: dict[str, list[Path]] = defaultdict(list)
        for path in sorted((cache / _FOLDER).glob("*")):
            named = _COPY.fullmatch(path.name)
            if named is None or not path.is_dir() or path.is_symlink():
                continue
            if is_work_folder(path) or not _is_whole(path):
                yield Unused(path, "half made, or half removed", lock_of(path), FILE)
            else:
                copies[named[1]].append(path)
        old_s = time.time() - days * 86400
        for name, found in copies.items():
            *older, newest = sorted(found, key=_used_s)
            for path in older:
                yield Unused(path, f"the programs of {name} were changed since", lock_of(path), FILE)
            if _used_s(newest) < old_s:
                yield Unused(
                    newest,
                    f"not used for {(time.time() - _used_s(newest)) / 86400:.0f} days",
                    lock_of(newest),
                    FILE,
                )


def _values(name: str, words: Sequence[str], known: Mapping[str, Setting]) -> list[str]:
    """The values of a setting as TOML, from words of a command line."""
    if name not in known:
        raise PlanError(unknown_name("setting", name, known))
    try:
        return [_toml(known[name].value(_read(word, known[name].kind))) for word in words]
    except ValueError as error:
        raise PlanError(f"{name}={','.join(words)}: {error}") from None


def _read(word: str, kind: str) -> Scalar:
    """A word as a plan would have it; what is none of its kind is that setting's to refuse."""
    if kind == "switch":
        return {"true": True, "false": False}.get(word, word)
    try:
        return json.loads(word) if kind == "number" else word
    except ValueError:
        return word


def _toml(level: Scalar) -> str:
    return json.dumps(level, ensure_ascii=False)


def _is_whole(kept: Path) -> bool:
    return (kept / FILE).is_file()


def _used_s(kept: Path) -> float:
    return kept.stat().st_mtime


def _copy(folder: Path, kept: Path, digest: str) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(lock_of(kept)):
        if _is_whole(kept):
            return
        fresh = work_folder(kept)
        sweep_work_folders(kept.parent, but=fresh)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o755)
        for file in files_of(folder):
            copied = fresh / file.relative_to(folder)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
            copied.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
        if digest_of(fresh, files_of(fresh)) != digest:
            shutil.rmtree(fresh)
            raise RequirementMissing(f"{folder} was changed while the plan was read; start again")
        put_in_place(fresh, kept)


def _cannot_start(kept: Path, description: EngineDescription) -> Iterator[str]:
    """A sentence for each script whose interpreter is not there."""
    for name in (description.writer, description.checker):
        with (kept / name).open("rb") as file:
            first = file.readline(512)
        if not first.startswith(_INTERPRETER):
            continue
        words = os.fsdecode(first[len(_INTERPRETER) :]).split()
        program = words[0] if words else ""
        if Path(program).name == _ENV:
            program = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        if not program or shutil.which(program) is None:
            yield f"{name} begins with {first.decode(errors='replace').strip()!r}, and there is no such interpreter here"


OWN_PROGRAMS: OwnPrograms = ExternalPrograms()
