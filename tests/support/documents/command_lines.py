"""Every command line of the documents: what a reader copies, wherever it stands.

A block of shell is commands alone, line by line. Elsewhere (in other blocks, within a sentence, in the comments of a plan) those are
taken that begin with a program of ours. The examples of the help are command lines too; the generated parts of the pages repeat them
and are left out, as are the decisions, which say what was so at their time.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.cli.app import program
from bedplate.cli.documents import parts, renewed
from bedplate.cli.options import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = ("bedplate", "benchmarks/run", "check", "package", "torture")
_COMMANDS = "|".join(program.commands)
_OURS = re.compile(
    r"(?:sudo )?(?:[~./\w-]*/)?"
    rf"(?:bedplate (?:{_COMMANDS}|COMMAND)\b|benchmarks/run \w|(?<=\./)(?:check|package|torture)\b)"
)
# In the middle of other text: the runner's line of a forge, or what a shell is to evaluate.
_WITHIN = re.compile(rf"(?<![\w/.-])bedplate (?:{_COMMANDS})\b[^`)']*")
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
# What a shell does with a command before or behind another, and its comments.
_PARTED = re.compile(r";\s+| && | \|\| | \| | > \S+|\s+#.*$")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


@dataclass(frozen=True)
class CommandLine:
    """One command as it is written, without `sudo`, comment, and what comes before or behind it in its line.

    A `mention` stands in a sentence and may lack what the command needs.
    """

    text: str
    place: str
    mention: bool = False

    @property
    def call(self) -> str:
        """The program without its folder, and its words: what two places write in two ways is one call."""
        first, _, rest = self.text.partition(" ")
        name = next((name for name in PROGRAMS if first == name or first.endswith(f"/{name}")), first)
        return " ".join((name, *rest.split()))


def command_lines(repository: Path) -> list[CommandLine]:
    """Those of the documents, of the plans' comments and of the help."""
    pages = [repository / "README.md", repository / "CONTRIBUTING.md"]
    pages += [page for page in sorted((repository / "docs").rglob("*.md")) if page.parent.name != "decisions"]
    made = dict.fromkeys(parts(), "")
    lines = [
        line for page in pages for line in lines_of_page(renewed(page.read_text("utf-8"), made), page.name)
    ]
    for plan in sorted((repository / "plans").glob("*.toml")):
        lines += lines_of_plan(plan.read_text("utf-8"), plan.name)
    for words, examples in EXAMPLES.items():
        lines += [CommandLine(text, f"{words} --help") for line in examples for text in _parted(line)]
    return lines


def lines_of_page(text: str, place: str) -> list[CommandLine]:
    """Those of a page in Markdown: of its blocks, fenced or set in, and of its sentences."""
    lines = []
    for language, block in _BLOCK.findall(text):
        for line in textwrap.dedent(block.replace("\\\n", " ")).splitlines():
            if language == "sh":
                lines += _parted(line)
            elif _OURS.match(line):
                lines += _parted(line)[:1]
            elif language:
                lines += _WITHIN.findall(line)
    outside = _BLOCK.sub("", text).replace("\\\n", " ")
    for line in re.findall(r"^ {4,}(\S.*)$", outside, re.MULTILINE):
        lines += _parted(line)[:1] if _OURS.match(line) else []
    return [CommandLine(line, place) for line in lines] + _mentions(outside, place)


def lines_of_plan(text: str, place: str) -> list[CommandLine]:
    """Those of a plan's comments: alone in a line that is set in, with words behind them, or within a sentence."""
    comments = [line[1:] for line in text.splitlines() if line.startswith("#")]
    alone = [re.split(r"\s{2,}", line.strip())[0] for line in comments if line.startswith("   ")]
    lines = [CommandLine(line.removeprefix("sudo "), place) for line in alone if _OURS.match(line)]
    return lines + _mentions("\n".join(line.strip() for line in comments), place)


def _parted(line: str) -> list[str]:
    # What stands in quotes is not parted.
    whole = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", "\0"), line.strip())
    pieces = (piece.strip().removeprefix("sudo ").replace("\0", " ") for piece in _PARTED.split(whole))
    return [piece for piece in pieces if piece and not piece.startswith("#")]


def _mentions(text: str, place: str) -> list[CommandLine]:
    """Code within sentences; `power-cut blame STUDY`, or a command with an option, goes without the program's name."""
    found = []
    for span in _SPAN.findall(text):
        words = " ".join(span.split()).removeprefix("sudo ")
        if re.match(rf"power-cut \w|(?:{_COMMANDS}) .*--[a-z]", words):
            words = f"bedplate {words}"
        if _OURS.match(words):
            found.append(words)
        else:
            found += _WITHIN.findall(words)
    return [CommandLine(words, place, mention=True) for words in found]
