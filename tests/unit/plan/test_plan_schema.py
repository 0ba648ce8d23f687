"""The JSON schema of plans: it takes every plan that bedplate takes, and says of each key what the document says."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner
from fastjsonschema import JsonSchemaValueException, compile  # noqa: A004 -- the library's own name
from pydantic import TypeAdapter
from tests.support.studies.plan_mutations import mutated
from tests.support.studies.plan_values import with_every_type

from bedplate.cli.app import program
from bedplate.errors import PlanError
from bedplate.plan.load import TABLES, load_plan
from bedplate.plan.schema import key_lines, plan_schema, toml_values
from bedplate.plan.table import PlanTable

ROOT = Path(__file__).parents[3]
PLANS = ROOT / "plans"
Check = Callable[[Any], Any]


@pytest.fixture(scope="module")
def check() -> Check:
    validate: Check = compile(plan_schema())
    return validate


def texts() -> Iterator[tuple[str, str]]:
    """Every ready plan, and every whole plan in a document."""
    for path in sorted(PLANS.glob("*.toml")):
        yield path.name, path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in re.findall(r"^ *```toml\n(.*?)^ *```$", path.read_text(), re.MULTILINE | re.DOTALL):
            if re.search(r"^ *(\[\[filesystem\]\]|filesystem\b)", block, re.MULTILINE):
                yield path.name, textwrap.dedent(block)


def test_every_ready_plan_and_every_plan_in_a_document_is_taken(check: Check) -> None:
    plans = list(texts())
    assert {"quick.toml", "README.md", "PLANS.md", "OWN_DATABASE.md"} <= {name for name, _ in plans}
    for name, text in plans:
        try:
            check(tomllib.loads(text))
        except JsonSchemaValueException as error:
            raise AssertionError(name) from error


def test_no_plan_that_bedplate_takes_is_refused(check: Check) -> None:
    ready = [path.read_text(encoding="utf-8") for path in sorted(PLANS.glob("*.toml"))]
    small = tuple(text for text in ready if len(text) < 2500)
    changed = mutated(small, seed=11, count=300)
    values = islice((text for _, text in with_every_type(tuple(ready))), 0, None, 23)
    taken = 0
    for text in chain(changed, values):
        try:
            load_plan(text, source="p.toml", directory=PLANS)
        except PlanError:
            continue
        check(tomllib.loads(text))
        taken += 1
    assert taken > 50  # else it shows little


MISTAKES = {
    "a key with a slip": ("", "repetition = 3"),
    "a number out of its range": ("", "repetitions = 0"),
    "a text for a number": ("", 'seed = "1"'),
    "a word that is none of its list": ("", 'executor = "cloud"'),
    "a key in the wrong table": ("[scratch_device]", 'memory = "2 GB"'),
    "a size in words": ("[machine]", 'memory = "much"'),
    "a size below the smallest": ("[machine]", "memory = 1000"),
    "a list that does not vary": ("[machine]", 'memory = ["1 GB", "2 GB"]'),
    "a type of file system with a slip": ("[[filesystem]]", 'type = "ext5"'),
    "a level that only others have": ("[[filesystem]]", 'type = "ext4"\nbarrier = "yes"'),
    "vary beside another key": ("[[filesystem]]", 'type = { vary = ["ext4"], also = 1 }'),
    "an empty vary": ("[[filesystem]]", "type = { vary = [] }"),
    "a file system without a type": ("[[filesystem]]", 'mount_options = ["noatime"]'),
    "an option that is a text": ("[[filesystem]]", 'type = "ext4"\nmount_options = "noatime"'),
    "a workload without a type": ("[[workload]]", "scale = 10"),
    "a workload's type with a slip": ("[[workload]]", 'type = "pgbnch"'),
    "a key of another workload": ("[[workload]]", 'type = "pgbench"\nscale_factor = 1'),
    "a time with a unit that there is not": ("[canary]", 'every = "2 hours"'),
    "a setting that is a list": ("[postgresql.settings]", "shared_buffers = [1]"),
    "a source without a commit": ("[postgresql]", 'source = { tree = "~/src/postgres" }'),
    "a limit that no device has": ("[scratch_device]", "throttle = { iops = 5 }"),
    "a pass that there is not": ("[[workload]]", 'type = "tpch"\nscale_factor = 1\npasses = ["hot"]'),
}


@pytest.mark.parametrize(("table", "lines"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_in_the_editor_as_by_bedplate(check: Check, table: str, lines: str) -> None:
    least = '[[filesystem]]\ntype = "xfs"\n'
    text = f"{table}\n{lines}\n{least}"
    with pytest.raises(PlanError):
        load_plan(text, source="p.toml", directory=PLANS)
    with pytest.raises(JsonSchemaValueException):
        check(tomllib.loads(text))


def properties() -> Iterator[tuple[str, type[PlanTable], str, dict[str, Any]]]:
    """Each key of each table, with what the schema has of it."""
    schema = plan_schema()
    kinds = {kind.__name__: kind for kind in TABLES.values()}
    for name, made in (("WHOLE", schema), *schema["$defs"].items()):
        aliases = {field.alias or key: key for key, field in kinds[name].model_fields.items()}
        for key, form in made["properties"].items():
            yield (
                key,
                kinds[name],
                aliases[key],
                {"$schema": schema["$schema"], "$defs": schema["$defs"], **form},
            )


def test_defaults_and_examples_of_the_document_are_values_of_their_keys() -> None:
    looked_at = 0
    for key, kind, _, form in properties():
        check = compile({name: part for name, part in form.items() if name not in {"default", "examples"}})
        for value in (*form.get("examples", ()), *([form["default"]] if "default" in form else [])):
            looked_at += 1
            try:
                check(value)
            except JsonSchemaValueException as error:
                raise AssertionError(f"{kind.__name__}.{key}: {value}") from error
    assert looked_at > 150


def test_a_default_of_the_document_is_what_a_plan_gets_that_leaves_the_key_out() -> None:
    looked_at = 0
    for key, kind, name, _ in properties():
        field = kind.model_fields[name]
        # Where a table has nothing, the server or mkfs decides: what the document has is theirs.
        if field.is_required() or not (held := field.get_default(call_default_factory=True)):
            continue
        key_type: Any = Annotated[field.annotation, "a key", *field.metadata]
        adapter: TypeAdapter[Any] = TypeAdapter(key_type)
        for value in toml_values(key_lines(kind)[name].default):
            looked_at += 1
            assert held == adapter.validate_python(value), f"{kind.__name__}.{key}"
    assert looked_at > 40


def test_the_schema_is_printed_without_a_plan_and_has_the_words_of_the_document() -> None:
    answer = CliRunner().invoke(program, ["plan", "--schema"])
    assert 0 == answer.exit_code
    document = json.loads(answer.output)
    assert "http://json-schema.org/draft-07/schema#" == document["$schema"]
    repetitions = document["properties"]["repetitions"]
    assert "1 to 1000 passes over all cells, each in its own order" == repetitions["description"]
    assert (5, [2]) == (repetitions["default"], repetitions["examples"])
    # Editors follow no link into a document of bedplate.
    assert "](" not in answer.output
