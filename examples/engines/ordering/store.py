"""A log-structured store: segments, a manifest that names them, compaction, and files of old segments that are used again.

It has one client's last 64 transactions, each in a slot of its own. A commit is a record that is appended and one fdatasync. Each client
is a process and has a store: so the file system commits at any moment of what one of them does. A full segment
gives way to the next one, and every eighth is compacted: what still counts goes to a merged segment, the manifest names
that in place of the old ones, and only then do these go. One of them is renamed to be the next segment but one.

`fault` names one mistake of order that is planted; "none" has none.
"""

import ctypes
import os
import random
import struct
import threading
import zlib

SEGMENT_BYTES = 16 * 1024
SLOTS = 64
_SEGMENTS_MOST = 8
_MANIFEST = "MANIFEST"
# Client, number, the segment's own number, length, checksum of all these and the content behind them.
_RECORD = struct.Struct("<IQIII")
_CHECKED = struct.Struct("<IQII")
_NAME = "segment-%06d"
_FREE = "free"


class Damaged(Exception):
    """The store says itself that it cannot go on with what it finds."""


def content_of(client, number):
    """What the transaction of that number writes: whoever reads it back knows what it has to be."""
    draw = random.Random(f"{client} {number}")
    return draw.randbytes(draw.randrange(100, 1200))


class Store:
    """One directory. `slots` has (number, content) by client and slot."""

    def __init__(self, directory, fault="none"):
        self._directory, self._fault = directory, fault
        self.slots = {}
        self._segments, self._next, self._client = [], 0, 0
        self._file, self._former, self._at = None, None, 0
        if os.path.exists(self._path(_MANIFEST)):
            self._recover()
        elif any(name.startswith("segment-") for name in os.listdir(directory)):
            raise Damaged("there are segments and no manifest")
        else:
            self._begin_segment()

    def commit(self, client, number, content):
        """On the disk when it returns."""
        self._client = client
        record = self._record(client, number, content, self._segments[-1])
        if self._at + len(record) > SEGMENT_BYTES:
            if len(self._segments) >= _SEGMENTS_MOST:
                self._compact()
            self._begin_segment()
            record = self._record(client, number, content, self._segments[-1])
        os.pwrite(self._file, record, self._at)
        wrong = self._fault == "wrong-descriptor" and self._former is not None
        self._sync(self._former if wrong else self._file, os.fdatasync)
        self._at += len(record)
        self.slots[number % SLOTS] = number, content

    def _record(self, client, number, content, segment):
        # A segment's number in each record tells those of a file's former life from its own.
        own = 0 if self._fault == "stale-record" else segment
        checksum = zlib.crc32(content, zlib.crc32(_CHECKED.pack(client, number, own, len(content))))
        return _RECORD.pack(client, number, own, len(content), checksum) + content

    def _begin_segment(self):
        path = self._path(_NAME % self._next)
        if os.path.exists(self._path(_FREE)):
            os.rename(self._path(_FREE), path)
            file = os.open(path, os.O_RDWR)
        else:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._sync(file)
        self._sync_directory()
        if self._former is not None:
            os.close(self._former)
        self._former, self._file, self._at = self._file, file, 0
        self._segments.append(self._next)
        self._next += 1
        self._write_manifest()

    def _compact(self):
        old, number = self._segments[:-1], self._next
        self._next += 1
        parts = [
            self._record(self._client, count, content, number)
            for count, content in sorted(self.slots.values())
        ]
        merged = os.open(self._path(_NAME % number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(merged, b"".join(parts))
        if self._fault != "merged-not-synced":
            self._sync(merged)
        os.close(merged)
        early = {
            "delete-before-manifest": self._delete,
            "punch-before-manifest": self._punch,
            "truncate-before-manifest": self._truncate,
        }.get(self._fault)
        if early is not None:
            early(old)
        # What the active segment has is newer than what was merged, or the same.
        self._segments = [number, self._segments[-1]]
        self._write_manifest()
        if early is None:
            self._punch(old[1:])
        if early != self._delete:
            os.rename(self._path(_NAME % old[0]), self._path(_FREE))
            self._delete(old[1:])
        # The directory is synced by the next manifest; no name that is gone by then is missed.

    def _delete(self, segments):
        for segment in segments:
            os.unlink(self._path(_NAME % segment))

    def _truncate(self, segments):
        for segment in segments:
            os.truncate(self._path(_NAME % segment), 0)

    def _punch(self, segments):
        libc = ctypes.CDLL(None, use_errno=True)
        for segment in segments:
            file = os.open(self._path(_NAME % segment), os.O_RDWR)
            # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
            libc.fallocate(file, 3, ctypes.c_long(0), ctypes.c_long(SEGMENT_BYTES))
            os.close(file)

    def _write_manifest(self):
        # A line for each segment with room for what a real store says of it, so that the whole has several sectors.
        lines = "".join(f"{_NAME % segment} {'.' * 300}\n" for segment in self._segments)
        text = f"{lines}{zlib.crc32(lines.encode()):08x}\n".encode()
        path, fresh = self._path(_MANIFEST), self._path("MANIFEST.new")
        if self._fault == "manifest-in-place":
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(file, text, 0)
            os.ftruncate(file, len(text))
            self._sync(file)
            os.close(file)
            self._sync_directory()
            return
        truncated = self._fault == "manifest-truncated"
        file = os.open(path if truncated else fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(file, text)
        self._sync(file)
        os.close(file)
        if self._fault == "unlink-then-link":
            if os.path.exists(path):
                os.unlink(path)
                # As a script has it, with a program for each. Without that the two are in one commit, but once in some thousand times.
                threading.Event().wait(0.001)
            os.link(fresh, path)
            os.unlink(fresh)
        elif not truncated:
            os.rename(fresh, path)
        self._sync_directory()

    def _sync(self, file, how=os.fsync):
        if self._fault != "never-syncs":
            how(file)

    def _sync_directory(self):
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        self._sync(directory)
        os.close(directory)

    def _recover(self):
        with open(self._path(_MANIFEST), encoding="latin-1") as file:
            lines, end, checksum = file.read().rstrip("\n").rpartition("\n")
        if f"{zlib.crc32((lines + end).encode('latin-1')):08x}" != checksum:
            raise Damaged("the manifest is not whole")
        self._segments = [int(line.split()[0][-6:]) for line in lines.splitlines()]
        for segment in self._segments:
            try:
                with open(self._path(_NAME % segment), "rb") as file:
                    self._take(file.read(), segment)
            except FileNotFoundError:
                raise Damaged(f"{_NAME % segment} is in the manifest and not in the directory") from None

    def _take(self, content, segment):
        """The records from the beginning up to the first that is none of this segment's."""
        own, at = 0 if self._fault == "stale-record" else segment, 0
        while at + _RECORD.size <= len(content):
            client, number, found, length, checksum = _RECORD.unpack_from(content, at)
            written = content[at + _RECORD.size : at + _RECORD.size + length]
            expected = zlib.crc32(written, zlib.crc32(_CHECKED.pack(client, number, found, length)))
            if found != own or not number or len(written) != length or checksum != expected:
                return
            self._client = client
            self.slots[number % SLOTS] = number, written
            at += _RECORD.size + length

    def _path(self, name):
        return os.path.join(self._directory, name)
