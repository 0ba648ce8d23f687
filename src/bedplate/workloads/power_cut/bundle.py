"""A bundle of one bad cut for somebody without bedplate: the packed image, the scripts from it to a verdict, and whether they give it.

`reproduce.sh` is started by root, and all that root does with a stranger's image is to mount it. `check.sh` asks the engine's own
tools as an account without rights, without a network, in namespaces of its own (`confine.sh`). Nothing of a study stands in
either but what was checked and is quoted. As a program this tries a bundle's script in a guest whose kernel has the file system.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from bedplate import registry
from bedplate.cuts.blame import NOT_BAD_AGAIN, BlamedWrite, Found, Story, story_of
from bedplate.cuts.log import (
    DEVICE_NAMES,
    DISCARD,
    DISK,
    FLUSH,
    FUA,
    JOURNAL,
    MARK,
    Acknowledgements,
    Log,
    read_log,
)
from bedplate.cuts.records import RECORDING_FILE, ChosenState, CutPoint, RecordingFacts
from bedplate.errors import StudyError
from bedplate.filesystem.after_cut import image_levels, repair_commands
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import in_place_of, recorded_account
from bedplate.host.command import Commands
from bedplate.host.files import state_directory
from bedplate.host.ledger import Holding, Holdings, Ledger
from bedplate.host.requirement import Need, demand, look
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.model import codec
from bedplate.model.visit import VisitRecord
from bedplate.units import format_count, format_size, one_line
from bedplate.visit.cuts import Reproduction
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY, ReplayJob, rebuilt
from bedplate.workloads.power_cut.cut_questions import (
    answer,
    beside_record,
    declared_of,
    inquest,
    job_of,
    record_of,
    recoveries_of,
)
from bedplate.workloads.power_cut.log import unpacked

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

POOLED = "zfs"

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
    if type_ == POOLED:
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


PROGRAM = "bedplate.workloads.power_cut.bundle"

# Beside the engine's tools the script unpacks and repairs; where these take too long it says so by itself.
TRY_LIMIT_S = CHECK_LIMIT_S + 1800.0

TRIED = "tried"


@dataclass(frozen=True)
class TriedScript:
    """How the script ended. A status other than those of this module is one that it did not mean."""

    status: int
    said: str

    @property
    def as_asked(self) -> bool:
        """Whether it gave the verdict that was asked for."""
        return self.status == AS_ASKED

    @property
    def lacks(self) -> bool:
        """Whether something is missing on this machine, so that it gave none."""
        return self.status == NO_VERDICT


@dataclass(frozen=True)
class ScriptQuestion:
    """What the script of the bundle in `folder` says with these words; `places` are variables of its environment."""

    folder: str
    words: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


def tried(script: ScriptQuestion, memory: Path, ledger: Holdings) -> TriedScript:
    """In a mount namespace of its own, as nobody else's mounts are any business of it.

    Its copies are made in `memory`, below a folder of their own: a kill leaves neither them nor the loop devices over them for good.
    """
    folder = memory / TRIED
    ledger.note(Holding("loops", str(folder)))
    folder.mkdir(mode=0o755, exist_ok=True)
    variables = {"TMPDIR": str(folder), **script.places}
    argv = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        str(Path(script.folder) / REPRODUCE),
        *script.words,
    ]
    done = Commands().run(argv, timeout_s=TRY_LIMIT_S, check=False, extra_environment=variables)
    return TriedScript(done.status, done.output)


def _answers(script: ScriptQuestion) -> Iterator[TriedScript]:
    # A guest may have tools of its file system elsewhere than the system has its own, and the script names its own PATH.
    script = replace(script, places={TOOLS: os.environ.get("PATH", ""), **script.places})
    with Ledger.open(state_directory(), f"{os.getpid()}-script") as ledger:
        try:
            yield tried(script, MEMORY_DIRECTORY, ledger)
        finally:
            ledger.release(Commands())


def main(arguments: list[str]) -> int:
    """Answer a ScriptQuestion."""
    return answer(arguments, ScriptQuestion, _answers)


_PACK_LIMIT_S = 3600.0

# Of the log beside what was blamed: this much at most, and of what is before that and before the cut so much always.
_LOG_LINES_MOST, _AROUND = 2000, 20

_PACKERS = (
    Need("tar", "tar", "packs the image of the cut"),
    Need("xz", "xz-utils", "packs the image of the cut, and unpacks it where the bundle is tried"),
)

README, STORY, LOG, PROMISED, VERSIONS = (
    *("README.md", "story.txt", "log.txt", "promised.txt", "versions.txt"),
)

MENDED, ENGINE = "mended", "engine"


class Bundle(NamedTuple):
    """What was made: the story, and what the script said of the image, and of it with what mends it laid back.

    `mended` is None where the cut is bad without a loss: there is nothing to lay back. `where` says of a guest that it was tried in one.
    """

    story: Story
    bad: TriedScript
    mended: TriedScript | None
    where: str = ""


class BundleGuest(Protocol):
    """A guest under the kernel of a run, which mounts what the running kernel cannot."""

    @property
    def words(self) -> str:
        """For a person."""

    def inquest(self, point: CutPoint, /, *, most: int) -> Found:
        """Why a cut of the run is bad."""

    def tried(self, script: ScriptQuestion, /) -> TriedScript:
        """How the script of a bundle ends there."""


def bundled(
    folder: Path, point: CutPoint, output: Path, *, most: int, guest: BundleGuest | None = None
) -> Bundle:
    """Make the bundle of a cut in the empty directory `output`, and try it here or in the guest.

    StudyError where the cut is not bad again, RequirementMissing before anything is replayed where nothing packs its image.
    """
    demand(look(_PACKERS))
    job = job_of(folder, in_guest=guest is not None)
    require_mountable(job.filesystem.type)
    reproduction: Reproduction | None = registry.engine_part_or_none(job.subject.engine, "reproduction")
    if reproduction is None:
        raise StudyError(
            f"nothing checks {job.subject.engine} without bedplate; `power-cut replay` builds the image of the cut"
        )
    with unpacked(folder) as kept:
        recoveries = recoveries_of(point, folder, kept)
        blame = (
            inquest(folder, job, point, kept, most=most) if guest is None else guest.inquest(point, most=most)
        )
        evidence = beside_record(blame.evidence, record_of(folder, point))
        story = story_of(evidence, declared_of(folder))
        if story.reason.code == NOT_BAD_AGAIN:
            raise StudyError(f"point {point.number}: {story.reason}; there is nothing to show")
        with ExitStack() as opened:
            log = opened.enter_context(read_log(kept.log))
            cut_log = opened.enter_context(read_log(recoveries[-1])) if recoveries else log
            first = next((each for each in job.points if each.number == point.recovery_of), None)
            promised = Acknowledgements(log).before((first or point).position).highest
            names = _images(log, job, blame, memory=kept.memory, output=output, recoveries=recoveries)
            _write_texts(output, story, cut_log, blame, promised)
        _write_scripts(output, job, names, reproduction)
        _versions(output, folder, job)
        question = ScriptQuestion(str(output), places=reproduction.places(job.subject))
        trying = partial(tried, memory=kept.memory, ledger=kept.ledger) if guest is None else guest.tried
        bundle = Bundle(
            story,
            trying(question),
            trying(replace(question, words=(MENDED,))) if (output / MENDED).is_dir() else None,
            "" if guest is None else f" in {guest.words}",
        )
        needs = (*_filesystem_needs(job, names), *reproduction.needs)
        (output / README).write_text(_readme(bundle, needs, output), encoding="utf-8")
    return bundle


def _write_scripts(output: Path, job: ReplayJob, names: tuple[str, ...], reproduction: Reproduction) -> None:
    """The scripts, and what the engine's lines need beside them; a link in an engine's folder is not followed."""
    lines = reproduction.lines(job.subject, in_place_of(job.subject.account, recorded_account()))
    variables = tuple(reproduction.places(job.subject))
    has_mended = (output / MENDED).is_dir()
    for name, text in scripts(job, names, lines, variables, has_mended=has_mended).items():
        (output / name).write_text(text, encoding="utf-8")
        (output / name).chmod(0o755)
    for name, path in reproduction.files(job.subject).items():
        target = output / ENGINE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def _images(
    log: Log, job: ReplayJob, blame: Found, *, memory: Path, output: Path, recoveries: Sequence[Path]
) -> tuple[str, ...]:
    """The packed images, and what mends them; their names."""
    commands = Commands()
    first = tuple(each for each in job.points if each.number == blame.smallest.recovery_of)
    places = {name: memory / f"bundle-{name}" for name in ("first", "bad", "whole")}
    for place in places.values():
        place.mkdir()

    def image(point: CutPoint, place: str) -> tuple[Path, ...]:
        alone = replace(job, points=(*first, point), recuts=())
        (places["first"]).mkdir(exist_ok=True)
        return rebuilt(log, alone, places["first"], places[place], recoveries).images

    bad = image(blame.smallest, "bad")
    for path in bad:
        packed = output / f"{path.name}.tar.xz"
        argv = [
            "tar",
            "--create",
            "--sparse",
            f"--directory={path.parent}",
            # At its usual level a server's image takes minutes on a busy machine.
            "--use-compress-program=xz -2",
            f"--file={packed}",
            path.name,
        ]
        commands.run(argv, timeout_s=_PACK_LIMIT_S)
    if blame.evidence.smallest:
        whole = image(replace(blame.smallest, state=ChosenState((), kept=False)), "whole")
        _write_mended(output / MENDED, blame.evidence.smallest, whole)
    for place in places.values():
        shutil.rmtree(place)
    return tuple(path.name for path in bad)


def _write_mended(folder: Path, smallest: tuple[BlamedWrite, ...], lossless: tuple[Path, ...]) -> None:
    """What stands at the lost places where nothing is lost: later writes to them included."""
    folder.mkdir()
    for write in smallest:
        image = lossless[DEVICE_NAMES.index(write.device)]
        with image.open("rb") as file:
            for start, length in write.lost:
                file.seek(write.offset + start)
                (folder / f"{write.device}-{write.offset + start}").write_bytes(file.read(length))


def _write_texts(output: Path, story: Story, log: Log, blame: Found, promised: Mapping[int, int]) -> None:
    (output / STORY).write_text("\n".join(story.lines) + "\n", encoding="utf-8")
    (output / LOG).write_text("\n".join(_log_lines(log, blame)) + "\n", encoding="utf-8")
    lines = (f"{client} {number}" for client, number in sorted(promised.items()))
    (output / PROMISED).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _log_lines(log: Log, blame: Found) -> Iterator[str]:
    """The entries before the cut, back to what was lost first, and those behind it that are blamed. Of too many those in between are left out."""
    late = blame.evidence.mended_by
    told = {write.entry: f"LOST {_parts(write)}" for write in blame.evidence.smallest}
    if late is not None:
        told[late.entry] = f"TOO LATE: {'; '.join(late.names)}"
    position = blame.smallest.position
    first = max(0, min([position, *told]) - _AROUND)
    # What was on its way at the cut stands behind it in the log.
    until = max([position, *(entry + 1 for entry in told)])
    cut_ns = log.time_before(position)
    yield "# entry, ms before the cut, what, device, offset, length in bytes, who asked for it where that was seen"
    at, is_cut = first, False
    shown = {*told, *range(max(0, position - _AROUND), position)}
    shown |= {*range(max(first, until - _LOG_LINES_MOST), until)}
    for index in (*sorted(shown), until):
        if index >= position and not is_cut:
            yield from _left_out(position - at)
            yield "# the cut"
            at, is_cut = position, True
        yield from _left_out(index - at)
        if index < until:
            yield f"{_entry_line(log, index, cut_ns)} {told.get(index, '')}".rstrip()
        at = index + 1


def _left_out(count: int) -> Iterator[str]:
    if count > 0:
        yield f"# {format_count(count, 'entry', 'entries')} left out"


def _entry_line(log: Log, index: int, cut_ns: int | None) -> str:
    entry = log.entry(index)
    ms = "-" if entry.time_ns is None or cut_ns is None else f"{(cut_ns - entry.time_ns) / 1e6:.3f}"
    if entry.flags & MARK:
        return f"{index} {ms} acknowledged: {one_line((log.mark(index) or b'').decode(errors='replace'))}"
    words = f"{index} {ms} {_kind_of_entry(entry.flags)} {DEVICE_NAMES[entry.device]} {entry.offset} {entry.length}"
    return words + "".join(f" by {each.name}[{each.pid}]" for each in log.writers(index) or ())


def _parts(write: BlamedWrite) -> str:
    parts = ", ".join(f"{start}+{length}" for start, length in write.lost)
    return f"{parts}: {'; '.join(write.names)}"


def _kind_of_entry(flags: int) -> str:
    words = [word for bit, word in ((FLUSH, "flush"), (FUA, "fua"), (DISCARD, "discard")) if flags & bit]
    return "+".join(words) or "write"


def _versions(output: Path, folder: Path, job: ReplayJob) -> None:
    visit = codec.read(VisitRecord, folder.parent.parent / "visit.json")
    recording = codec.read(RecordingFacts, folder / RECORDING_FILE)
    told = {**recording.facts, **visit.versions}
    lines = [f"{name}: {version}" for name, version in sorted(told.items())]
    lines += [f"setting {name}: {level}" for name, level in sorted(job.subject.settings.items())]
    (output / VERSIONS).write_text("".join(f"{one_line(line)}\n" for line in lines), encoding="utf-8")


_TRIED = {
    True: "it gave the bad verdict",
    False: "it did NOT give the bad verdict: what is wrong here the engine's own tools do not see",
}


def _filesystem_needs(job: ReplayJob, names: tuple[str, ...]) -> Iterator[str]:
    type_ = job.filesystem.type
    yield f"a kernel with {kernel_needs(type_)}"
    package = filesystem_for(type_).package
    for tool in own_tools(type_, has_journal=len(names) > 1):
        yield f"{tool} (Debian: {package})"


def _readme(bundle: Bundle, programs: Sequence[str], output: Path) -> str:
    tried = f"it gave none: {bundle.bad.said.strip()}" if bundle.bad.lacks else _TRIED[bundle.bad.as_asked]
    laid = "`sudo ./reproduce.sh mended` lays back what was lost (`mended/`)"
    mended = "The cut is bad although nothing is lost that had been written, so nothing mends it."
    if bundle.mended is not None:
        mended = (
            f"{laid}, and then all is well."
            if bundle.mended.as_asked
            else f"{laid}; when it was made, all was not well then."
        )
    sizes = ", ".join(
        f"`{path.name}` {format_size(path.stat().st_size)}" for path in sorted(output.glob("*.tar.xz"))
    )
    rows = "" if bundle.mended is None else "| `mended/` | what was lost, by device and byte |\n"
    story = "\n".join(f"    {line}" for line in bundle.story.lines)
    needs = "\n".join(
        f"- {need}" for need in (*programs, "losetup, mount, tar, xz, awk, setpriv, unshare; root")
    )
    return f"""# A power cut that was bad

{story}

`sudo ./reproduce.sh` mounts the image that the cut left and asks the engine's own tools. It exits with 0 where it finds the bad
verdict, and with 4 where something is missing and there is none. It works on copies below a temporary folder. When this bundle was
made, it was tried{bundle.where}, and {tried}. {mended}

Root mounts the image (nosuid, nodev, noexec) and repairs it where a mount is not enough. The engine's tools run as account 65534,
without a network. The kernel's file system still reads a stranger's image: whoever does not trust its maker starts a virtual machine for it.

It needs:

{needs}

| file | |
| --- | --- |
| {sizes} | the devices as the cut left them, with no more lost than it takes |
{rows}| `promised.txt` | each client, and its last transaction that was acknowledged before the cut |
| `log.txt` | what was written, by which processes, flushed and acknowledged before the cut |
| `check.sh`, `confine.sh`, `engine/` | what the tools have to answer, and what takes their rights |
| `story.txt`, `versions.txt` | the story above; what it was recorded with |
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
