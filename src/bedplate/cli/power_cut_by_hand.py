"""What to type after `bedplate power-cut replay`, to see by hand what bedplate saw in an image."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from bedplate.filesystem.after_cut import image_levels, repair_commands
from bedplate.filesystem.registry import filesystem_for
from bedplate.workloads.power_cut.run.bench import DATA_DIRECTORY, cut_engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.workloads.power_cut.run.bench import ReplayJob
    from bedplate.workloads.power_cut.run.image import Built

_JOURNAL = "$journal"
# What is mounted by its pool's name, which is not in the job.
_POOLED = "zfs"


def by_hand(job: ReplayJob, built: Built, account: Account) -> Iterator[str]:
    """Shell lines for root, from a copy of the image to the engine on it; the image itself stays as the cut left it."""
    folder = built.disk.parent.absolute()
    mounted = folder / "mount"
    yield "by hand, as root (on a copy, since recovery writes):"
    names = {"disk": built.disk, **({} if built.journal is None else {"journal": built.journal})}
    for name, image in names.items():
        copy = _quoted(folder / f"{name}.tried")
        yield f"  cp --sparse=always {_quoted(image.absolute())} {copy}"
        yield f"  {name}=$(losetup --find --show {copy})"
    yield f"  mkdir -p {_quoted(mounted)}"
    yield from (f"  {line}" for line in _mounting(job, mounted, has_journal=built.journal is not None))
    yield from (f"  {line}" for line in _asking(job, mounted / DATA_DIRECTORY, account))
    yield f"  umount {_quoted(mounted)}; losetup --detach {' '.join(f'${name}' for name in names)}"


def _mounting(job: ReplayJob, mounted: Path, *, has_journal: bool) -> Iterator[str]:
    levels = job.filesystem
    if levels.type == _POOLED:
        yield f"zpool import -f -d $disk -R {_quoted(mounted)} -a"
        return
    journal = _JOURNAL if has_journal else None
    options = [*filesystem_for(levels.type).mount_options(image_levels(levels, journal))]
    if levels.type == "xfs" and journal is not None:
        options.append(f"logdev={journal}")
    # A journal is the shell's variable, so that these words are not quoted; options have no spaces.
    words = f" -o {','.join(options)}" if options else ""
    yield f"mount -t {levels.type}{words} $disk {_quoted(mounted)}"
    repairs = repair_commands(levels.type, "$disk", journal)
    if repairs:
        each = ("; ".join(commands) for commands in repairs)
        yield f"# if it does not mount, each in turn and mount again: {'; '.join(each)}"


def _asking(job: ReplayJob, data: Path, account: Account) -> Iterator[str]:
    """The engine runs as the account that owns its files, which must be able to reach them."""
    subject = job.subject
    owner = subject.account
    if owner is not None and owner.uid != account.uid:
        yield f"chown -hR --from={owner.uid} {account.uid}:{account.gid} {_quoted(data)}   # of another machine's account"
    as_account = (
        f"unshare --net setpriv --no-new-privs --reuid={account.uid} --regid={account.gid} --clear-groups"
    )
    yield f"# as {account.name}, who must be able to enter every folder above {_quoted(data)}"
    yield from cut_engine(subject.engine).by_hand(subject, data, account, as_account)


def _quoted(path: Path | str) -> str:
    return shlex.quote(str(path))
