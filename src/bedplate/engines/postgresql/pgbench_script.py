"""A script of pgbench as pgbench itself reads it, before anything runs: its statements, commands and variables.

It follows the scanners of PostgreSQL 15 to 18: `fe_utils/psqlscan.l` for SQL, where a backslash outside of quotes and comments begins
a command, and `pgbench/exprscan.l` for the rest of that command's line. Commands are taken from a list of those that start nothing.
What the versions read differently is refused. `tests/host/test_scripts_against_pgbench.py` holds this against pgbench itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain, islice, pairwise

from bedplate.near_names import did_you_mean

_EXPRESSION_WORD = re.compile(
    r"""(?P<blank>[ \t\r\f\v]+|\\\r?\n)
    |(?P<variable>:[A-Za-z0-9_\x80-\U0010ffff]+)
    |(?P<constant>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)
    |(?P<sign><>|!=|<=|>=|<<|>>|[-+*/%=<>|&\#~(),])""",
    re.VERBOSE,
)

# What stands for a constant or a variable among the words, and for the end.
_OPERAND, _END = "0", ""

_LONGEST_SHOWN = 40
_BEFORE_ONE = frozenset(("+", "-", "~", "not"))
_BETWEEN_TWO = frozenset((*"+-*/%=<>|&#", "<>", "!=", "<=", ">=", "<<", ">>", "and", "or"))
_BEHIND_ONE = frozenset(("isnull", "notnull"))
_LITERALS = frozenset(("null", "true", "false"))
_KEYWORDS = _LITERALS | _BEHIND_ONE | {"and", "or", "not", "case", "when", "then", "else", "end", "is"}

# Which parts of a CASE may stand before each other part.
_CASE_ORDER: Mapping[str, tuple[str, ...]] = {
    "then": ("when",),
    "when": ("then",),
    "else": ("then",),
    "end": ("then", "else"),
}

# The fewest and the most arguments of each function.
_FUNCTIONS: Mapping[str, tuple[int, float]] = {
    **dict.fromkeys(("abs", "debug", "double", "exp", "int", "ln", "sqrt"), (1, 1)),
    **dict.fromkeys(("mod", "pow", "power", "random"), (2, 2)),
    **dict.fromkeys(("random_exponential", "random_gaussian", "random_zipfian"), (3, 3)),
    **dict.fromkeys(("greatest", "least"), (1, float("inf"))),
    **dict.fromkeys(("hash", "hash_fnv1a", "hash_murmur2"), (1, 2)),
    "permute": (2, 3),
    "pi": (0, 0),
}


@dataclass(frozen=True)
class Expression:
    """`end` is behind its line's end; `variables` are names with their places."""

    end: int
    variables: tuple[tuple[str, int], ...]
    problem: str | None


@dataclass
class _Open:
    """A parenthesis, that of a function with the arguments so far, or a CASE in one of its parts."""

    function: str = ""
    arguments: int = 0
    case_part: str = ""


def read_expression(text: str, start: int) -> Expression:
    """From `start` to the end of the line, or of the last that a backslash joins to it."""
    at, variables, words = start, [], []
    problem = None
    while at < len(text) and text[at] != "\n":
        word = _EXPRESSION_WORD.match(text, at)
        if word is None:
            problem = f"its expression has {text[at]!r}, which pgbench does not take"
            break
        at = word.end()
        if word.lastgroup == "variable":
            variables.append((word[0][1:], word.start()))
        if word.lastgroup in ("constant", "variable"):
            words.append(_OPERAND)
        elif word.lastgroup != "blank":
            words.append(word[0].lower())
    line_end = text.find("\n", at)
    end = len(text) if line_end < 0 else line_end + 1
    return Expression(end, tuple(variables), problem or _problem((*words, _END, _END)))


def _problem(words: Sequence[str]) -> str | None:
    """What pgbench stops at; None where it takes the expression."""
    opened: list[_Open] = []
    at, wants_operand = 0, True
    while True:
        word, following = words[at], words[at + 1]
        top = opened[-1] if opened else _Open()
        at += 1
        if wants_operand and word in _BEFORE_ONE:
            continue
        if wants_operand and word == "(":
            opened.append(_Open())
        elif wants_operand and word == "case" and following == "when":
            opened.append(_Open(case_part="when"))
            at += 1
        elif wants_operand and _is_name(word):
            if word not in _FUNCTIONS:
                hint = did_you_mean(word, _FUNCTIONS, otherwise=f"there are {', '.join(_FUNCTIONS)}")
                return f"pgbench has no function {shown_word(word)}; {hint}"
            if following != "(":
                return f"the function {word} has no ( behind it"
            opened.append(_Open(word))
            at += 1
            if words[at] == ")":
                wants_operand = False
                opened[-1].arguments = -1
            elif words[at] == ",":
                # pgbench's grammar lets the first argument be nothing.
                at += 1
        elif wants_operand and (word == _OPERAND or word in _LITERALS):
            wants_operand = False
        elif wants_operand:
            return _unexpected(word)
        elif word in _BETWEEN_TWO:
            wants_operand = True
        elif word in _BEHIND_ONE:
            continue
        elif word == "is":
            at += following == "not"
            if words[at] not in _LITERALS:
                return "IS in its expression wants NULL, TRUE or FALSE"
            at += 1
        elif word == ")" and opened and not top.case_part:
            opened.pop()
            fewest, most = _FUNCTIONS.get(top.function, (1, 1))
            if not fewest <= top.arguments + 1 <= most:
                return f"{top.function} has {top.arguments + 1} arguments, and takes {_range(fewest, most)}"
        elif word == "," and top.function:
            top.arguments += 1
            wants_operand = True
        elif top.case_part in _CASE_ORDER.get(word, ()):
            top.case_part = word
            if word == "end":
                opened.pop()
            else:
                wants_operand = True
        elif word == _END and not opened:
            return None
        else:
            return _unexpected(word)


def _is_name(word: str) -> bool:
    return word not in _KEYWORDS and (word[:1].isalpha() or word[:1] == "_" or word[:1] >= "\x80")


def _unexpected(word: str) -> str:
    if word == _END:
        return "its expression ends too early"
    return f"its expression has {'a value' if word == _OPERAND else shown_word(word)} where pgbench expects something else"


def _range(fewest: int, most: float) -> str:
    if most == float("inf"):
        return f"{fewest} or more"
    return f"{fewest}" if fewest == most else f"{fewest} or {most:g}"


def shown_word(word: str) -> str:
    """A word of a script in a sentence: of bounded length, and printable."""
    shown = "".join(character if character.isprintable() else "?" for character in word[:_LONGEST_SHOWN])
    return shown + ("…" if len(word) > _LONGEST_SHOWN else "")


# What pgbench sets by itself.
BUILT_IN_VARIABLES = ("scale", "client_id", "random_seed", "default_seed")

PROTOCOLS = ("simple", "extended", "prepared")

# The first is pgbench's own default, the second a plan's.
SIMPLE, DEFAULT_PROTOCOL = PROTOCOLS[0], PROTOCOLS[2]

# Of what fails with parameters.
WAY_OUT = f'protocol = "{SIMPLE}", which is pgbench\'s own default, writes values into the text and takes it'

SYNC_PIPELINE, SYNC_PIPELINE_SINCE = "syncpipeline", 17

_WITH_EXPRESSION = ("set", "if", "elif")
_TO_VARIABLES = ("gset", "aset")
_PIPELINES = ("startpipeline", "endpipeline", SYNC_PIPELINE)
_WITHOUT_WORDS = ("else", "endif", *_PIPELINES)
_COMMANDS = (*_WITH_EXPRESSION, "sleep", *_TO_VARIABLES, *_WITHOUT_WORDS)
_SHELLS = ("shell", "setshell")
_UNITS = ("us", "ms", "s")

# The server takes parameters in statements that it plans. These are none, so that their text has to hold the value.
_WITHOUT_PARAMETERS = frozenset(
    [
        "alter",
        "analyze",
        "begin",
        "checkpoint",
        "close",
        "cluster",
        "comment",
        "commit",
        "copy",
        "deallocate",
        "discard",
        "do",
        "drop",
        "execute",
        "fetch",
        "grant",
        "listen",
        "load",
        "lock",
        "move",
        "notify",
        "prepare",
        "refresh",
        "reindex",
        "release",
        "reset",
        "revoke",
        "rollback",
        "savepoint",
        "set",
        "show",
        "start",
        "truncate",
        "unlisten",
        "vacuum",
    ]
)

# Behind these stands a name of a table or the like.
_BEFORE_A_NAME = frozenset(("into", "join", "only", "table", "update"))

# Longer than any name of the server's.
_LONGEST_NAME = 200

_MOST_PROBLEMS = 5
_LETTER = r"A-Za-z_\x80-\U0010ffff"
_NAME = rf"[{_LETTER}][{_LETTER}0-9]*"
_VARIABLE = re.compile(_NAME)

# One token of SQL. What stands first is what flex takes: the longest, and of two alike the first.
_SQL = re.compile(
    rf"""(?P<blank>[ \t\n\r\f]+)
    |(?P<line_comment>--[^\n\r]*)
    |(?P<comment>/\*)
    |(?P<escaping>[eE]')
    |(?P<string>(?:[bBxXnN]|[uU]&)?')
    |(?P<quoted>(?:[uU]&)?")
    |(?P<dollars>\$(?:{_NAME})?\$)
    |(?P<forced>\\[;:])
    |(?P<command>\\)
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]|(?:\.?[0-9]|\$[0-9])[{_LETTER}0-9.]*)
    |(?P<colon>::|:=|:[{_LETTER}0-9]+)
    |(?P<word>[{_LETTER}][{_LETTER}0-9$]*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)

# What a string holds; behind blanks and comments with a line's end among them a quote goes on with it.
_IN_STRING = re.compile(r"[^']*+'")

_IN_ESCAPING = re.compile(r"(?:[^\\']|\\.)*+'", re.DOTALL)
_GOES_ON = re.compile(r"'|(?:[ \t\f]|--[^\n\r]*+)*+[\n\r](?:[ \t\n\r\f]++|--[^\n\r]*+[\n\r])*+'")
_COMMENT_MARK = re.compile(r"/\*|\*/")

# As pgbench finds variables in a statement's text, whatever they are a part of; further colons are passed over with the first.
_REFERENCE = re.compile(rf":({_NAME})|:+")

# A word of a command, and what joins the next line to it.
_WORD = re.compile(
    r"(?P<joint>[ \t\r\f\v]+|\\\r?\n)|(?P<last>[^ \t\r\f\v\n]+)(?=\\\r?\n)\\|(?P<word>[^ \t\r\f\v\n]+)"
)

# Where the server reads text and no parameter.
_STRING, _QUOTED_NAME, _COMMENT = "in a string", "in a quoted name", "in a comment"

_LITERAL = frozenset((_STRING, _QUOTED_NAME, _COMMENT))
_PART_OF_A_NAME = "a part of the word or number before it"
_NAME_PLACE = "in the place of a name"


@dataclass(frozen=True, slots=True)
class Use:
    """A variable where it is used. `place` says why the server can take no parameter there, and is empty where it can.

    `is_set` says whether the script or pgbench itself has set it by then; a bound of an array (`a[1:n]`) may be no variable.
    """

    name: str
    line: int
    place: str
    is_set: bool
    is_bound: bool


@dataclass(frozen=True)
class ScriptStatement:
    r"""What goes to the server at once: texts without comments, of which there are several where `\;` joins them."""

    line: int
    texts: tuple[str, ...]
    uses: tuple[Use, ...]

    @property
    def first_word(self) -> str:
        """In small letters."""
        return first_word(self.texts[0]) if self.texts else ""


def first_word(text: str) -> str:
    """The first word of a statement's text, in small letters."""
    word = _VARIABLE.search(text)
    return "" if word is None else word[0].casefold()


@dataclass(frozen=True)
class PgbenchScript:
    """`problems` are what neither pgbench nor bedplate takes at all; `uses` are those of commands, and `commands` the first line of each."""

    statements: tuple[ScriptStatement, ...]
    uses: tuple[Use, ...]
    commands: Mapping[str, int]
    problems: tuple[str, ...]

    def problems_with(self, variables: Collection[str], protocol: str) -> tuple[str, ...]:
        """Those, and what fails with the variables that a plan sets, under a protocol, whatever a database holds."""
        return _first(chain(self.problems, self._undefined(variables, protocol), self._not_for(protocol)))

    def _undefined(self, variables: Collection[str], protocol: str) -> Iterator[str]:
        for use in chain(self.uses, *(statement.uses for statement in self.statements)):
            # Where pgbench writes values into the text, what is no variable stays as it is.
            is_text = use.place in _LITERAL or (use.is_bound and protocol == SIMPLE)
            if not (use.is_set or is_text or use.name in variables):
                yield (
                    f"line {use.line}: :{shown_word(use.name)} is not defined: no \\set, \\gset or \\aset before it in this script sets "
                    "it, and no variables = { … } of the plan"
                )

    def _not_for(self, protocol: str) -> Iterator[str]:
        if protocol == SIMPLE:
            for name in _PIPELINES:
                if name in self.commands:
                    yield f'line {self.commands[name]}: \\{name} needs protocol = "extended" or "prepared"'
            return
        by_default = ", bedplate's default" if protocol == DEFAULT_PROTOCOL else ""
        way_out = f'under protocol = "{protocol}"{by_default}; {WAY_OUT}'
        for statement in self.statements:
            if len(statement.texts) > 1:
                yield f"line {statement.line}: the server refuses statements that \\; joins {way_out}"
            word = statement.first_word
            of_word = f"in {word.upper()}, which has no parameters" if word in _WITHOUT_PARAMETERS else ""
            for use in statement.uses:
                if use.place or of_word:
                    yield (
                        f"line {use.line}: :{shown_word(use.name)} is {use.place or of_word}, where the server takes no parameter "
                        f"{way_out}"
                    )


@lru_cache(maxsize=16)
def read_script(text: str) -> PgbenchScript:
    """What a script has."""
    reader = _Reader(text)
    reader.read()
    return PgbenchScript(
        tuple(reader.statements), tuple(reader.uses), reader.commands, _first(reader.problems)
    )


def _first(problems: Iterable[str]) -> tuple[str, ...]:
    """Not more than are read."""
    several = tuple(dict.fromkeys(islice(problems, _MOST_PROBLEMS + 1)))
    return several if len(several) <= _MOST_PROBLEMS else (*several[:_MOST_PROBLEMS], "and more")


@dataclass(frozen=True, slots=True)
class _Part:
    """A token of a statement as pgbench keeps it: where it began in the script, and its place (see `Use`)."""

    text: str
    start: int
    place: str = ""


@dataclass
class _Context:
    """What stands before a part of a statement."""

    parentheses: int = 0
    brackets: int = 0
    words: tuple[str, ...] = ()
    is_glued: bool = False

    def pass_by(self, token: _Part) -> None:
        """Go behind it."""
        text = token.text
        if token.place == _COMMENT or not text.strip():
            self.is_glued = False
            return
        last = text[-1]
        self.is_glued = not token.place and (last.isalnum() or last in "_$" or last >= "\x80")
        self.words = (*self.words[-1:], "" if token.place else text.casefold())
        self.parentheses += (text == "(") - (text == ")")
        self.brackets += (text == "[") - (text == "]")

    @property
    def place(self) -> str:
        """Why no parameter can stand here; empty where one can."""
        if self.is_glued:
            return _PART_OF_A_NAME
        last = self.words[-1] if self.words else ""
        # `extract(… FROM x)` and `IS DISTINCT FROM x` have values.
        is_source = last == "from" and self.parentheses <= 0 and self.words[0] != "distinct"
        return _NAME_PLACE if last in _BEFORE_A_NAME or is_source else ""


@dataclass
class _Begun:
    r"""A statement that is being read: its parts, those at which `\;` joins another, and the words at its begin."""

    parts: list[_Part] = field(default_factory=list)
    joints: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


class _Reader:
    """One pass over a script."""

    def __init__(self, text: str) -> None:
        self.statements: list[ScriptStatement] = []
        self.uses: list[Use] = []
        self.commands: dict[str, int] = {}
        self.problems: list[str] = []
        self._text = text
        self._at = 0
        self._line_ends = [match.start() for match in re.finditer("\n", text)]
        self._variables = set(BUILT_IN_VARIABLES)
        # Names that begin so may be columns of an answer.
        self._prefixes: set[str] = set()
        # Where each \if stands that is open, and whether its \else was there.
        self._conditions: list[tuple[int, bool]] = []
        self._parentheses = self._bodies = 0
        self._begun = _Begun()
        # What \gset may stand behind.
        self._is_behind_statement = False

    def read(self) -> None:
        """To its end."""
        if self._text.startswith("\ufeff"):
            self._refuse(
                0, "begins with a byte order mark, which is a part of its first word; save it without"
            )
        for mark, what in (("\0", "a NUL character, where pgbench stops reading"), ("\v", "a vertical tab")):
            # PostgreSQL 15 takes a vertical tab for no blank, later versions do: a string may end here or there.
            if mark in self._text:
                self._refuse(self._text.index(mark), f"has {what}; take it out")
                return
        while self._at < len(self._text) and len(self.problems) <= _MOST_PROBLEMS:
            self._read_token()
        self._end_statement()
        for start, _ in self._conditions:
            self._refuse(start, "\\if has no \\endif")
        if not (self.statements or self.commands or self.problems):
            self.problems.append("the script is empty, or has comments only")

    def _refuse(self, position: int, sentence: str) -> None:
        self.problems.append(f"line {self._line(position)}: {sentence}")

    def _line(self, position: int) -> int:
        return 1 + bisect_right(self._line_ends, position - 1)

    def _read_token(self) -> None:
        token = _SQL.match(self._text, self._at)
        assert token is not None  # noqa: S101 -- the last alternative takes any character
        kind, text, start = token.lastgroup or "", token[0], self._at
        self._at = token.end()
        if kind in ("comment", "escaping", "string", "quoted", "dollars"):
            self._at = self._end_of_literal(kind, token)
            place = _COMMENT if kind == "comment" else _QUOTED_NAME if kind == "quoted" else _STRING
            self._begun.parts.append(_Part(self._text[start : self._at], start, place))
        elif kind in ("blank", "line_comment"):
            # Before a statement they are no part of it.
            if self._begun.parts:
                self._begun.parts.append(_Part(text, start, _COMMENT if kind == "line_comment" else ""))
        elif kind == "command":
            self._end_statement()
            self._read_command(start)
        else:
            self._read_code(kind, text, start)

    def _end_of_literal(self, kind: str, begin: re.Match[str]) -> int:
        text, at = self._text, begin.end()
        end: int | None
        if kind == "comment":
            end = _end_of_comment(text, at)
        elif kind in ("escaping", "string"):
            end = _end_of_string(text, at, _IN_ESCAPING if kind == "escaping" else _IN_STRING)
        else:
            mark = '"' if kind == "quoted" else begin[0]
            found = text.find(mark, at)
            end = None if found < 0 else found + len(mark)
        if end is None:
            self._refuse(begin.start(), f"what {shown_word(begin[0])} begins does not end")
            return len(text)
        return end

    def _read_code(self, kind: str, text: str, start: int) -> None:
        is_outside = not self._parentheses and not self._bodies
        if kind == "forced":
            text = text[1]
            if text == ";" and is_outside:
                self._begun.joints.append(len(self._begun.parts))
                self._begun.words.clear()
        self._begun.parts.append(_Part(text, start))
        if kind == "word":
            self._follow_body(text.casefold())
        elif kind == "number" and self._text.startswith(("'", "$", "--"), self._at):
            # PostgreSQL 15 ends a number with letters elsewhere than later versions do: E'…', $$ or a comment may begin there.
            if text[-1] not in "+-" and not text.strip("$.").replace(".", "").isdigit():
                self._refuse(
                    start,
                    f"has {shown_word(text)} directly before a quote or a comment; put a blank between them",
                )
                # What follows could be read as either.
                self._at = len(self._text)
        elif text == "(":
            self._parentheses += 1
        elif text == ")":
            self._parentheses = max(0, self._parentheses - 1)
        elif text == ";" and kind == "other" and is_outside:
            self._end_statement()

    def _follow_body(self, word: str) -> None:
        """`CREATE [OR REPLACE] FUNCTION … BEGIN ATOMIC …; … END`: semicolons of the body end no statement."""
        if self._parentheses:
            return
        words = self._begun.words
        if len(words) < len(("create", "or", "replace", "function")):
            words.append(word)
        kind = words[3:] if words[1:3] == ["or", "replace"] else words[1:2]
        if words[0] != "create" or kind not in (["function"], ["procedure"]):
            return
        if word == "begin" or (word == "case" and self._bodies):
            self._bodies += 1
        elif word == "end" and self._bodies:
            self._bodies -= 1

    def _end_statement(self) -> None:
        begun, self._begun = self._begun, _Begun()
        parts = begun.parts
        if not any(part.text.strip() for part in parts):
            return
        first = next((part for part in parts if part.text.strip() and part.place != _COMMENT), parts[0])
        self.statements.append(
            ScriptStatement(self._line(first.start), tuple(_texts(begun)), tuple(self._uses_in(parts)))
        )
        self._is_behind_statement = True

    def _uses_in(self, parts: list[_Part]) -> Iterator[Use]:
        starts = list(accumulate((len(part.text) for part in parts), initial=0))
        context, number = _Context(), 0
        for match in _REFERENCE.finditer("".join(part.text for part in parts)):
            while starts[number + 1] <= match.start():
                context.pass_by(parts[number])
                number += 1
            if match[1] is not None:
                part = parts[number]
                position = part.start + match.start() - starts[number]
                yield self._use(
                    match[1], position, part.place or context.place, is_bound=context.brackets > 0
                )

    def _use(self, name: str, position: int, context: str = "", *, is_bound: bool = False) -> Use:
        short = name[:_LONGEST_NAME]
        is_set = name in self._variables or (
            bool(self._prefixes) and any(short[:length] in self._prefixes for length in range(len(short) + 1))
        )
        return Use(name, self._line(position), context, is_set, is_bound)

    def _read_command(self, start: int) -> None:
        word = self._word()
        if word is None:
            return
        name = word[0].lower()
        form = f"\\{' ' * (word[1] > start + 1)}{shown_word(word[0])}"
        if name in _COMMANDS:
            self.commands.setdefault(name, self._line(start))
        if name in _WITH_EXPRESSION:
            self._read_with_expression(name, form, start)
        else:
            self._read_with_words(name, form, start)
        if name not in _TO_VARIABLES:
            self._is_behind_statement = False

    def _read_with_expression(self, name: str, form: str, start: int) -> None:
        target = self._word() if name == "set" else None
        if name == "set" and target is None:
            self._refuse(start, f"{form} wants a name and an expression")
            return
        expression = read_expression(self._text, self._at)
        self._at = expression.end
        self.uses += (self._use(variable, position) for variable, position in expression.variables)
        if expression.problem is not None:
            self._refuse(start, f"{form}: {expression.problem}")
        if target is not None:
            if not _VARIABLE.fullmatch(target[0]):
                self._refuse(
                    start,
                    f"{form} {shown_word(target[0])}: a name is letters, digits and _, a letter or _ first",
                )
            self._variables.add(target[0])
        else:
            self._follow_condition(name, form, start)

    def _read_with_words(self, name: str, form: str, start: int) -> None:
        words = []
        while (word := self._word()) is not None:
            words.append(word)
        if name in _SHELLS:
            self._refuse(start, f"{form} starts a program, and bedplate starts no shell for a script")
        elif name not in _COMMANDS:
            hint = did_you_mean(name, _COMMANDS, otherwise=f"there are {', '.join(_COMMANDS)}")
            self._refuse(start, f"pgbench has no {form}; {hint}")
        elif name == "sleep":
            self._read_sleep(form, start, words)
        elif name in _TO_VARIABLES:
            if not self._is_behind_statement or len(words) > 1:
                self._refuse(start, f"{form} comes behind one statement, with a prefix or nothing behind it")
            self._is_behind_statement = False
            self._prefixes.add(words[0][0][:_LONGEST_NAME] if words else "")
        elif words:
            self._refuse(start, f"{form} has nothing behind it, and this one has {shown_word(words[0][0])}")
        else:
            self._follow_condition(name, form, start)

    def _read_sleep(self, form: str, start: int, words: list[tuple[str, int]]) -> None:
        time, *unit = (word for word, _ in words) if words else ("",)
        if time.startswith(":"):
            self.uses.append(self._use(time[1:], words[0][1]))
        elif (number := re.fullmatch(r"([+-]?[0-9]*)(.*)", time, re.DOTALL)) is not None and number[2]:
            unit = [number[2], *unit] if number[1].strip("+-") else ["", *unit]
        if not time or len(unit) > 1 or any(each.lower() not in _UNITS for each in unit):
            self._refuse(start, f"{form} wants a whole number or a variable, and one of {', '.join(_UNITS)}")

    def _follow_condition(self, name: str, form: str, start: int) -> None:
        if name == "if":
            self._conditions.append((start, False))
        elif name in ("elif", "else", "endif"):
            if not self._conditions:
                self._refuse(start, f"{form} has no \\if before it")
            elif name == "endif":
                self._conditions.pop()
            elif self._conditions[-1][1]:
                self._refuse(start, f"{form} comes behind the \\else of its \\if")
            elif name == "else":
                self._conditions[-1] = (start, True)

    def _word(self) -> tuple[str, int] | None:
        """The next word of a command and its place; None behind the last, at the begin of the next line."""
        while self._at < len(self._text):
            match = _WORD.match(self._text, self._at)
            if match is None:
                self._at += 1
                return None
            start, self._at = self._at, match.end()
            if match["last"] is not None:
                # The joint is left, and read as one: its backslash is no part of the word.
                self._at -= 1
                return match["last"], start
            if match["word"] is not None:
                return match["word"], start
        return None


def _end_of_comment(text: str, position: int) -> int | None:
    depth = 1
    while depth:
        mark = _COMMENT_MARK.search(text, position)
        if mark is None:
            return None
        depth += 1 if mark[0] == "/*" else -1
        position = mark.end()
    return position


def _end_of_string(text: str, position: int, inside: re.Pattern[str]) -> int | None:
    while True:
        end = inside.match(text, position)
        if end is None:
            return None
        further = _GOES_ON.match(text, end.end())
        if further is None:
            return end.end()
        position = further.end()


def _texts(statement: _Begun) -> Iterator[str]:
    """Without comments, and without those that are empty."""
    bounds = [0, *statement.joints, len(statement.parts)]
    for start, end in pairwise(bounds):
        parts = statement.parts[start:end]
        text = "".join(" " if part.place == _COMMENT else part.text for part in parts).strip("; \t\n\r\f")
        if text:
            yield text
