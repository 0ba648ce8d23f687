"""Scripts as pgbench reads them: what is a command and what is text, which variables are set, and what a protocol takes.

`tests/host/test_scripts_against_pgbench.py` holds the same reader against pgbench itself.
"""

from __future__ import annotations

import itertools

import pytest

from bedplate.engines.postgresql.pgbench_script import PROTOCOLS, read_script

_WORDS = ("shell", "SHELL", "setshell x", "SetShell x")
# Places where pgbench sees a backslash: each with the line that it stands in.
_COMMAND_PLACES = {
    "\\{}": 1,
    "  \\{}": 1,
    "\\ {}": 1,
    "\\\t \r{}": 1,
    "\\ \\\n{}": 1,
    "\\\\\r\n {}": 1,
    "SELECT 1;\n\\{}": 2,
    "SELECT 1 \\{}": 1,
    "SELECT 1; \\{}": 1,
    "SELECT (1 \\{}": 1,
    "/* a /* b */ c */ \\{}": 1,
    "/**/\\{}": 1,
    "-- comment\r\\{}": 1,
    "SELECT 'a''b'\\{}": 1,
    "SELECT 'a\\'\\{}": 1,
    "SELECT E'\\\\'\\{}": 1,
    "SELECT E'a\\'b'\\{}": 1,
    "SELECT :e'\\'\\{}": 1,
    "SELECT 1e--'\n'\\{}": 2,
    "SELECT ae'\\'\\{}": 1,
    'SELECT "a\'"\\{}': 1,
    "SELECT $$'$$\\{}": 1,
    "SELECT $a$ $$ $b$a$\\{}": 1,
    "SELECT $1\\{}": 1,
    "SELECT a$$\\{}": 1,
    "SELECT 'a' -- b\n'\\'\\{}": 2,
    "\\set x 1\n\\{}": 2,
    "\\set x 1 \\\n + 2\n\\{}": 3,
    "\\if true\n\\{}": 2,
    "CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; \\{}": 1,
}
_TEXT_PLACES = (
    "SELECT '\\{}';",
    "SELECT 'a''\\{}';",
    "SELECT E'\\'\\{}';",
    "SELECT E'a' -- b\n '\\'\\{}';",
    "SELECT U&'\\{}';",
    'SELECT "\\{}";',
    'SELECT "a""\\{}";',
    "SELECT $$\\{}$$;",
    "SELECT $a$ $b$ \\{} $a$;",
    "SELECT 1; -- \\{}",
    "SELECT /* /* */ \\{} */ 1;",
    "SELECT ::e'\\'\\{}';",
    "SELECT :=E'\\'\\{}';",
)


@pytest.mark.parametrize("word", _WORDS)
@pytest.mark.parametrize("place", _COMMAND_PLACES)
def test_what_starts_a_program_is_refused_wherever_pgbench_takes_it(place: str, word: str) -> None:
    problems = read_script(place.format(f"{word} id > /tmp/x")).problems
    form = word.removesuffix(" x")
    (reason,) = (each for each in problems if "starts a program" in each)
    assert reason.startswith(f"line {_COMMAND_PLACES[place]}: \\")
    assert form in reason


@pytest.mark.parametrize("word", _WORDS)
@pytest.mark.parametrize("place", _TEXT_PLACES)
def test_what_is_text_to_pgbench_is_text(place: str, word: str) -> None:
    assert read_script(place.format(word)).problems == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\\sett x 1\n", "line 1: pgbench has no \\sett; did you mean set"),
        ("SELECT 1;\n\\copy t from 'f'\n", "line 2: pgbench has no \\copy; there are set"),
        ("\\! id", "pgbench has no \\!"),
        ("\\set\n", "\\set wants a name and an expression"),
        ("\\set 1a 2\n", "\\set 1a: a name is letters"),
        ("\\set x\n", "its expression ends too early"),
        ("\\set x 1 1\n", "has a value where pgbench expects something else"),
        ("\\set x (1\n", "ends too early"),
        ("\\set x 1)\n", "has ) where"),
        ("\\set x 1 ; 2\n", "has ';'"),
        ("\\set x randon(1, 2)\n", "no function randon; did you mean random"),
        ("\\set x random\n", "the function random has no ("),
        ("\\set x random(1)\n", "random has 1 arguments, and takes 2"),
        ("\\set x pi(1)\n", "pi has 1 arguments, and takes 0"),
        ("\\set x least()\n", "least has 0 arguments, and takes 1 or more"),
        ("\\set x permute(1)\n", "takes 2 or 3"),
        ("\\set x case when 1 then 2\n", "ends too early"),
        ("\\set x case 1 end\n", "has case where"),
        ("\\set x 1 is 2\n", "IS in its expression wants NULL"),
        ("\\if 1\nSELECT 1;", "line 1: \\if has no \\endif"),
        ("\\endif\n", "\\endif has no \\if before it"),
        ("\\if 1\n\\else\n\\elif 2\n\\endif\n", "line 3: \\elif comes behind the \\else"),
        ("\\if 1\n\\else no\n\\endif\n", "\\else has nothing behind it"),
        ("\\sleep\n", "\\sleep wants"),
        ("\\sleep 5 min\n", "\\sleep wants"),
        ("\\sleep ms\n", "\\sleep wants"),
        ("\\gset\n", "\\gset comes behind one statement"),
        ("SELECT 1 \\gset\n\\gset\n", "line 2: \\gset comes behind"),
        ("SELECT 1 \\gset a b\n", "\\gset comes behind"),
        ("SELECT 'a;\nSELECT 1;", "line 1: what ' begins does not end"),
        ("SELECT 1 /* /* */;", "what /* begins does not end"),
        ("SELECT $a$ $b$;", "what $a$ begins does not end"),
        ("SELECT 1ae'\\'", "directly before a quote"),
        ("SELECT 1_0e--'\n", "directly before a quote or a comment"),
        ("SELECT E'a'\v\n'\\' \\shell '", "a vertical tab"),
        ("SELECT 1;\n\0", "line 2: has a NUL character"),
        ("\ufeffSELECT 1;", "begins with a byte order mark"),
        ("-- nothing\n", "comments only"),
        (" \n", "the script is empty"),
    ],
)
def test_what_pgbench_does_not_take_is_named_with_its_line(text: str, words: str) -> None:
    assert any(words in problem for problem in read_script(text).problems), read_script(text).problems


@pytest.mark.parametrize(
    "text",
    [
        "\\SET n random(1, 100 * :scale)\n\\Sleep 5ms\n\\sleep :n us\nSELECT :n;",
        "\\set n case when :scale > 1 and not false then -1 when :scale is not null then 2 else hash(3) end\nSELECT :n;",
        "\\set n greatest(1, 2.5, .5e3) << 2 % 3 <> 4 or null isnull\nSELECT :n;",
        "SELECT 1 AS a \\gset p_\nSELECT :p_a;",
        "SELECT a, b FROM t \\gset\nSELECT :a + :b;",
        "SELECT 1 AS a\\; SELECT 2 AS b \\aset\nSELECT :a;",
        "\\if :client_id = 0\n\\set x 1\n\\elif :client_id = 1\n\\set x 2\n\\else\n\\set x 3\n\\endif\nSELECT :x;",
        "SELECT '12:30'::time, to_char(now(), 'HH24:MI'), a[1:n] FROM t;",
        "SELECT a::int, b:=1, 'x:y' /* :z */ -- :w\nFROM t;",
        "-- :head\nSELECT 1;\n-- :tail",
        "\\set a 1\nSELECT * FROM t_:a WHERE c = ':a';",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END;",
    ],
)
def test_what_works_with_values_in_the_text_is_taken_so(text: str) -> None:
    assert read_script(text).problems_with((), "simple") == ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT :id;", "id"),
        ("\\set a :id + 1\nSELECT :a;", "id"),
        ("\\if :id\n\\endif\nSELECT 1;", "id"),
        ("\\sleep :id us\nSELECT 1;", "id"),
        ("SELECT :1a;\n\\set x :1\n", "1"),
        ("SELECT :id;\n\\set id 1\n", "id"),
        ("SELECT \\:id;", "id"),
        ("\\set ID 1\nSELECT :id;", "id"),
        ("SELECT 1 AS a \\gset q_\nSELECT :id;", "id"),
    ],
)
def test_a_variable_that_nothing_sets_is_named(text: str, name: str, protocol: str) -> None:
    (problem,) = read_script(text).problems_with(("other",), protocol)
    assert f":{name} is not defined" in problem
    assert read_script(text).problems_with((name,), protocol) == ()


@pytest.mark.parametrize("protocol", ["extended", "prepared"])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT ':x'", "in a string"),
        ("SELECT E'\\':x'", "in a string"),
        ("SELECT $$:x$$", "in a string"),
        ("SELECT to_char(now(), 'HH24:MI')", ":MI is in a string"),
        ('SELECT 1 AS ":x"', "in a quoted name"),
        ("SELECT 1 /* :x */", "in a comment"),
        ("/* :x */ SELECT 1", "in a comment"),
        ("SELECT 1 -- :x\n + 1", "in a comment"),
        ("SELECT 1 FROM t_:x", "a part of the word"),
        ("SELECT a[1:x]", "a part of the word"),
        ("SELECT 1 FROM :x", "in the place of a name"),
        ("DELETE FROM :x", "in the place of a name"),
        ("UPDATE :x SET a = 1", "in the place of a name"),
        ("INSERT INTO :x VALUES (1)", "in the place of a name"),
        ("SET work_mem = :x", "in SET, which has no parameters"),
        ("vacuum :x", "in VACUUM, which has no parameters"),
        ("EXECUTE p(:x)", "in EXECUTE"),
        ("SELECT 1\\; SELECT 2", "statements that \\; joins"),
    ],
)
def test_where_the_server_takes_no_parameter_the_simple_protocol_is_named(
    statement: str, words: str, protocol: str
) -> None:
    script = read_script(f"\\set x 1\n{statement};\n")
    (problem,) = script.problems_with((), protocol)
    assert words in problem
    assert f'under protocol = "{protocol}"' in problem
    assert 'protocol = "simple", which is pgbench\'s own default' in problem
    assert script.problems_with((), "simple") == ()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT :x::int, -:x, (:x), $1, extract(day FROM :x::date)",
        "SELECT a IS DISTINCT FROM :x FROM t WHERE b = ANY(:x) LIMIT :x",
        "INSERT INTO t VALUES (:x, 'a:1', '::x', 'b: x')",
        "SELECT 1\\;",
        "WITH a AS (SELECT :x) SELECT * FROM a",
        "EXPLAIN SELECT :x",
        "CREATE TABLE u AS SELECT :x::int",
    ],
)
def test_parameters_stand_where_the_server_takes_them(statement: str) -> None:
    assert read_script(f"\\set x 1\n{statement};\n").problems_with((), "prepared") == ()


def test_pipelines_need_parameters() -> None:
    script = read_script("\\startpipeline\nSELECT 1;\n\\endpipeline\n")
    assert script.problems_with((), "prepared") == ()
    first, second = script.problems_with((), "simple")
    assert first == 'line 1: \\startpipeline needs protocol = "extended" or "prepared"'
    assert second.startswith("line 3: \\endpipeline")


def test_statements_are_those_that_the_server_gets() -> None:
    text = (
        "-- a\nSELECT (1;2);\n/* b */ UPDATE t SET a = ';' -- c;\n;\\set x 1\nSELECT 1\\; SELECT 2 \\gset\n"
    )
    statements = read_script(text).statements
    assert [("SELECT (1;2)",), ("UPDATE t SET a = ';'",), ("SELECT 1", "SELECT 2")] == [
        tuple(" ".join(each.split()) for each in statement.texts) for statement in statements
    ]
    assert [2, 3, 5] == [statement.line for statement in statements]


@pytest.mark.parametrize(
    "part",
    [
        "\\a\n",
        ":x ",
        "1\\gset a\n",
        "(",
        "/*",
        "''",
        "'a' -- \n",
        "$a$b",
        "\\if 1\n",
        "\\;",
        "a[1:n",
        "1e",
        ":",
        "\\ \\\n",
    ],
)
def test_a_large_script_takes_no_more_than_its_size(part: str) -> None:
    for before in ("", "\\set x "):
        script = read_script(before + part * (2**16 // len(part)))
        for protocol in PROTOCOLS:
            assert len(script.problems_with((), protocol)) < 10


def test_every_place_of_two_literals_is_read_to_its_end() -> None:
    literals = ["'a'", "E'\\''", '"b"', "$$c$$", "/* d */", "-- e\n", "1.5", ":v", "::", "f$"]
    for first, second in itertools.product(literals, repeat=2):
        # 1.5 before E'…' is refused as what versions read differently.
        assert read_script(f"\\set v 1\nSELECT {first}{second}\\shell x").problems, (first, second)
