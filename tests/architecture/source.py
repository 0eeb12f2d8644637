"""The product's own source, parsed once, for the tests of its style."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("config", "factory", "projects", "approvals", "registry", "usage", "notifications", "runs")
APPS = ("projects", "approvals", "registry", "usage", "notifications", "runs")


@dataclass(frozen=True)
class Source:
    """One module: where it is, what it says, and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    def is_in(self, *places: str) -> bool:
        """Whether it is one of these files or below one of these folders."""
        return any(self.name == place or self.name.startswith(f"{place}/") for place in places)

    def at(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


@cache
def sources() -> tuple[Source, ...]:
    """Everything that ships, without migrations (Django writes most of those)."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    read = [(file, file.read_text()) for file in files if "migrations" not in file.parts]
    return tuple(Source(file, text, ast.parse(text)) for file, text in read)


def functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    first = function.body[0]
    told = 0
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        told = (first.end_lineno or first.lineno) - first.lineno + 1
    return (function.end_lineno or function.lineno) - function.lineno + 1 - told


def calls(source: Source, name: str) -> Iterator[ast.Call]:
    """Calls of a function or method by its last name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and called(node) == name:
            yield node


def called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def dotted(node: ast.expr) -> str:
    """`timezone.now` for the expression timezone.now; empty for anything that is no chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {word.arg: word.value for word in call.keywords if word.arg}
