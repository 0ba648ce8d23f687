"""What a user reads is in the field's words: documents, comments of plans, help, the page, messages.

There is no limit of words a sentence. There was one, and it made telegrams: short declaratives that nothing connected.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

import click
import pytest
from tests.support.tools.prose import (
    of_comments,
    of_help,
    of_markdown,
    of_python,
    of_script,
    of_template,
)

from bedplate.cli.app import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.support.tools.prose import Sentence

# Words that are out, and what to write instead. "In force" is a law's; an option is effective.
_OUT = {
    re.compile(r"\blived\b|\blives\b(?! (?:in|on)\b)", re.IGNORECASE): "a visit runs",
    re.compile(r"\btold\b(?! apart)", re.IGNORECASE): "say, report, show; what cannot be told is not known",
    re.compile(r"\bin force\b", re.IGNORECASE): "effective",
    re.compile(
        r"\b(?:stands?|stood)\b(?!-| still)", re.IGNORECASE
    ): "is, comes, lies; what it stands for it represents",
    re.compile(r"\bthere (?:is|are) not\b", re.IGNORECASE): "is missing, does not exist",
    re.compile(r"\b(?:has|have) not(?=[.,;:)]|$)", re.IGNORECASE): "lacks",
    re.compile(r"\bof before\b", re.IGNORECASE): "earlier",
    re.compile(
        r"\b(?:is|are|was|were) asked\b(?! (?:for|about|of)\b)", re.IGNORECASE
    ): "requested; read, tried",
    # What is not in the repository can be read by nobody.
    re.compile(r"\bDESIGN\.md\b|\bissue \d"): "say here what it says",
}
# Out of what is written by hand to be read at length, or said there by the help's and the records' docstrings. In messages some are left.
_OUT_OF_PAGES = {
    re.compile(r"\banew\b", re.IGNORECASE): "again",
    re.compile(r"\bby lot\b", re.IGNORECASE): "at random",
    re.compile(r"\breckon", re.IGNORECASE): "estimate",
    re.compile(r"(?<!full )\bpage images\b", re.IGNORECASE): "full-page writes",
    re.compile(r"\bthe way there\b", re.IGNORECASE): "the path",
    re.compile(r"(?<!\bit )(?<!\bthem )\balone(?=[.,;:)]|$)"): "only, before what it limits",
    re.compile(r"\b[Aa]n? [\w-]+ of (?:its|their) own\b"): "its own …",
    re.compile(r"\bmay (?:not )?be believed\b"): "can be trusted",
}
# Not ours, or no prose.
_LEFT_OUT = {
    "src/bedplate/workloads/tpch/queries.py": "TPC-H's own text",
    "src/bedplate/workloads/power_cut/bundle.py": "programs of shell",
}
_DOCUMENTS = ("README.md", "CONTRIBUTING.md")
_NEWEST = re.compile(r"\A.*?^## .*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def words_that_are_out(path: str, sentences: Iterable[Sentence]) -> list[str]:
    """Every use of a word that is out, with the one to take."""
    return [
        f"{path}:{each.line} {found[0]!r} in {each.text[max(0, found.start() - 40) : found.end() + 30]!r}; write: {instead}"
        for each in sentences
        for pattern, instead in {**_OUT, **(_OUT_OF_PAGES if _is_page(path) else {})}.items()
        for found in pattern.finditer(each.text)
    ]


def _is_page(path: str) -> bool:
    """Whether a file is a document; decisions are as they were taken, and what is meant for a list speaks its words."""
    return path.endswith(".md") and not path.startswith(("docs/decisions/", "docs/upstream/"))


def _reader(path: str) -> Callable[[str], Iterable[Sentence]] | None:
    """How the sentences of a file are found; None where no user reads it."""
    if any(path.startswith(left_out) for left_out in _LEFT_OUT):
        return None
    kind = PurePosixPath(path).suffix
    if kind == ".md" and (path in _DOCUMENTS or path.startswith("docs/")):
        return of_markdown
    if path == "CHANGELOG.md":
        return lambda text: of_markdown(newest_section(text))
    if kind in {".toml", ".sql", ".sh"} and path.startswith(("plans/", "claims/", "examples/")):
        return of_comments
    if path.startswith("examples/"):
        return of_python if kind in {".py", ""} else None
    if path.startswith("src/bedplate/"):
        return {".py": of_python, ".js": of_script, ".j2": of_template}.get(kind)
    return None


def newest_section(text: str) -> str:
    """Up to the second heading of a release."""
    found = _NEWEST.match(text)
    return found[0] if found else text


def _read(sources: Sequence[_Source]) -> Iterator[tuple[str, tuple[Sentence, ...]]]:
    for source in sources:
        if reader := _reader(source.path):
            yield source.path, tuple(reader(source.text))


def _helps() -> Iterator[tuple[str, str]]:
    """Every text of a command's help, with the command."""
    waiting: list[tuple[str, click.Command]] = [("bedplate", program)]
    while waiting:
        name, command = waiting.pop()
        yield name, command.help or ""
        for option in command.params:
            yield f"{name} {option.name}", getattr(option, "help", None) or ""
        if isinstance(command, click.Group):
            waiting += [(f"{name} {inner}", found) for inner, found in command.commands.items()]


def test_no_word_that_is_out_is_in_what_a_user_reads(sources: Sequence[_Source], judge: _Judge) -> None:
    read = list(_read(sources))
    assert {
        "README.md",
        "docs/METHOD.md",
        "plans/quick.toml",
        "claims/vondra-2011.toml",
        "examples/engines/toy/checker",
        "src/bedplate/errors.py",
    } <= dict(read).keys()
    found = [f for path, sentences in read for f in words_that_are_out(path, sentences)]
    judge(found + [f for name, text in _helps() for f in words_that_are_out(f"{name} --help", of_help(text))])


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (of_markdown, "# A\n\nShort. It is in force. Short.\n"),
        (of_markdown, "| a | b |\n| --- | --- |\n| short | it is in force |\n"),
        (of_markdown, "- [it is in force](a.md)\n"),
        (of_markdown, "A.[^1]\n\n[^1]: It is in force.\n"),
        (of_comments, "# It is in\n# force.\nkey = 1\n"),
        (of_python, 'raise StudyError(f"{a}: it is in force")\n'),
        (of_script, 'const a = "it is in force";\n'),
        (of_template, "<p>{{ a }} <em>it is in force</em></p>\n"),
        (of_template, '<p>{{ listed("Short", "short", a.b, "it is in force") }}</p>\n'),
        (of_help, "Short.\n\nIt is in force."),
    ],
)
def test_a_planted_word_is_found_wherever_a_user_reads(
    read: Callable[[str], Iterable[Sentence]], text: str
) -> None:
    assert 1 == len(words_that_are_out("a", read(text)))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (of_markdown, "```\nin force\n```\n"),
        (of_markdown, "Run `it in force` once.\n"),
        (of_comments, "# It is in\n#\n# force.\n"),
        (of_comments, 'key = "in force"\n'),
        (of_python, 'def a() -> None:\n    """In force."""\n'),
        (of_python, 'A = "SELECT in force"\nB = """\nin force\nin force\n"""\n'),
        (of_script, "// in force\n"),
        (of_template, "<p>It is in</p><p>force</p>\n"),
    ],
)
def test_what_is_no_prose_passes(read: Callable[[str], Iterable[Sentence]], text: str) -> None:
    assert [] == words_that_are_out("a", read(text))


@pytest.mark.parametrize(
    "text",
    [
        "The visits are lived in guests.",
        "It cannot be told.",
        "The same in force as ext4.",
        "The reason stands below.",
        "An option that there is not.",
        "A device that the cell has not.",
        "Null in records of before.",
        "What was asked is read back.",
        "As DESIGN.md says.",
        "It is mounted anew.",
        "The order is drawn by lot.",
        "As the plan reckons it.",
        "Without page images a torn page stays.",
        "It is the way there.",
        "It is for root alone.",
        "It has a device of its own.",
        "A run that may not be believed.",
    ],
)
def test_a_planted_word_that_is_out_is_found(text: str) -> None:
    assert 1 == len(words_that_are_out("a.md", of_markdown(text)))


@pytest.mark.parametrize(
    "text",
    [
        "They are told apart by the `told` column.",
        "A standard stand-in.",
        "The oracle asks, and what is asked for is there.",
        "It has not run.",
        "PostgreSQL counts full page images.",
        "It leaves it alone.",
    ],
)
def test_a_word_of_the_field_passes(text: str) -> None:
    assert [] == words_that_are_out("a.md", of_markdown(text))


def test_of_the_changes_the_newest_release_is_read() -> None:
    text = "# Changes\n\n## 2\n\n- new\n\n### Fixed\n\n- b\n\n## 1\n\n- old\n"
    assert "# Changes\n\n## 2\n\n- new\n\n### Fixed\n\n- b\n\n" == newest_section(text)
