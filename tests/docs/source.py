"""The source as tests read it.

Each module's text and syntax tree, parsed once, and what is declared and named in it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ("streams", "storage", "processors", "mcp_ingress", "thalweg")
PACKAGES = (*PROGRAM, "tests")
_LONGEST_NAME = 200  # a string of more characters is a text, not the name of something


@dataclass(frozen=True)
class Declaration:
    """A function, method, class or constant, and where it stands."""

    name: str
    place: str
    node: ast.stmt

    def __str__(self) -> str:
        return f"{self.place}: {self.name}"


class Module:
    """One Python file of the repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.package = path.relative_to(ROOT).parts[0]
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @property
    def dotted(self) -> str:
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def functions(self) -> Iterator[Declaration]:
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Declaration(node.name, self.name, node)

    def classes(self) -> Iterator[Declaration]:
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                yield Declaration(node.name, self.name, node)

    def constants(self) -> Iterator[Declaration]:
        """The names that a module or a class assigns."""
        for owner in self.nodes:
            for node in owner.body if isinstance(owner, ast.Module | ast.ClassDef) else ():
                targets = node.targets if isinstance(node, ast.Assign) else ()
                for target in (node.target,) if isinstance(node, ast.AnnAssign) else targets:
                    if isinstance(target, ast.Name):
                        yield Declaration(target.id, self.name, node)

    def methods_of_libraries(self, ours: set[str]) -> set[ast.stmt]:
        """Methods that another package may call: those of classes with a base that this project does not define."""
        return {
            method
            for each in self.classes()
            if isinstance(each.node, ast.ClassDef)
            and any(isinstance(base, ast.Attribute) or last_name(base) not in ours for base in each.node.bases)
            for method in each.node.body
        }

    def names_used(self) -> Iterator[str]:
        """Each name that is read, imported or passed by keyword, also inside short strings (no docstrings)."""
        prose = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        for node in self.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    yield name
                case ast.alias(name=name):
                    yield name.rpartition(".")[2]
                case ast.keyword(arg=str(name)):
                    yield name
                case ast.Constant(value=str(text)) if len(text) <= _LONGEST_NAME and id(node) not in prose:
                    yield from re.findall(r"\w+", text)

    def imported(self) -> Iterator[str]:
        """The dotted names of all modules that this one may import, wherever in it the import stands."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def last_name(node: ast.expr) -> str:
    """`Base` of `Base` and `Base[int]`; of what a module is named with, nothing."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=value):
            return last_name(value)
    return ""


@cache
def modules() -> tuple[Module, ...]:
    return tuple(Module(path) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))


def program() -> tuple[Module, ...]:
    return tuple(module for module in modules() if module.package != "tests")
