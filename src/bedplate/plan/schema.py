"""What the tables of a plan say of their keys: the lines of PLANS.md, and a JSON schema for editors."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from bedplate.model.filesystem import TRAITS, feature_levels
from bedplate.plan.fields import FEATURES, is_of_levels
from bedplate.plan.load import WHOLE
from bedplate.plan.table import PlanTable
from bedplate.plan.values import either, table

# What editors for TOML read: taplo, and Even Better TOML, which stands on it.
DIALECT = "http://json-schema.org/draft-07/schema#"

_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class KeyLine:
    """The line of a key in PLANS.md, in Markdown."""

    layer: str
    values: str
    default: str
    example: str


def field_texts(record: type[Any]) -> dict[str, str]:
    """The docstrings below the fields, which Python itself does not keep."""
    found = {}
    for statement, below in pairwise(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(record))))):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found


def key_lines(kind: type[PlanTable]) -> dict[str, KeyLine]:
    """The line of each field of a table: as the docstring below it says; of a type's own factors as its traits do."""
    texts: dict[str, str] = {}
    for base in kind.__mro__:
        # Those that are made of the traits of file systems and of the engines have no text.
        if issubclass(base, PlanTable) and base.__doc__:
            texts = {**field_texts(base), **texts}
    return {name: _line(name, field, texts.get(name)) for name, field in kind.model_fields.items()}


def _line(name: str, field: FieldInfo, text: str | None) -> KeyLine:
    if text is not None:
        cells = [cell.strip() for cell in text.split(" | ")]
        if len(cells) != 4:
            raise ValueError(
                f"{name}: the row below a key is `layer | values | default | example`, found {text!r}"
            )
        return KeyLine(*cells)
    if name in FEATURES:
        levels = [f"`{json.dumps(level)}`" for level in feature_levels()[name]]
        types = ", ".join(kind for kind, traits in TRAITS.items() if name in traits.features)
        return KeyLine("filesystem", f"{', '.join(levels)} ({types})", "the file system's own", levels[-1])
    if get_origin(field.annotation) is Literal:
        # Behind it stand names that it had before.
        kind, *_ = get_args(field.annotation)
        return KeyLine("load", f"`{kind}`", "required", f'`"{kind}"`')
    return KeyLine("–", "the table below", "all defaults", "–")


def toml_values(cell: str) -> Iterator[Any]:
    """The values in backticks of a cell that is nothing else; none of one in words."""
    quoted = re.findall(r"`([^`]+)`", cell)
    if ", ".join(f"`{text}`" for text in quoted) != cell:
        return
    for text in quoted:
        try:
            yield tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            continue


def plan_schema() -> dict[str, Any]:
    """A JSON schema of plans. It refuses no plan that bedplate takes; what keys have to do with one another it does not know."""
    schema = WHOLE.model_json_schema(schema_generator=_ForEditors)
    return {
        "$schema": DIALECT,
        **schema,
        "title": "A plan of bedplate",
        "description": "What is erased, what is varied, and what is measured.",
    }


class _ForEditors(GenerateJsonSchema):
    """Values as a plan writes them, each key with its line of PLANS.md; what pydantic makes of parsed defaults and names is left out."""

    schema_dialect = DIALECT

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 -- a key is its own title
        return False

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        return {"oneOf": super().tagged_union_schema(schema)["oneOf"]}

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        if not is_of_levels(schema["function"]["function"]):
            return super().function_before_schema(schema)
        level = self.generate_inner(schema["schema"])["items"]
        varied = {"type": "array", "items": level, "minItems": 1}
        return either(level, table({"vary": varied}, required=("vary",)))

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        del made["title"]
        kind: type[PlanTable] = schema["cls"]
        for name, line in key_lines(kind).items():
            key = kind.model_fields[name].alias or name
            defaults = list(toml_values(line.default))
            in_words = not defaults and line.default not in {"–", "required"}
            words = f"{line.values} (default: {line.default})" if in_words else line.values
            made["properties"][key] = {
                # A reference with anything beside it is that reference alone in this dialect.
                **_with_siblings(made["properties"][key]),
                "description": _LINK.sub(r"\1", words),
                **({"default": defaults[0]} if defaults else {}),
                **({"examples": examples} if (examples := list(toml_values(line.example))) else {}),
            }
        return made


def _with_siblings(property_schema: JsonSchemaValue) -> JsonSchemaValue:
    return {"allOf": [property_schema]} if "$ref" in property_schema else property_schema
