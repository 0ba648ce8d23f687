"""A store of transactions: a log in segments whose blocks are written beforehand, and a manifest that names them.

A transaction is a commit record and its content behind it, with a checksum of both. A segment is written full of zeros
and synced before the manifest names it, so that a commit is one fdatasync of blocks that are there already. The manifest is
replaced by rename. Recovery keeps whole transactions up to the first that is not, and copies the last segment anew if there
is a torn tail, so that nothing is ever appended behind rubbish.

`fault` names one mistake that is planted; "none" has none.
"""

import os
import random
import struct
import zlib

SEGMENT_BYTES = 64 * 1024
_MANIFEST = "MANIFEST"
# What a commit record is known by; then client, number, length of the content behind it, checksum of these three and the content.
_COMMIT = struct.Struct("<8sIQII")
_CHECKED = struct.Struct("<IQI")
_MAGIC = b"committd"


class Damaged(Exception):
    """The store says itself that it cannot go on with what it finds."""


def content_of(client, number):
    """What the transaction of that number writes: whoever reads it back knows what it has to be."""
    draw = random.Random(f"{client} {number}")
    return draw.randbytes(draw.randrange(200, 6000))


def _checksum(client, number, content):
    """Of the record too: one that was torn off behind its number has a length of 0, and zeros are the checksum of nothing."""
    return zlib.crc32(content, zlib.crc32(_CHECKED.pack(client, number, len(content))))


class Store:
    """One directory. `transactions` are (client, number, content), in the order of their commits."""

    def __init__(self, directory, fault="none"):
        self._directory, self._fault = directory, fault
        self.transactions = []
        self._segments = []
        self._file, self._at = None, 0
        if os.path.exists(os.path.join(directory, _MANIFEST)):
            self._recover()
        else:
            self._begin_segment()

    def commit(self, client, number, content):
        """On the disk when it returns."""
        checksum = 0 if self._fault == "no-checksum" else _checksum(client, number, content)
        record = _COMMIT.pack(_MAGIC, client, number, len(content), checksum)
        # A commit record lies before its content, as the length is what tells where the next one is.
        if self._at + len(record) + len(content) > SEGMENT_BYTES:
            self._begin_segment()
        if self._fault == "commit-record-first":
            os.pwrite(self._file, record, self._at)
            os.fdatasync(self._file)
            os.pwrite(self._file, content, self._at + len(record))
        else:
            os.pwrite(self._file, record + content, self._at)
            os.fdatasync(self._file)
        self._at += len(record) + len(content)

    def _begin_segment(self):
        name = f"segment-{len(self._segments):06}"
        path = self._path(name)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(file, bytes(SEGMENT_BYTES))
        os.fsync(file)
        if self._file is not None:
            os.close(self._file)
        self._file, self._at = file, 0
        self._segments.append(name)
        self._replace(_MANIFEST, "\n".join(self._segments).encode() + b"\n")

    def _replace(self, name, content, sync=True):
        """All of the new content or all of the old, whenever the power goes."""
        fresh = self._path(name + ".new")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(file, content)
        if sync and self._fault != "rename-before-fsync":
            os.fsync(file)
        os.close(file)
        os.rename(fresh, self._path(name))
        if sync and self._fault != "directory-never-synced":
            self._sync_directory()

    def _sync_directory(self):
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(directory)
        os.close(directory)

    def _recover(self):
        with open(self._path(_MANIFEST), "rb") as file:
            text = file.read()
        if not text.endswith(b"\n"):
            raise Damaged(f"the manifest has {len(text)} bytes and no end")
        self._segments = text.decode().splitlines()
        for name in self._segments:
            self._finish_rebuilding(name)
            try:
                with open(self._path(name), "rb") as file:
                    content = file.read()
            except FileNotFoundError:
                raise Damaged(f"{name} is in the manifest and not in the directory") from None
            found, end = self._whole(content)
            torn = any(content[end:])
            if torn and self._fault == "recovery-drops-segment":
                found = []
            self.transactions += found
            if torn:
                self._rebuild(name, content[:end] + bytes(SEGMENT_BYTES - end))
        self._file, self._at = os.open(self._path(self._segments[-1]), os.O_RDWR), end

    def _rebuild(self, name, whole):
        """The segment without its torn tail; a planted fault makes room before there is something in its place."""
        if self._fault not in ("recovery-truncates-first", "interrupted-recovery-not-synced"):
            self._replace(name, whole, sync=self._fault != "recovery-without-fsync")
            return
        self._sync_file(name + ".new", "wb", lambda file: file.write(whole))
        self._sync_directory()
        if self._fault == "recovery-truncates-first":
            self._sync_file(name, "r+b", lambda file: file.truncate(0))
        else:
            os.unlink(self._path(name))
            self._sync_directory()
        os.rename(self._path(name + ".new"), self._path(name))
        self._sync_directory()

    def _finish_rebuilding(self, name):
        """Where a recovery was cut that unlinks first: the fault is in what the next one does, and shows only where that is cut too."""
        fresh = self._path(name + ".new")
        if self._fault == "interrupted-recovery-not-synced" and not os.path.exists(self._path(name)):
            with open(fresh, "rb") as source, open(self._path(name), "wb") as target:
                target.write(source.read())
            os.unlink(fresh)
            self._sync_directory()

    def _sync_file(self, name, mode, change):
        with open(self._path(name), mode) as file:
            change(file)
            file.flush()
            os.fsync(file.fileno())

    def _whole(self, content):
        """The whole transactions from the beginning, and where they end."""
        found, at = [], 0
        while at + _COMMIT.size <= len(content):
            magic, client, number, length, checksum = _COMMIT.unpack_from(content, at)
            end = at + _COMMIT.size + length
            if magic != _MAGIC or end > len(content):
                break
            written = content[at + _COMMIT.size : end]
            if self._fault != "no-checksum" and _checksum(client, number, written) != checksum:
                break
            found.append((client, number, written))
            at = end
        return found, at

    def _path(self, name):
        return os.path.join(self._directory, name)
