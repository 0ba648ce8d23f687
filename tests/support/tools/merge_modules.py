"""Moves definitions between modules without changing them, by a map of old modules to new ones.

    python -m tests.support.tools.merge_modules MAP [--write]

A line `@ bedplate.host` in MAP says which room the next lines are about; `git: git.export git.patches` makes `bedplate.host.git` of two
modules, whose texts follow one another (what others need when they are imported comes first); `rename git.patches._git _git_of_patches`
is for a name that two of them use for different things.

Before anything is written it is checked that no name means two things in a new module, that every definition has the same syntax tree as
before but for the renames, and that no modules import each other in a circle. Imports of sources, tests and benchmarks are rewritten, and so
are dotted names and paths in texts.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_ROOTS = ("src", "tests", "benchmarks", "distribution")
_TEXTS = (
    "*.md",
    "*.toml",
    "*.py",
    "*.1",
    "*.sh",
    "*.js",
    "*.j2",
    "check",
    "torture",
    "bedplate",
    "package",
    "*.c",
    "*.h",
)


class CannotMerge(Exception):
    """The map asks for what cannot be done unchanged; all reasons."""


@dataclass(frozen=True)
class Target:
    """One new module and what it is made of."""

    new: str
    old: tuple[str, ...]
    docstring: str | None = None
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Source:
    """A module as it stands: its text, its imports by the local name that they bind, and the pieces of its body."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    runtime: dict[str, str] = field(default_factory=dict)  # local name -> statement
    typing: dict[str, str] = field(default_factory=dict)
    needs: set[str] = field(default_factory=set)  # modules of bedplate that are imported when it is
    body: list[tuple[ast.stmt, str]] = field(default_factory=list)

    @property
    def docstring(self) -> str | None:
        return ast.get_docstring(self.tree, clean=False)


def read_map(path: Path) -> list[Target]:
    """The targets of a map file: `@ ROOM`, then lines of `NEW: OLD…` below it, and `rename OLD.NAME NEW_NAME`."""
    targets: list[Target] = []
    renames: dict[str, str] = {}
    room = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] == "@":
            room = words[1]
        elif words[0] == "rename":
            renames[f"{room}.{words[1]}"] = words[2]
        else:
            new = words[0].removesuffix(":")
            targets.append(Target(f"{room}.{new}", tuple(f"{room}.{word}" for word in words[1:])))
    return [
        Target(
            each.new,
            each.old,
            each.docstring,
            {old: new for old, new in renames.items() if old.rpartition(".")[0] in each.old},
        )
        for each in targets
    ]


def module_path(root: Path, name: str) -> Path:
    """Where a module's file is; its folder's `__init__.py` for a package."""
    place = root / "src" / Path(*name.split("."))
    return (
        place / "__init__.py"
        if place.is_dir() and not place.with_suffix(".py").exists()
        else place.with_suffix(".py")
    )


def _bound(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """Local name, statement that binds it alone, full name of what it is."""
    for alias in node.names:
        local = alias.asname or alias.name
        suffix = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.ImportFrom):
            yield local, f"from {node.module} import {alias.name}{suffix}", f"{node.module}.{alias.name}"
        else:
            yield local, f"import {alias.name}{suffix}", alias.name


def _is_typing_block(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse


def read_source(root: Path, name: str) -> Source:
    """A module taken apart: heads, and the rest in pieces with the comments that stand before each."""
    path = module_path(root, name)
    text = path.read_text(encoding="utf-8")
    source = Source(name, path, text, ast.parse(text))
    lines = text.splitlines(keepends=True)
    end = 0
    for index, node in enumerate(source.tree.body):
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1
        before, piece = lines[end:first], lines[first : node.end_lineno]
        end = node.end_lineno or node.lineno
        # A remark at the end of a line belongs to it.
        is_docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            if isinstance(node, ast.ImportFrom) and node.level:
                raise CannotMerge(f"{name}: relative import")
            for local, statement, full in _bound(node):
                source.runtime[local] = statement
                source.needs.update({full, full.rpartition(".")[0]})
            comments = [line for line in before if line.strip()]
            if comments or "#" in "".join(piece):
                print(f"note: {name}: remarks at imports are lost: {''.join([*comments, *piece]).strip()!r}")
            continue
        if _is_typing_block(node):
            assert isinstance(node, ast.If)
            aliases = []
            for each in node.body:
                if isinstance(each, ast.Import | ast.ImportFrom):
                    for local, statement, _ in _bound(each):
                        source.typing[local] = statement
                else:
                    aliases.append(ast.get_source_segment(text, each) or "")
            if aliases:
                piece_text = "if TYPE_CHECKING:\n" + "".join(f"    {each}\n" for each in aliases)
                source.body.append((ast.parse(piece_text).body[0], piece_text))
            continue
        source.body.append((node, "".join(before).lstrip("\n") + "".join(piece)))
    rest = "".join(lines[end:]).strip()
    if rest:
        source.body.append((ast.Pass(), rest))
    return source


def defined(source: Source) -> dict[str, ast.stmt]:
    """The names that a module's own statements bind, with the statement."""
    names: dict[str, ast.stmt] = {}

    def bind(node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        names[each.id] = node
        elif isinstance(node, ast.If | ast.Try | ast.For | ast.With):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    bind(child)

    for node, _ in source.body:
        bind(node)
    return names


def in_order(sources: Sequence[Source]) -> list[Source]:
    """Those that others need when they are imported come first; otherwise as given."""
    placed: list[Source] = []
    left = list(sources)
    while left:
        names = {each.name for each in left}
        ready = next((each for each in left if not (each.needs & (names - {each.name}))), None)
        if ready is None:
            raise CannotMerge(f"imported in a circle: {', '.join(sorted(names))}")
        placed.append(ready)
        left.remove(ready)
    return placed


class _Renamer:
    """Renames of names in a text, by the places that its syntax tree gives: nothing in strings or comments changes."""

    def __init__(
        self,
        names: Mapping[str, str],
        attributes: Mapping[str, str] | None = None,
        members: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.names = names
        # `output.parse` -> `figures.parse_fio`, by the local name of the module and the name in it.
        self.members = members or {}
        # `undo.end_server` -> `end_server`, by the local name of the module.
        self.modules = attributes or {}

    def apply(self, text: str) -> str:
        tree = ast.parse(text)
        edits: list[tuple[int, int, int, str]] = []
        shadowed = set(_local_uses(tree))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in self.modules
                and id(node.value) not in shadowed
            ):
                base = node.value
                prefix = self.modules[base.id]
                shadowed.add(id(base))
                if prefix:
                    edits.append((base.lineno, base.col_offset, base.end_col_offset or 0, prefix))
                    member = self.members.get((base.id, node.attr))
                    if member is not None:
                        end = node.end_col_offset or 0
                        edits.append((node.end_lineno or 0, end - len(node.attr), end, member))
                else:
                    if node.end_lineno != node.lineno:
                        raise CannotMerge(f"{base.id}.{node.attr} over two lines")
                    name = self.names.get(node.attr, node.attr)
                    edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, name))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and id(node) not in shadowed and node.id in self.names:
                edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, self.names[node.id]))
            elif isinstance(node, ast.Name) and id(node) not in shadowed and node.id in self.modules:
                prefix = self.modules[node.id]
                if not prefix:
                    raise CannotMerge(f"the module {node.id} is used as a value")
                edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, prefix))
            elif (
                isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
                and node in tree.body
                and node.name in self.names
            ):
                word = "class " if isinstance(node, ast.ClassDef) else "def "
                line = text.splitlines()[node.lineno - 1]
                column = line.index(word, node.col_offset) + len(word)
                width = len(node.name.encode())
                column_bytes = len(line[:column].encode())
                edits.append((node.lineno, column_bytes, column_bytes + width, self.names[node.name]))
            elif isinstance(node, ast.Global) and set(node.names) & set(self.names):
                line = text.splitlines()[node.lineno - 1]
                for name in node.names:
                    if name in self.names:
                        match = re.search(rf"\b{name}\b", line)
                        assert match
                        edits.append((node.lineno, match.start(), match.end(), self.names[name]))
        return _edited(text, edits)


_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def _bound_here(scope: ast.AST) -> set[str]:
    """The names that a function or a comprehension binds for itself."""
    names: set[str] = set()
    outside: set[str] = set()
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Global):
            outside.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(local for local, _, _ in _bound(node))
        elif isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.ClassDef) and node.name:
            names.add(node.name)
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return names - outside


def _local_uses(tree: ast.AST, bound: frozenset[str] = frozenset()) -> Iterator[int]:
    """The names in a text, by `id`, that mean something of a function's own."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Name) and node.id in bound:
            yield id(node)
        if isinstance(node, ast.ClassDef):
            # What a class binds is seen by its own statements, not by the bodies of its methods.
            fields = _bound_here(node)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Assign | ast.AnnAssign):
                    yield from _local_uses(child, bound | fields)
                else:
                    yield from _local_uses(ast.Module([child], []), bound)  # type: ignore[list-item]
            continue
        yield from _local_uses(node, bound | _bound_here(node) if isinstance(node, _SCOPES) else bound)


def _edited(text: str, edits: Iterable[tuple[int, int, int, str]]) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for number, start, end, word in sorted(set(edits), reverse=True):
        line = lines[number - 1]
        lines[number - 1] = line[:start] + word.encode() + line[end:]
    return b"".join(lines).decode()


def digest(tree: ast.AST) -> str:
    """The syntax tree without places."""
    return ast.dump(tree, include_attributes=False)


class Merge:
    """A whole map on a checkout."""

    def __init__(self, root: Path, targets: Sequence[Target]) -> None:
        self.root = root
        self.targets = targets
        self.new_of = {old: target.new for target in targets for old in target.old}
        self.renamed = {old: name for target in targets for old, name in target.rename.items()}
        self.outputs: dict[Path, str] = {}
        self.gone: set[Path] = set()
        self.notes: list[str] = []

    def run(self) -> None:
        reasons = [
            f"{target.new}: there is such a module, and it becomes {self.new_of[target.new]}"
            for target in self.targets
            if self.new_of.get(target.new, target.new) != target.new
        ]
        for target in self.targets:
            try:
                self._make(target)
            except CannotMerge as error:
                reasons.append(f"{target.new}: {error}")
        if reasons:
            raise CannotMerge("\n".join(reasons))
        new_paths = set(self.outputs)
        self.gone -= new_paths
        for path in self._python_files():
            if path in self.gone:
                continue
            text = self.outputs.get(path) or path.read_text(encoding="utf-8")
            new = self._rewritten(text, path)
            if new != text or path in self.outputs:
                self.outputs[path] = new
        for path in self.outputs.keys() - set(self._python_files()):
            self.outputs[path] = self._rewritten(self.outputs[path], path)

    def _python_files(self) -> list[Path]:
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", *(f"{each}/*.py" for each in _ROOTS)],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        return [self.root / name for name in listed.split("\0") if name]

    def _make(self, target: Target) -> None:
        sources = in_order([read_source(self.root, name) for name in target.old])
        own = set(target.old)
        names: dict[str, tuple[str, str]] = {}  # name -> (module, digest)
        runtime: dict[str, str] = {}
        typing: dict[str, str] = {}
        reasons = []
        pieces: list[str] = []
        before: Counter[str] = Counter()
        for source in sources:
            renames = {
                old.rpartition(".")[2]: new
                for old, new in target.rename.items()
                if old.rpartition(".")[0] == source.name
            }
            modules: dict[str, str] = {}
            heads: dict[str, tuple[str, dict[str, str]]] = {}
            for kind, table in (("runtime", source.runtime), ("typing", source.typing)):
                for local, statement in table.items():
                    node = ast.parse(statement).body[0]
                    assert isinstance(node, ast.Import | ast.ImportFrom)
                    _, _, full = next(_bound(node))
                    parent, _, name = full.rpartition(".")
                    if full in own:
                        modules[local] = ""
                        continue
                    if parent in own:
                        to = target.rename.get(full, name)
                        if to != local:
                            renames[local] = to
                        continue
                    heads[local] = (statement, runtime if kind == "runtime" else typing)
            for local, (statement, table) in heads.items():
                to = renames.get(local, local)
                if to != local:
                    reasons.append(f"{source.name}: the import {local} would be renamed to {to}")
                other = runtime.get(local) or typing.get(local)
                if other is not None and self._rewritten_import(other) != self._rewritten_import(statement):
                    reasons.append(f"{local} is `{statement}` in {source.name}, and `{other}` elsewhere")
                table[local] = statement
            renamer = _Renamer(renames, modules)
            for node, piece in source.body:
                text = piece
                if isinstance(node, ast.Pass) and not text.strip().startswith("pass"):
                    pieces.append(text)
                    continue
                try:
                    text = renamer.apply(text) if renames or modules else text
                except (CannotMerge, SyntaxError) as error:
                    reasons.append(f"{source.name}: {error}")
                    continue
                known = ast.parse(text).body
                tree = "".join(map(digest, known))
                bound = (
                    defined(Source("", Path(), "", ast.Module([], []), body=[(known[0], text)]))
                    if known
                    else {}
                )
                same = False
                for name in bound:
                    if name in names and names[name][1] == tree:
                        same = True
                    elif name in names:
                        reasons.append(f"{name} is defined in {names[name][0]} and in {source.name}")
                    names[name] = (source.name, tree)
                if same:
                    continue
                before[tree] += 1
                pieces.append(text)
        for name, (where, _) in names.items():
            if name in runtime or name in typing:
                reasons.append(
                    f"{name} is defined in {where} and imported elsewhere: {runtime.get(name) or typing[name]}"
                )
        if reasons:
            raise CannotMerge("; ".join(sorted(set(reasons))))
        for name in runtime:
            typing.pop(name, None)
        docstring = target.docstring
        if docstring is None:
            docstring = next(each for each in sources if each.name == target.old[0]).docstring or ""
        head = f'"""{docstring}"""\n\nfrom __future__ import annotations\n\n'
        if typing:
            runtime["TYPE_CHECKING"] = "from typing import TYPE_CHECKING"
        head += "".join(f"{statement}\n" for statement in sorted(set(runtime.values())))
        if typing:
            head += "\nif TYPE_CHECKING:\n" + "".join(
                f"    {each}\n" for each in sorted(set(typing.values()))
            )
        text = head + "\n" + "\n\n".join(piece.strip("\n") for piece in pieces) + "\n"
        after = Counter(digest(node) for node in ast.parse(text).body)
        lost = [tree[:80] for tree in before if not after[tree]]
        if lost:
            raise CannotMerge(f"definitions changed: {lost[:3]}")
        path = self._place(target)
        self.outputs[path] = text
        self.gone.update(source.path for source in sources)

    def _rewritten_import(self, statement: str) -> str:
        node = ast.parse(statement).body[0]
        assert isinstance(node, ast.Import | ast.ImportFrom)
        _, _, full = next(_bound(node))
        parent, _, name = full.rpartition(".")
        return f"{self.new_of.get(parent, parent)}.{self.renamed.get(full, name)}"

    def _place(self, target: Target) -> Path:
        """A folder all of whose modules go becomes a module; one that keeps some, or a template, has it in its `__init__.py`."""
        place = self.root / "src" / Path(*target.new.split("."))
        prefix = f"{target.new}."
        if place.is_dir():
            left = [
                name
                for name in self._modules()
                if name.startswith(prefix)
                and not (name in self.new_of and not self.new_of[name].startswith(prefix))
            ]
            others = [
                path for path in place.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}
            ]
            if left or others:
                return place / "__init__.py"
        return place.with_suffix(".py")

    def _modules(self) -> list[str]:
        return [
            ".".join(path.relative_to(self.root / "src").with_suffix("").parts).removesuffix(".__init__")
            for path in self._python_files()
            if path.is_relative_to(self.root / "src")
        ]

    def circles(self) -> list[str]:
        """Modules that would be imported in a circle when they are imported."""
        needs: dict[str, set[str]] = {}
        final: dict[str, str] = {}
        for path in self._python_files():
            if path.is_relative_to(self.root / "src") and path not in self.gone:
                final[
                    ".".join(path.relative_to(self.root / "src").with_suffix("").parts).removesuffix(
                        ".__init__"
                    )
                ] = self.outputs.get(path) or path.read_text(encoding="utf-8")
        for path, text in self.outputs.items():
            if path.is_relative_to(self.root / "src"):
                final[
                    ".".join(path.relative_to(self.root / "src").with_suffix("").parts).removesuffix(
                        ".__init__"
                    )
                ] = text
        for name, text in final.items():
            found = set()
            for node in ast.parse(text).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    for _, _, full in _bound(node):
                        found |= {each for each in (full, full.rpartition(".")[0]) if each in final}
            needs[name] = found - {name}
        circles = []
        state: dict[str, int] = {}

        def walk(name: str, way: list[str]) -> None:
            state[name] = 1
            for other in sorted(needs[name]):
                if state.get(other) == 1:
                    circles.append(" -> ".join([*way[way.index(other) :], other]))
                elif other not in state:
                    walk(other, [*way, other])
            state[name] = 2

        for name in sorted(needs):
            if name not in state:
                walk(name, [name])
        return circles

    def _rewritten(self, text: str, path: Path) -> str:
        """Imports and dotted names of old modules become those of new ones."""
        tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        replaced: list[tuple[int, int, str]] = []
        names: dict[str, str] = {}
        modules: dict[str, str] = {}
        members: dict[tuple[str, str], str] = {}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom) or (
                isinstance(node, ast.ImportFrom) and node.level
            ):
                continue
            statements = []
            changed = False
            for local, statement, full in _bound(node):
                parent, _, name = full.rpartition(".")
                alias = f" as {local}" if isinstance(node, ast.ImportFrom) and local != name else ""
                if isinstance(node, ast.ImportFrom) and full in self.new_of:
                    new = self.new_of[full]
                    package, _, last = new.rpartition(".")
                    for renamed, to in self.renamed.items():
                        if renamed.rpartition(".")[0] == full:
                            members[local, renamed.rpartition(".")[2]] = to
                            modules.setdefault(local, local)
                    if new != full:
                        changed = True
                        if not alias and last != local:
                            modules[local] = last
                        statements.append(f"from {package} import {last}{alias if local != last else ''}")
                        continue
                elif isinstance(node, ast.ImportFrom) and (parent in self.new_of):
                    to = self.renamed.get(full, name)
                    if self.new_of[parent] != parent or to != name:
                        changed = True
                        if to != name and not alias:
                            names[local] = to
                        statements.append(f"from {self.new_of[parent]} import {to}{alias}")
                        continue
                elif isinstance(node, ast.Import) and full in self.new_of and self.new_of[full] != full:
                    changed = True
                    statements.append(statement.replace(full, self.new_of[full]))
                    continue
                statements.append(statement)
            if changed:
                indent = " " * node.col_offset
                # Duplicates of one source are joined by ruff.
                joined = "".join(f"{indent}{each}\n" for each in dict.fromkeys(statements))
                replaced.append((node.lineno, node.end_lineno or node.lineno, joined))
        for first, end, statement in sorted(replaced, reverse=True):
            lines[first - 1 : end] = [statement]
        text = "".join(lines)
        if names or modules:
            text = _Renamer(names, modules, members).apply(text)
        return self._renamed_words(text)

    def _renamed_words(self, text: str) -> str:
        for old, new in sorted(self.new_of.items(), key=lambda pair: -len(pair[0])):
            if old == new:
                continue
            if old in text:
                text = re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w])(?!\.py\b)", new, text)
        return text

    def write(self) -> None:
        for path in self.gone:
            path.unlink()
        for path, text in self.outputs.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        moved = {
            (module_path_text(old), module_path_text(new)) for old, new in self.new_of.items() if old != new
        }
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", *_TEXTS],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            path = self.root / name
            if path.suffix == ".py" or not path.is_file() or name.startswith("CHANGELOG"):
                continue
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            new = self._renamed_words(text)
            for old_place, new_place in moved:
                # ARCHITECTURE names a module by its path below src/bedplate.
                new = re.sub(rf"(?<![\w/]){re.escape(old_place)}(?!\w)", new_place, new)
            if new != text:
                path.write_text(new, encoding="utf-8", errors="surrogateescape")


def module_path_text(name: str) -> str:
    """As documents name it: below src/bedplate."""
    return "/".join(name.split(".")[1:]) + ".py"


def main(arguments: Sequence[str]) -> int:
    """Carry out a map; without `--write` only say whether it can be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("map", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    merge = Merge(Path.cwd(), read_map(options.map))
    try:
        merge.run()
    except CannotMerge as error:
        print(error)
        return 1
    for circle in merge.circles():
        print("circle:", circle)
    print(f"{len(merge.gone)} modules go, {len(merge.outputs)} files are written")
    if options.write:
        merge.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
