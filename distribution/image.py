"""An image for containers as an OCI layout in one tar file: Debian, the package, and its Python environment.

`mmdebstrap` makes the root file system, without root where user namespaces are allowed, from the mirror that this
machine's apt is configured for, in its newest state: two builds are equal while that is. The layout is three JSON documents and a layer:
https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import io
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from bedplate.executors.qemu.kernels import PACKAGES
from distribution import debian
from distribution.requirements import RECOMMENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distribution.sources import Sources

_RELEASE = "trixie"
_PIP_SETTINGS, _AUTHORITIES = "pip.conf", "ca-certificates.crt"
# Debian's public archive, as apt's own package names it: kernels and tools of guests come from there. The mirror that this machine's apt
# has may be reached from here alone.
_APT_SOURCES = "usr/share/doc/apt/examples/debian.sources"
# Those that this machine trusts: its index may stand behind an authority of its own.
_CERTIFICATES = f"/etc/ssl/certs/{_AUTHORITIES}"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What differs between two builds, or tells of the machine that made it; nothing of it is needed to run.
_LEFT_OUT = (
    "./etc/apt/apt.conf.d/99mmdebstrap",
    "./etc/hostname",
    "./etc/resolv.conf",
    "./root/",
    "./run/",
    "./tmp/",
    "./var/cache/apt/",
    "./var/cache/debconf/",
    "./var/cache/ldconfig/",
    "./var/lib/apt/",
    "./var/log/",
)
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"


def build(sources: Sources, into: Path) -> Path:
    """The image in the folder `into`. OSError where mmdebstrap is not there."""
    if shutil.which("mmdebstrap") is None:
        raise OSError("the image needs mmdebstrap: apt-get install --no-install-recommends mmdebstrap")
    target = into / f"bedplate-{sources.version}.oci.tar"
    with tempfile.TemporaryDirectory() as folder:
        root, layer = Path(folder) / "root.tar", Path(folder) / "layer.tar.gz"
        _make_root(debian.build(sources, Path(folder)), root, sources)
        _write_layout(layer, _write_layer(root, layer, sources.epoch), target, sources)
    return target


def _make_root(package: Path, target: Path, sources: Sources) -> None:
    """A root file system with the package and its Python environment in it, as a tar file."""
    _write_pip_settings(package.parent)
    inside = "/opt/packages"
    # The image's own Python chooses what pip fetches; how pip is reached from this machine does not stay in the image.
    reached = f"env -i PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 PIP_CONFIG_FILE={inside}/{_PIP_SETTINGS} PIP_CERT={inside}/{_AUTHORITIES}"
    hooks = (
        f"mkdir $1{inside} && cp {package} {package.parent}/{_PIP_SETTINGS} {_CERTIFICATES} $1{inside}",
        f"chroot $1 apt-get install --yes --no-install-recommends {inside}/{package.name}",
        f"chroot $1 {reached} bedplate --version",
        f"rm -rf $1{inside}",
        "find $1/var/cache/bedplate -name __pycache__ -prune -exec rm -rf {} +",
        # The last: until here apt asks the mirror that mmdebstrap wrote down.
        f"rm -rf $1/etc/apt/sources.list $1/etc/apt/sources.list.d/* && cp $1/{_APT_SOURCES} $1/etc/apt/sources.list.d",
    )
    with (target.parent / "log").open("w+", encoding="utf-8", errors="replace") as log:
        command = [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={','.join((*RECOMMENDS, *PACKAGES, 'ca-certificates'))}",
            *(f"--customize-hook={hook}" for hook in hooks),
            _RELEASE,
            str(target),
        ]
        done = subprocess.run(command, check=False, env=sources.environment, stdout=log, stderr=log)
        if done.returncode:
            log.seek(0)
            raise OSError(f"mmdebstrap failed; its last lines: {''.join(log.readlines()[-20:])}")


def _write_pip_settings(into: Path) -> None:
    """Which index pip is configured for here, by whatever file or variable."""
    command = [sys.executable, "-P", "-s", "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    settings = dict(line.split("=", 1) for line in listed.splitlines())
    lines = [
        f"{name.rpartition('.')[2]} = {ast.literal_eval(value)}"
        for name, value in settings.items()
        if name.rpartition(".")[2] != "cert"
    ]
    (into / _PIP_SETTINGS).write_text("\n".join(["[global]", *lines, ""]), encoding="utf-8")


class _Digested:
    """A stream that also digests what is written to it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        return self._stream.write(data)

    @property
    def name(self) -> str:
        """`sha256:…` of what was written."""
        return f"sha256:{self._digest.hexdigest()}"


def _write_layer(root: Path, into: Path, epoch: int) -> str:
    """The root file system as a layer: its files by name, none newer than the commit. Its digest before it is packed."""
    with (
        tarfile.open(root) as before,
        into.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0, compresslevel=6) as packed,
    ):
        layer = _Digested(cast("IO[bytes]", packed))
        with tarfile.open(fileobj=cast("IO[bytes]", layer), mode="w|", format=tarfile.PAX_FORMAT) as after:
            for member in sorted(_kept(before), key=lambda each: each.name):
                member.mtime = min(int(member.mtime), epoch)
                member.pax_headers = {}
                after.addfile(member, before.extractfile(member) if member.isreg() else None)
    return layer.name


def _kept(root: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for member in root:
        is_folder = member.name.rstrip("/") + "/" in _LEFT_OUT
        if is_folder or not member.name.startswith(_LEFT_OUT):
            yield member


def _write_layout(layer: Path, diff_id: str, target: Path, sources: Sources) -> None:
    """`diff_id` is the layer's digest before it was packed."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:

        def add(name: str, content: IO[bytes], size: int) -> None:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = size, sources.epoch
            archive.addfile(member, content)

        def add_document(name: str, document: object) -> None:
            add(name, io.BytesIO(_json(document)), len(_json(document)))

        def add_blob(media_type: str, content: io.BytesIO | io.BufferedReader, size: int) -> dict[str, Any]:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
            content.seek(0)
            add(f"blobs/sha256/{digest}", content, size)
            return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}

        def add_json_blob(media_type: str, document: object) -> dict[str, Any]:
            return add_blob(media_type, io.BytesIO(_json(document)), len(_json(document)))

        add_document("oci-layout", {"imageLayoutVersion": "1.0.0"})
        with layer.open("rb") as content:
            manifest = {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": add_json_blob(_CONFIG, _configuration(diff_id, sources)),
                "layers": [add_blob(_LAYER, content, layer.stat().st_size)],
            }
        named = {"annotations": {"org.opencontainers.image.ref.name": f"bedplate:{sources.version}"}}
        entry = add_json_blob(_MANIFEST, manifest) | named
        add_document("index.json", {"schemaVersion": 2, "manifests": [entry]})


def _configuration(diff_id: str, sources: Sources) -> dict[str, Any]:
    return {
        "created": datetime.fromtimestamp(sources.epoch, UTC).isoformat(),
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/bedplate"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"],
            "WorkingDir": "/studies",
            "Labels": {"org.opencontainers.image.version": sources.version},
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }


def _json(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
