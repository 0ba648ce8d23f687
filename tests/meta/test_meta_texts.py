"""Words, paths and hosts that no file of the repository holds; requirements that carry hashes.

The patterns are put together from pieces, so that this file passes its own test.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNFINISHED = ("TO" + "DO", "FIX" + "ME", "X" * 3)
_PRIVATE = {
    re.compile(
        r"(?<![\w./-])/" + "wo" + r"rk/"
    ): "name it relative to the repository, or take it as an argument",
    re.compile(r"/ro" + r"ot/\."): "use Path.home() or tmp_path",
    re.compile("pro" + "be-venv"): "use sys.executable",
    re.compile("://fil" + r"es\."): "leave package addresses to pip's configuration",
    re.compile("/sim" + "ple/"): "leave package addresses to pip's configuration",
    re.compile("(?<!no-emit-)index-" + "url"): "leave package addresses to pip's configuration",
    re.compile("(?<!no-emit-)find-" + "links"): "leave package addresses to pip's configuration",
}
# Below these the Filesystem Hierarchy Standard has software that is added: documents name them as examples.
_SOFTWARE = frozenset({"opt", "srv", "usr"})
# Every machine's own, so it tells nothing about whose machine a file was written on.
_PUBLIC_HOSTS = frozenset({"localhost"})
_CONFIGURATION = (
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/*",
    "/etc/apt/apt.conf",
    "/etc/apt/apt.conf.d/*",
    "/etc/pip.conf",
    "~/.pip/pip.conf",
    "~/.config/pip/pip.conf",
    "~/.config/uv/uv.toml",
    "/etc/uv/uv.toml",
)
_ADDRESS = re.compile(r"https?://[^\s\"';]+")
_REQUIREMENT = re.compile(r"^[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==[^\s;]+(?= |$)")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}(?= |$)")


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def unfinished_marks(path: str, text: str) -> list[str]:
    """Marks of unfinished work, as words."""
    pattern = re.compile(r"\b(" + "|".join(_UNFINISHED) + r")\b")
    return [
        f"{path}:{number} {match[0]}; do it now, or write an issue"
        for number, line in enumerate(text.splitlines(), 1)
        if (match := pattern.search(line))
    ]


def private_names(path: str, text: str, checkout: Path, hosts: Iterable[str]) -> list[str]:
    """Paths and hosts that belong to one machine.

    A short path (/src, /root) proves nothing, nor does one where every machine keeps its software (/opt/bedplate).
    """
    patterns = dict(_PRIVATE)
    for folder, instead in (
        (checkout, "name it relative to the repository"),
        (Path.home(), "use Path.home()"),
    ):
        if len(folder.parts) > 2 and folder.parts[1] not in _SOFTWARE:
            patterns[re.compile(re.escape(str(folder)) + r"\b")] = instead
    for host in hosts:
        # Not as a part of another name: example.org is not found in docs.example.organic.
        patterns[re.compile(r"(?<![\w.-])" + re.escape(host) + r"(?![\w-]|\.\w)")] = (
            "leave hosts to the configuration"
        )
    # A line is looked at for what the whole text has.
    found = {pattern: instead for pattern, instead in patterns.items() if pattern.search(text)}
    return [
        f"{path}:{number} {match[0]!r}; {instead}"
        for number, line in enumerate(text.splitlines() if found else (), 1)
        for pattern, instead in found.items()
        if (match := pattern.search(line))
    ]


def configured_hosts(texts: Iterable[str]) -> set[str]:
    """The hosts in configuration files of apt, pip and uv, comments left out, public ones too."""
    lines = [
        line for text in texts for line in text.splitlines() if not line.lstrip().startswith(("#", "//", ";"))
    ]
    hosts = {urlsplit(address).hostname for line in lines for address in _ADDRESS.findall(line)}
    return {host for host in hosts if host} - _PUBLIC_HOSTS


def unhashed_requirements(path: str, text: str) -> list[str]:
    """Requirements without an exact version or without a hash, and options, which belong to pip."""
    logical = re.sub(r"\\\n\s*", "", text)
    findings = []
    for line in logical.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if not _REQUIREMENT.match(stripped):
            findings.append(
                f"{path}: {stripped[:60]!r} is no exact version; compile the file anew (requirements/README.md)"
            )
        elif not _HASH.search(stripped):
            findings.append(
                f"{path}: {stripped[:60]!r} has no hash; compile the file anew (requirements/README.md)"
            )
    return findings


def _machine_texts() -> list[str]:
    paths = [Path(pattern).expanduser() for pattern in _CONFIGURATION]
    found = [path for pattern in paths for path in pattern.parent.glob(pattern.name) if path.is_file()]
    return [path.read_text(encoding="utf-8", errors="replace") for path in found]


def test_nothing_is_marked_as_unfinished(sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for source in sources for finding in unfinished_marks(source.path, source.text)])


def test_no_file_names_a_private_path_or_host(
    sources: Sequence[_Source], repository: Path, judge: _Judge
) -> None:
    hosts = configured_hosts(_machine_texts())
    judge([f for s in sources for f in private_names(s.path, s.text, repository, hosts)])


def test_every_requirement_carries_a_hash(sources: Sequence[_Source], judge: _Judge) -> None:
    locked = [s for s in sources if s.path.startswith("requirements/") and s.path.endswith(".txt")]
    assert [f"requirements/{name}.txt" for name in ("development", "package", "runtime")] == [
        s.path for s in locked
    ]
    judge([finding for s in locked for finding in unhashed_requirements(s.path, s.text)])


def test_every_direct_requirement_is_locked(repository: Path) -> None:
    for name in ("runtime", "development", "package"):
        asked = (repository / f"requirements/{name}.in").read_text(encoding="utf-8")
        locked = (repository / f"requirements/{name}.txt").read_text(encoding="utf-8")
        wanted = {match[0] for line in asked.splitlines() if (match := re.match(r"[a-z][\w-]*", line))}
        assert wanted
        assert set() == {package for package in wanted if f"\n{package}==" not in f"\n{locked}"}


@pytest.mark.parametrize("mark", _UNFINISHED)
def test_a_planted_mark_is_found(mark: str) -> None:
    assert len(unfinished_marks("a.py", f"x = 1\n# {mark}: later\n")) == 1
    assert unfinished_marks("a.py", f"x = '{mark}PLANT'\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "cd /wo" + "rk/main",
        "/fol" + "der/of/alice/.cache",
        "/tmp/pro" + "be-venv/bin/python",
        "/ro" + "ot/.cache/x",
        "https://fil" + "es.example/x.whl",
        "https://mirror.example/sim" + "ple/typer",
        "--extra-index-" + "url https://x",
        "see mirror.example:8080/debian",
        "in /build/agent/bedplate/src",
    ],
)
def test_a_planted_private_name_is_found(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/fol" + "der/of/alice")
    findings = private_names("a.md", f"first\n{text}\n", Path("/build/agent/bedplate"), {"mirror.example"})
    assert findings
    assert findings[0].startswith("a.md:2 ")


@pytest.mark.parametrize(
    "text", ["the /src folder", "a/wo" + "rk/b", "mirror.example.org", "othermirror.example"]
)
def test_an_innocent_name_passes(text: str) -> None:
    assert private_names("a.md", text, Path("/src"), {"mirror.example"}) == []


def test_where_software_is_kept_is_private_to_nobody() -> None:
    assert private_names("a.md", "sudo /opt/bedplate/bedplate", Path("/opt/bedplate"), ()) == []


def test_hosts_are_read_from_configuration_without_comments_and_public_ones() -> None:
    texts = [
        "URIs: https://mirror.example/debian\n# http://comment.example/x\n",
        "deb http://user:secret@Other.Example:8080/ubuntu noble main\ndeb http://localhost/debian x\n",
    ]
    assert {"mirror.example", "other.example"} == configured_hosts(texts)


@pytest.mark.parametrize(
    "text",
    [
        "typer==1.0\n",
        "typer==1.0 \\\n    # via x\n",
        "typer>=1.0 --hash=sha256:" + "0" * 64,
        "typer --hash=sha256:" + "0" * 64,
        "typer==1.0 --hash=md5:" + "0" * 32,
        "typer==1.0 --hash=sha256:" + "0" * 63,
        "git+https://example.org/typer",
        "--no-binary :all:",
    ],
)
def test_a_planted_requirement_without_a_hash_is_found(text: str) -> None:
    assert len(unhashed_requirements("r.txt", text)) == 1


def test_a_hashed_requirement_passes() -> None:
    text = "# by uv\ntyper==1.0 ; python_version < '4' \\\n    --hash=sha256:" + "0" * 64 + "\n    # via x\n"
    assert unhashed_requirements("r.txt", text) == []
