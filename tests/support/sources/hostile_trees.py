"""Repositories of strangers: a program under every key that git documents, and what is no file at every place of one."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.sources.histories import commit, git

# What tells git how a repository is to be read. A program there is no repository to git either; `PLACES` has more of that.
_OF_THE_FORMAT = re.compile(r"core\.(?:repositoryformatversion|bare|worktree)|extensions\..*", re.IGNORECASE)
# Documented in their own pages alone, or patterns of the list that git prints.
_MORE_KEYS = (
    *("core.alternateRefsCommand", "core.gitProxy", "credential.helper", "diff.*.textconv", "diff.*.command"),
    *("filter.*.clean", "filter.*.smudge", "filter.*.process", "merge.*.driver"),
    *("gpg.*.program", "gpg.ssh.defaultKeyCommand", "alias.*", "submodule.*.update", "trailer.*.command"),
    *("trailer.*.cmd", "remote.*.uploadpack", "remote.*.receivepack", "remote.*.vcs", "remote.*.proxy"),
    *("url.*.insteadOf", "uploadpack.packObjectsHook", "protocol.ext.allow", "man.*.cmd", "browser.*.cmd"),
    *(
        "difftool.*.cmd",
        "mergetool.*.cmd",
        "pager.*",
        "sendemail.*.smtpServer",
        "guitool.*.cmd",
        "imap.tunnel",
    ),
)
# The names of keys that name a program, or a file that names some.
_OF_PROGRAMS = re.compile(
    r"^(?!advice|color|core\.fsmonitorHookVersion).*\.(?:fsmonitor|\w*(?:command|cmd|program|helper|driver|pager|editor|askpass|textconv|external|filter|hook\w*))$",
    re.IGNORECASE,
)
_HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "post-commit"),
    *(
        "prepare-commit-msg",
        "commit-msg",
        "pre-rebase",
        "post-checkout",
        "post-merge",
        "pre-push",
        "pre-receive",
    ),
    *("update", "proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout"),
    *("pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"),
)
_ATTRIBUTES = (
    "*.txt filter= diff=trap merge=trap ident eol=crlf text\n"
    "*.c filter=trap diff= merge= working-tree-encoding=UTF-16\n[attr]trap filter=trap diff=trap\n*.h trap\n"
)


def plant_programs(tree: Path, marker: Path, *, every_key: bool) -> Mapping[str, str]:
    """Name a program that makes `marker` wherever a repository of files may name one; the environment that a caller of git may have besides.

    With `every_key`, also where git expects a number, and stops when it reads that. The tree has files that each of its attributes is
    about, and changes of all of them.
    """
    trap = tree.parent / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\nexit 1\n', encoding="utf-8")
    trap.chmod(0o755)
    commit(tree, "Files", {"b.c": "int b;\n", "c.h": "int c;\n"})
    (tree / ".gitattributes").write_text(_ATTRIBUTES, encoding="utf-8")
    for name in ("a.txt", "b.c", "c.h"):
        (tree / name).write_text("changed\n")
    (tree / ".gitmodules").write_text(f'[submodule "m"]\npath = m\nurl = ext::{trap}\nupdate = !{trap}\n')
    repository = tree / ".git"
    text = "".join(_settings(trap, every_key=every_key))
    included = repository / "included"
    included.write_text(text, encoding="utf-8")
    with (repository / "config").open("a", encoding="utf-8") as config:
        config.write(f'{text}[include]\n\tpath = {included}\n[includeIf "gitdir:/**"]\n\tpath = {included}\n')
    shutil.copy(repository / "config", repository / "config.worktree")
    (repository / "info/attributes").write_text(_ATTRIBUTES, encoding="utf-8")
    for name in _HOOKS:
        shutil.copy(trap, repository / "hooks" / name)
    programs = tree.parent / "programs"
    programs.mkdir()
    for name in ("git", "git-diff", "git-rev-parse", "git-cat-file", "git-bisect", "less", "sh"):
        shutil.copy(trap, programs / name)
    named = ("EXTERNAL_DIFF", "SSH", "SSH_COMMAND", "PROXY_COMMAND", "EDITOR", "PAGER", "ASKPASS")
    return {
        **{f"GIT_{name}": str(trap) for name in named},
        "GIT_EXEC_PATH": str(programs),
        "GIT_DIR": str(repository),
        "GIT_CONFIG_GLOBAL": str(included),
        "GIT_CONFIG_SYSTEM": str(included),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(trap),
        "GIT_TRACE": str(marker),
        "PAGER": str(trap),
        "EDITOR": str(trap),
        "HOME": str(programs),
    }


def _settings(trap: Path, *, every_key: bool) -> Iterator[str]:
    """Documented keys with the program as their value, a placeholder in their name as a name and as nothing."""
    documented = git(Path("/"), "help", "--config-for-completion").split()
    if not every_key:
        documented = [key for key in documented if _OF_PROGRAMS.search(key)]
    for key in dict.fromkeys((*documented, *_MORE_KEYS)):
        section, _, rest = key.partition(".")
        middle, dot, name = rest.rpartition(".")
        if _OF_THE_FORMAT.fullmatch(key) or not re.fullmatch(
            r"[A-Za-z][A-Za-z0-9-]*", name.replace("*", "trap")
        ):
            continue
        value = f"!{trap}" if section in ("alias", "submodule") else str(trap)
        placeholder = re.sub(r"<[^>]*>|^\*$", "*", middle)
        for middle_name in [placeholder.replace("*", "trap"), ""] if "*" in placeholder else [placeholder]:
            head = f'[{section} "{middle_name}"]' if dot else f"[{section}]"
            yield f"{head}\n\t{name.replace('*', 'trap')} = {value}\n"


def places(tree: Path) -> list[Path]:
    """Every file and folder of a repository, and those that this one happens not to have; from the tree."""
    repository = tree / ".git"
    more = (
        *(
            "packed-refs",
            "shallow",
            "commondir",
            "gitdir",
            "objects/info/alternates",
            "ORIG_HEAD",
            "FETCH_HEAD",
        ),
        *(
            "refs/heads/more",
            "refs/tags/deep/more",
            "info/exclude",
            "sharedindex." + "0" * 40,
            "config.worktree",
        ),
        *("info/grafts", "objects/pack/pack-0.idx", "objects/pack/pack-0.pack", "objects/info/commit-graph"),
    )
    known = {path for path in repository.rglob("*") if not {"hooks", "logs"} & set(path.parts)}
    # One object is as good as the next.
    known -= set(sorted(path for path in known if _LOOSE.search(str(path)))[2:])
    work = (
        ".git",
        ".gitattributes",
        ".gitignore",
        ".gitmodules",
        "sub/.gitignore",
        "nested/.git",
        "nested/.git/HEAD",
    )
    return [
        path.relative_to(tree)
        for path in sorted({*known, *(repository / name for name in more), *(tree / name for name in work)})
    ]


def _link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(40 << 30)


def _bytes(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


def _socket(path: Path) -> None:
    # A path of a socket may be 107 bytes long.
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


_LOOSE = re.compile(r"/objects/[0-9a-f]{2}(?:/|$)")
# What stands at a place in place of what belongs there.
THINGS: Mapping[str, Callable[[Path], None]] = {
    "named pipe": os.mkfifo,
    "link to an endless file": _link_to("/dev/zero"),
    "link to a file of root's": _link_to("/etc/shadow"),
    "link to a folder": _link_to("/etc"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "socket": _socket,
    "huge file": _huge,
    "folder": Path.mkdir,
    "empty file": Path.touch,
    "bytes": _bytes,
}


@contextmanager
def planted(tree: Path, place: Path, make: Callable[[Path], None]) -> Iterator[None]:
    """One of `THINGS` at a place of the tree; what was there is back at the end."""
    path, aside = tree / place, tree.parent / "aside"
    path.parent.mkdir(parents=True, exist_ok=True)
    was_there = path.exists()
    if was_there:
        path.rename(aside)
    try:
        make(path)
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if was_there:
            aside.rename(path)


def contents(folder: Path) -> Mapping[str, tuple[int, bytes]]:
    """All plain files below a folder, to see that nothing of them changed."""
    return {
        str(path): (status.st_mode, path.read_bytes() if status.st_size < 1 << 20 else b"")
        for path in folder.rglob("*")
        if stat.S_ISREG((status := path.lstat()).st_mode)
    }
