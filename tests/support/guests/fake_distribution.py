"""A distribution with suites and packages of our making, behind doubles of apt, dpkg-deb and depmod.

A package's file is the JSON of what it holds, so that its checksum is real.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.host.command import Completed

URI = "http://mirror.example/debian"
SECURITY_URI = "http://mirror.example/debian-security"
OS_RELEASE = "ID=debian\nVERSION_CODENAME=bookworm\n"
SOURCES = f"""\
Types: deb
URIs: {URI}
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: {SECURITY_URI}
Suites: bookworm-security
Components: main
"""


@dataclass(frozen=True)
class FakePackage:
    """`files` maps a path to its text, or to the target of a link behind `-> `."""

    version: str
    files: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    architecture: str = "amd64"

    @property
    def content(self) -> bytes:
        return json.dumps(dict(self.files), sort_keys=True).encode()


class FakeDistribution:
    """`suites` maps a suite to its packages; a suite that is not there fails to update."""

    def __init__(self, suites: Mapping[str, Mapping[str, FakePackage]], sources: Path) -> None:
        self.suites = suites
        self.names_only: tuple[str, ...] = ()
        self.tampered = False
        self._sources = sources
        sources.mkdir(exist_ok=True)
        (sources / "debian.sources").write_text(SOURCES, encoding="utf-8")

    def answer(self, commands: ScriptedCommands) -> ScriptedCommands:
        """Put the doubles in place of the programs."""
        commands.answers |= {
            "apt-config": self._config,
            "apt-get": self._get,
            "apt-cache": self._cache,
            "dpkg-deb": self._extract,
            "depmod": depmod,
        }
        return commands

    def updates(self, commands: ScriptedCommands) -> int:
        """How often indexes were read."""
        return sum("update" in words for words in commands.record)

    def _config(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        del directory
        return Completed(argv, 0, f"LIST='{self._sources}/none'\nPARTS='{self._sources}/'\n", "", 0.0)

    def _there(self, argv: tuple[str, ...]) -> Iterator[tuple[str, FakePackage]]:
        """Packages of the suites that this root was told of; of one name the last suite counts."""
        configuration = Path(argv[argv.index("-c") + 1])
        lines = configuration.with_name("sources.list").read_text(encoding="utf-8").splitlines()
        found: dict[str, FakePackage] = {}
        for line in lines:
            words = line.split()
            address, suite = words[words.index(next(w for w in words if "://" in w)) :][:2]
            assert address == (SECURITY_URI if suite.endswith("-security") else URI)
            if suite not in self.suites:
                raise LookupError(suite)
            found |= self.suites[suite]
        yield from found.items()

    def _get(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        if "update" in argv:
            try:
                list(self._there(argv))
            except LookupError as error:
                said = f"E: The repository '{error.args[0]}' does not have a Release file."
                return Completed(argv, 100, "", said, 0.0)
            return Completed(argv, 0, "", "", 0.0)
        names = [word.partition("=")[0].partition(":")[0] for word in argv[argv.index("--") + 1 :]]
        there = dict(self._there(argv))
        if lacking := [name for name in names if name not in there]:
            return Completed(argv, 100, "", f"E: Unable to locate package {lacking[0]}", 0.0)
        if "install" in argv:
            wanted = [needed for name in names for needed in (*there[name].needs, name)]
            lines = [f"Inst {name} ({there[name].version} Debian:12 [amd64])" for name in wanted]
            return Completed(argv, 0, "\n".join(["Reading package lists...", *lines]), "", 0.0)
        assert directory is not None
        for name in names:
            package = there[name]
            version = package.version.replace(":", "%3a")
            content = package.content + (b" " if self.tampered else b"")
            (directory / f"{name}_{version}_{package.architecture}.deb").write_bytes(content)
        return Completed(argv, 0, "", "", 0.0)

    def _cache(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        del directory
        there = dict(self._there(argv))
        if "pkgnames" in argv:
            names = [name for name in (*there, *self.names_only) if name.startswith(argv[-1])]
            return Completed(argv, 0, "\n".join(names), "", 0.0)
        stanzas = [
            f"Package: {name}\nVersion: {there[name].version}\nArchitecture: {there[name].architecture}\n"
            f"Filename: pool/{name}.deb\nSHA256: {hashlib.sha256(there[name].content).hexdigest()}\n"
            for name in (word.partition("=")[0] for word in argv[argv.index("--") + 1 :])
            if name in there
        ]
        return Completed(argv, 0 if stanzas else 100, "\n".join(stanzas), "", 0.0)

    @staticmethod
    def _extract(argv: tuple[str, ...], directory: Path | None) -> Completed:
        del directory
        target = Path(argv[-1])
        for name, text in json.loads(Path(argv[-2]).read_bytes()).items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(text.removeprefix("-> "))
            else:
                path.write_bytes(text.encode("latin-1"))
                path.chmod(0o755 if "bin/" in name else 0o600)
        return Completed(argv, 0, "", "", 0.0)


def depmod(argv: tuple[str, ...], directory: Path | None) -> Completed:
    """Writes a modules.dep without any dependency."""
    del directory
    folder = Path(argv[argv.index("--basedir") + 1], "lib/modules", argv[-1])
    modules = sorted(path.relative_to(folder) for path in folder.rglob("*.ko*"))
    (folder / "modules.dep").write_text("".join(f"{path}:\n" for path in modules), encoding="utf-8")
    (folder / "modules.alias").write_text("# Aliases\nalias fs-ext3 ext4\n", encoding="utf-8")
    return Completed(argv, 0, "", "", 0.0)


def bz_image(release: str) -> str:
    """The beginning of an x86 kernel image, as latin-1 text: the boot protocol's header and a version."""
    image = bytearray(0x400)
    image[0x202:0x206] = b"HdrS"
    image[0x20E:0x210] = (0x80).to_bytes(2, "little")
    version = f"{release} (builder@example) #1 SMP\0".encode()
    image[0x280 : 0x280 + len(version)] = version
    return image.decode("latin-1")


def elf(*, static: bool) -> bytes:
    """A program's header with two segments, of which one names a loader unless it is static."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + (2).to_bytes(2, "little")
    kinds = (1, 1) if static else (1, 3)
    return bytes(head) + b"".join(kind.to_bytes(4, "little") + bytes(52) for kind in kinds)
