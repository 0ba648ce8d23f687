"""What a user reads is short and in the field's words: documents, comments of plans, help, the page, messages."""

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

# Between 10 and 25 words is usual, and a longer sentence is fine where it reads in one go; beyond this none does.
_WORDS_MAX = 45
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
# Not ours, or no prose.
_LEFT_OUT = {
    "src/bedplate/workloads/tpch/queries.py": "TPC-H's own text",
    "src/bedplate/cli/cut_script.py": "programs of shell",
}
_DOCUMENTS = ("README.md", "CONTRIBUTING.md")
_NEWEST = re.compile(r"\A.*?^## .*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def long_sentences(path: str, sentences: Iterable[Sentence]) -> list[str]:
    """Those of more words than may be, with how many they have."""
    return [
        f"{path}:{each.line} has {each.words} words, {_WORDS_MAX} may be: {each.text[:100]!r}…; one thought a sentence"
        for each in sentences
        if each.words > _WORDS_MAX
    ]


def words_that_are_out(path: str, sentences: Iterable[Sentence]) -> list[str]:
    """Every use of a word that is out, with the one to take."""
    return [
        f"{path}:{each.line} {found[0]!r} in {each.text[max(0, found.start() - 40) : found.end() + 30]!r}; write: {instead}"
        for each in sentences
        for pattern, instead in _OUT.items()
        for found in pattern.finditer(each.text)
    ]


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


def test_no_sentence_that_a_user_reads_is_too_long(sources: Sequence[_Source], judge: _Judge) -> None:
    read = list(_read(sources))
    assert {
        "README.md",
        "docs/METHOD.md",
        "plans/quick.toml",
        "claims/vondra-2011.toml",
        "examples/engines/toy/checker",
        "src/bedplate/errors.py",
    } <= dict(read).keys()
    found = [finding for path, sentences in read for finding in long_sentences(path, sentences)]
    judge(found + [f for name, text in _helps() for f in long_sentences(f"{name} --help", of_help(text))])


def test_no_word_that_is_out_is_in_what_a_user_reads(sources: Sequence[_Source], judge: _Judge) -> None:
    found = [f for path, sentences in _read(sources) for f in words_that_are_out(path, sentences)]
    judge(found + [f for name, text in _helps() for f in words_that_are_out(f"{name} --help", of_help(text))])


_LONG = " ".join(["word"] * (_WORDS_MAX + 1))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (of_markdown, f"# A\n\nShort. {_LONG}. Short.\n"),
        (of_markdown, f"| a | b |\n| --- | --- |\n| short | {_LONG} |\n"),
        (of_markdown, f"- [{_LONG}](a.md)\n"),
        (of_comments, "# " + _LONG.replace(" word" * 5, "\n# word word word word word", 1) + "\nkey = 1\n"),
        (of_python, f'raise StudyError(f"{{a}}: {_LONG}")\n'),
        (of_script, f'const a = "{_LONG}";\n'),
        (of_template, f"<p>{{{{ a }}}} <em>{_LONG}</em></p>\n"),
        (of_template, f'<p>{{{{ listed("Short", "short", a.b, "{_LONG}") }}}}</p>\n'),
        (of_help, f"Short.\n\n{_LONG}"),
    ],
)
def test_a_planted_long_sentence_is_found(read: Callable[[str], Iterable[Sentence]], text: str) -> None:
    assert 1 == len(long_sentences("a", read(text)))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (of_markdown, f"{_LONG[:100]}. {_LONG[:100]}.\n"),
        (of_markdown, f"```\n{_LONG}\n```\n"),
        (of_markdown, f"Run `{_LONG}` once.\n"),
        (of_markdown, f"| {_LONG[:60]} | {_LONG[:60]} | {_LONG[:60]} |\n| --- | --- | --- |\n"),
        (of_comments, f"# {_LONG[:100]}\n#\n# {_LONG[:100]}\n"),
        (of_comments, f'key = "{_LONG}"\n'),
        (of_python, f'def a() -> None:\n    """{_LONG}"""\n'),
        (of_python, f'A = "SELECT {_LONG}"\nB = """\n{_LONG}\n{_LONG}\n"""\n'),
        (of_script, f"// {_LONG}\n"),
        (of_template, f"<p>{_LONG[:100]}</p><p>{_LONG[:100]}</p>\n"),
    ],
)
def test_what_is_short_or_no_prose_passes(read: Callable[[str], Iterable[Sentence]], text: str) -> None:
    assert [] == long_sentences("a", read(text))


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
    ],
)
def test_a_word_of_the_field_passes(text: str) -> None:
    assert [] == words_that_are_out("a.md", of_markdown(text))


def test_of_the_changes_the_newest_release_is_read() -> None:
    text = "# Changes\n\n## 2\n\n- new\n\n### Fixed\n\n- b\n\n## 1\n\n- old\n"
    assert "# Changes\n\n## 2\n\n- new\n\n### Fixed\n\n- b\n\n" == newest_section(text)
