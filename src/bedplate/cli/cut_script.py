"""The scripts of a bundle, in the words of a POSIX shell: from the packed image to a verdict.

`reproduce.sh` is started by root, and all that root does with a stranger's image is to mount it. `check.sh` asks the engine's own
tools as an account without rights, without a network, in namespaces of its own (`confine.sh`). Nothing of a study stands in
either but what was checked and is quoted.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from bedplate.cuts.log import DEVICE_NAMES, DISK, JOURNAL
from bedplate.errors import RequirementMissing, StudyError
from bedplate.filesystem.after_cut import image_levels, repair_commands
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.facts import read_machine
from bedplate.host.files import cache_directory
from bedplate.model import codec
from bedplate.model.cell import FilesystemLevels, KernelLevels
from bedplate.model.filesystem import TRAITS, unsafe_options
from bedplate.model.visit import VisitRecord
from bedplate.plan.rules import QEMU
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY, JOB_FILE, ReplayJob, cut_engine

LINES_MOST = 100

REPRODUCE, CHECK, CONFINE = "reproduce.sh", "check.sh", "confine.sh"

# Exit statuses of `reproduce.sh`: the verdict that was asked for, another one, and none.
AS_ASKED, OTHERWISE, NO_VERDICT = 0, 1, 4

_TOOLS = (
    *("awk", "blockdev", "chown", "cp", "dd", "head", "losetup", "mount", "mountpoint"),
    *("sed", "setpriv", "tar", "timeout", "tr", "umount", "unshare", "xz"),
)

_JOURNAL_PLACE = "@journal@"

_VARIABLES, _LIMIT = "@variables@", "@limit@"

# How long the engine's tools may take.
CHECK_LIMIT_S = 1800

_POOLED = "zfs"

# The variable with further folders of programs, before the system's.
TOOLS = "BEDPLATE_TOOLS"

# Before Linux 6.7 an image is refused while another loop device stands in the kernel's list with its identity. What is there
# is listed anew: of a file system of many disks that is not mounted each must be in that list.
_FORGETTING: Mapping[str, Sequence[str]] = {
    "btrfs": (
        "{ btrfs device scan --forget; btrfs device scan; } > /dev/null 2>&1   # devices that are gone",
    ),
}

_HEAD = """\
#!/bin/sh
# One bad power cut, again: mounts a copy of what the cut left, and asks the engine's own tools.
# `reproduce.sh` exits with 0 where it finds the bad verdict; `reproduce.sh mended` lays back what was
# lost first, and exits with 0 where all is well then. 1: the other verdict. 4: something is missing
# here, and there is no verdict. Mounting needs root; the tools run without rights. See README.md.
set -u
PATH=${BEDPLATE_TOOLS:+$BEDPLATE_TOOLS:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
wanted=${1:-bad}
[ "$(id -u)" = 0 ] || { echo "mounting needs root; use sudo" >&2; exit 3; }
plain() { tr -c '\\n -~' '?'; }
missing() { echo "no verdict: $*" | plain >&2; exit 4; }
"""

_WORK = """\
work=$(mktemp -d) && chmod 755 "$work" || exit 3
devices=
end() {
    mountpoint -q "$work/mount" && { umount "$work/mount" || umount --lazy "$work/mount"; }
    for device in $devices; do losetup --detach "$device"; done
    rm -rf --one-file-system "${work:?}"
}
trap end EXIT
trap 'exit 130' INT TERM HUP
mkdir "$work/mount" "$work/engine"; : > "$work/bad"; : > "$work/answer"
bad() { echo "$*" >> "$work/bad"; }
verdict() {
    sed 's/^/bad: /' "$work/bad" | plain
    if [ -s "$work/bad" ]; then found=bad; else found=mended; echo "all is well"; fi
    if [ "$found" = "$wanted" ]; then exit 0; else exit 1; fi
}
unpack() {
    tar --extract --sparse --xz --no-same-owner --file="$here/$1.tar.xz" --directory="$work" "$1" || exit 3
    if [ "$wanted" = mended ]; then
        for part in "$here"/mended/"$1"-*; do
            [ -e "$part" ] || continue
            dd if="$part" of="$work/$1" bs=512 seek=$((${part##*-} / 512)) conv=notrunc status=none || exit 3
        done
    fi
    device=$(losetup --find --show "$work/$1") || exit 3
    devices="$devices $device"
    blockdev --setrw "$device" || exit 3   # what another protected stays so when its file is gone
}
"""

# Of 65534, `nobody`, other programs may run; in namespaces of its own it meets none of them.
_TAIL = """\
[ -d "$data" ] && [ ! -L "$data" ] || { bad "the engine's folder is gone"; verdict; }
chown -R -h -P 65534:65534 "$data" 2> "$work/said" ||
    bad "the file system gives errors: $(head -n 1 "$work/said")"
[ ! -d "$here/engine" ] || cp -R "$here/engine/." "$work/engine"
cp "$here/check.sh" "$work/engine" && chmod -R u=rwX,go=rX "$work/engine" || exit 3
{
    timeout --foreground --kill-after=10 @limit@ \\
        unshare --mount --pid --net --ipc --fork --kill-child --mount-proc \\
        sh "$here/confine.sh" "$data" "$work/engine" \\
        setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs -- \\
        env -i PATH="$PATH" LC_ALL=C HOME=/tmp @variables@sh /tmp/engine/check.sh 2>&1
    echo $? > "$work/status"
} | head -c 1048576 > "$work/answer"
status=$(cat "$work/status" 2> /dev/null || echo unknown)
said=$(sed -n 's/^cannot //p' "$work/answer" | tail -n 1)
[ "$status" = 0 ] || missing "${said:-check.sh ended with $status: $(tail -n 1 "$work/answer")}"
sed -n 's/^bad //p' "$work/answer" >> "$work/bad"
awk 'FILENAME == ARGV[1] { if ($0 ~ /^present [0-9]+ [0-9]+$/) last[$2] = $3 + 0; next } { promised[$1] = $2 + 0 }
    END {
        for (c in promised) if (last[c] + 0 < promised[c])
            print "client " c ": transactions up to " promised[c] " were acknowledged, and the last one there is " last[c] + 0
        for (c in last) if (last[c] > promised[c] + 1)
            print "client " c ": transaction " last[c] " is there, and " promised[c] + 0 " was the last acknowledged"
    }' "$work/answer" "$here/promised.txt" >> "$work/bad"
verdict
"""

_CHECK_HEAD = """\
#!/bin/sh
# The engine's own tools on the files that a cut left. `reproduce.sh` starts it as an account without rights, with no
# network; it prints `present CLIENT LAST` for the last transaction of a client, `bad WORDS`, and `cannot WORDS`
# with status 4 where something is missing here.
set -u
data=/tmp/data
own=/tmp/own
mkdir "$own" || exit 5
bad() { printf 'bad %s\\n' "$(printf '%s' "$*" | head -n 1)"; }
cannot() { printf 'cannot %s\\n' "$*"; exit 4; }
need() { command -v "$1" > /dev/null || cannot "$1 is not there ($2)"; }
"""

# What `host/shut_in` does to programs of others, without a filter of system calls: a shell has none.
_CONFINE = """\
#!/bin/sh
# The first process of namespaces of its own: confine.sh DATA PROGRAMS COMMAND... DATA becomes /tmp/data and PROGRAMS
# /tmp/engine. Both are opened before /tmp is hidden, as they may stand in it; mount(8) must not look up where the
# links to them lead, which is nowhere by then.
set -e
exec 3<"$1" 4<"$2"
shift 2
mount -o remount,bind,ro /
mount -t tmpfs -o size=256m,mode=1777,nosuid,nodev tmpfs /tmp
mkdir /tmp/data /tmp/engine
mount --no-canonicalize --bind /proc/self/fd/3 /tmp/data
mount --no-canonicalize --bind /proc/self/fd/4 /tmp/engine
exec 3<&- 4<&-
# In /run other programs have their sockets, which a namespace of networks does not hide.
for place in /var/tmp /dev/shm /run /var/run; do
    [ ! -d "$place" ] || [ -L "$place" ] || mount -t tmpfs -o size=256m,mode=1777,nosuid,nodev tmpfs "$place"
done
cd /tmp/data
set +e
"$@"
# Not the last command by itself: a shell would become it, and the first process of a namespace ignores SIGTERM.
exit $?
"""


def scripts(
    job: ReplayJob,
    images: Sequence[str],
    check: Sequence[str],
    variables: Sequence[str] = (),
    *,
    has_mended: bool,
) -> Mapping[str, str]:
    """The three scripts by their names; `images` are the names of the packed devices, `check` the engine's own lines.

    They see the `variables` of whoever starts the first one, and no others. The type must be one that mount(8) mounts.
    """
    refuse = "" if has_mended else '[ "$wanted" = bad ] || { echo "nothing mends this cut" >&2; exit 2; }\n'
    seen = "".join(f'{name}="${{{name}:-}}" ' for name in variables)
    tail = _TAIL.replace(_VARIABLES, seen).replace(_LIMIT, str(CHECK_LIMIT_S))
    middle, asking = "\n".join(_mounting(job, images)), "\n".join(check)
    has_journal = DEVICE_NAMES[JOURNAL] in images
    return {
        REPRODUCE: f"{_HEAD}{refuse}{_needs(job, has_journal=has_journal)}{_WORK}{middle}\n{tail}",
        CHECK: f"{_CHECK_HEAD}{asking}\nexit 0\n",
        CONFINE: _CONFINE,
    }


def kernel_needs(type_name: str) -> str:
    """What the kernel must have to mount a type."""
    type_ = filesystem_for(type_name)
    return "fuse" if type_.shown_type else type_.traits.type


def own_tools(type_name: str, *, has_journal: bool) -> tuple[str, ...]:
    """What mounts and repairs a type, as far as it is a program of its own."""
    repairs = repair_commands(type_name, "", "" if has_journal else None)
    programs = (command.split()[0] for repair in repairs for command in repair)
    mounts = (filesystem_for(type_name).mount_program or ("mount",))[:1]
    return tuple(dict.fromkeys(name for name in (*mounts, *programs) if name not in _TOOLS))


def _needs(job: ReplayJob, *, has_journal: bool) -> str:
    """A tool or a file system that is not there is no finding."""
    tools = (*_TOOLS, *own_tools(job.filesystem.type, has_journal=has_journal))
    driver = kernel_needs(job.filesystem.type)
    return (
        f"for tool in {' '.join(tools)}; do\n"
        '    command -v "$tool" > /dev/null || missing "$tool is not installed"\n'
        "done\n"
        f"grep -qw {driver} /proc/filesystems || modprobe -q {driver} 2> /dev/null || missing 'this kernel has no {driver}'\n"
    )


def require_mountable(type_: str) -> None:
    """StudyError of a type that no mount(8) mounts."""
    if type_ == _POOLED:
        raise StudyError(
            "a pool of ZFS is not mounted by mount(8), and its check is none that a bundle carries"
        )


def _mounting(job: ReplayJob, images: Sequence[str]) -> Iterator[str]:
    levels, has_journal = job.filesystem, DEVICE_NAMES[JOURNAL] in images
    yield f"unpack {DEVICE_NAMES[DISK]}; disk=$device"
    if has_journal:
        yield f"unpack {DEVICE_NAMES[JOURNAL]}; journal=$device"
    type_ = filesystem_for(levels.type)
    program = type_.mount_program or ("mount", "-t", levels.type)
    options = _options(job, has_journal=has_journal)
    yield f'try() {{ {shlex.join(program)} -o {options} "$disk" "$work/mount" 2>> "$work/mounting"; }}'
    yield from _FORGETTING.get(levels.type, ())
    said = '> "$work/repair" 2>&1'
    repairs = [
        "; ".join(f"{command} {said}" for command in repair)
        for repair in repair_commands(levels.type, '"$disk"', '"$journal"' if has_journal else None)
    ]
    if type_.traits.checked_by_fsck(levels.journal) and repairs:
        yield f"{repairs[0]}   # without a journal a system checks before it mounts"
        repairs = repairs[1:]
    tries = " || ".join(("try", *(f"{{ {each}; try; }}" for each in repairs)))
    yield f"{tries} ||"
    yield '    { bad "the file system is lost: $(head -n 1 "$work/mounting")"; verdict; }'
    yield f'data="$work/mount/{DATA_DIRECTORY}"'


def _options(job: ReplayJob, *, has_journal: bool) -> str:
    """One word for `mount -o`, with those that take rights from what the image holds (`image_levels`)."""
    type_, levels = filesystem_for(job.filesystem.type), job.filesystem
    words = list(type_.mount_options(image_levels(levels, _JOURNAL_PLACE if has_journal else None)))
    if has_journal and type_.journal_option is not None:
        words.append(f"{type_.journal_option}={_JOURNAL_PLACE}")
    quoted = shlex.quote(",".join(words))
    # What shlex leaves as it is has no quotes to end.
    inner = quoted if quoted.startswith("'") else f"'{quoted}'"
    return inner.replace(_JOURNAL_PLACE, "'\"$journal\"'")


# What options of mounts are made of; nothing of it means anything to a shell.
_OPTION = re.compile(r"[A-Za-z0-9_.:=+%@^~-]+")

# As useradd(8) takes it.
_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")

_OTHERS_WRITE = 0o022


def job_of(folder: Path, *, in_guest: bool = False) -> ReplayJob:
    """What the log of a run is replayed with, here or `in_guest`.

    StudyError with each reason where a mount option or a setting is none that a plan may have, or a program is neither in bedplate's cache
    nor root's alone: a study that was copied from elsewhere could bring its own. PlanError for an engine that is not known,
    RequirementMissing where it is here, and the running kernel lacks the file system: each image would seem to be lost.
    """
    job = codec.read(ReplayJob, folder / JOB_FILE)
    reasons = (
        *_mounting_again(job.filesystem),
        *_programs(job.subject),
        *_settings(job.subject),
        *_account(job.subject),
    )
    if reasons:
        raise StudyError(*(f"{folder / JOB_FILE}: {reason}" for reason in reasons))
    if not in_guest and (lacking := lacking_here(job.filesystem.type)) is not None:
        raise RequirementMissing(
            f"{lacking}, and cuts are recovered under the kernel that runs this: run it on a machine whose kernel has it; the study may be copied "
            "there. What was recorded in a guest needs no such machine"
        )
    return job


def record_of_visit(folder: Path) -> VisitRecord:
    """The record of the visit that a run is a part of."""
    return codec.read(VisitRecord, folder.parent.parent / "visit.json")


def is_for_guest(folder: Path, *, anyway: bool = False) -> bool:
    """Whether the cuts of a run are recovered in a guest, as the visit was in one: `anyway`, or as the running kernel lacks the file system."""
    record = record_of_visit(folder)
    return record.executor == QEMU and (anyway or lacking_here(record.cell.filesystem.type) is not None)


def require_trusted_kernel(levels: KernelLevels, study: Path) -> None:
    """StudyError where a study names a kernel by a path that may be a stranger's: a guest reads what its caller may read."""
    if not levels.is_path:
        return
    named = Path(str(levels.release))
    if named.resolve().is_relative_to(study.resolve()) or not _is_trusted(named, (0, os.geteuid())):
        raise StudyError(
            f"kernel {str(named)!r} may be a stranger's, and no guest was started: it may not lie in the study, and none but root and you may "
            "write it or the folders above it"
        )


def told_of_kernel(folder: Path, here: str | None = None, digest: str | None = None) -> str | None:
    """That the cuts are recovered under another kernel than in the study: under `here`, by default the running one.

    None under the same one, or where the study does not say. The `digest` of a guest's kernel tells builds of one release apart.
    """
    provenance = record_of_visit(folder).provenance
    recorded, here = provenance.get("kernel"), here or platform.release()
    if recorded is None or (recorded == here and digest in (None, provenance.get("kernel_digest"))):
        return None
    build = "another build of it" if recorded == here else here
    return f"recorded and judged under kernel {recorded}, and recovered here under {build}: another verdict may be the kernel's"


def lacking_here(kind: str) -> str | None:
    """That the running kernel lacks a file system; None where it has it."""
    machine, types = read_machine(), TRAITS[kind].kernel_types if kind in TRAITS else (kind,)
    if set(types) & set(machine.filesystems):
        return None
    return f"kernel {machine.kernel_release} has no {' or '.join(types)}"


def _mounting_again(levels: FilesystemLevels) -> Iterator[str]:
    yield from unsafe_options(levels)
    for word in filesystem_for(levels.type).mount_options(levels):
        if not _OPTION.fullmatch(word):
            yield f"mount option {word!r} has characters that none has; nothing was mounted"


def _programs(subject: Subject) -> Iterator[str]:
    paths = [str(path) for path in subject.drivers.values()]
    if subject.build is not None:
        paths.append(subject.build.prefix)
    for path in paths:
        if not _is_trusted(Path(path)):
            yield (
                f"program {path!r} is not in {cache_directory()}, and others than root may write it; nothing was started. BEDPLATE_CACHE "
                "names another cache; a run of the plan makes the programs"
            )


def _settings(subject: Subject) -> Iterator[str]:
    for reason in cut_engine(subject.engine).refused_settings(subject):
        yield f"{reason}; nothing was started"


def _account(subject: Subject) -> Iterator[str]:
    account = subject.account
    if account is not None and (account.uid == 0 or not _NAME.fullmatch(account.name)):
        yield f"account {account.name!r} ({account.uid}) is none that servers run as; nothing was started"


def _is_trusted(path: Path, owners: Collection[int] = (0,)) -> bool:
    """Whether none but its owners may write it. One that is gone is said to be gone by whoever starts it."""
    found = path.resolve()
    if not path.is_absolute() or found.is_relative_to(cache_directory().resolve()):
        return path.is_absolute()
    there = [place for place in (found, *found.parents) if place.exists()]
    return all(
        status.st_uid in owners and not status.st_mode & _OTHERS_WRITE
        for status in (place.stat() for place in there)
    )
