"""What the product chose to depend on, and the pins that a resolver made of it."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.architecture.source import PACKAGES, ROOT, sources

OWN = {*PACKAGES, "assessment", "tests"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(file: str) -> list[str]:
    read = ((ROOT / file).read_text()).splitlines()
    return [line.split("#")[0].strip() for line in read if line[:1].isalnum()]


def chosen(file: str) -> set[str]:
    return {normal(re.split(r"[\[<>=!~; ]", line)[0]) for line in lines(file)}


def pins(file: str) -> dict[str, str]:
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines(file))}


def imported() -> set[str]:
    """The libraries that the product, the bundled release included, imports by name."""
    trees = [source.tree for source in sources()]
    files: list[Path] = [*(ROOT / "assessment").rglob("*.py")]
    trees += [ast.parse(file.read_text()) for file in files if "sample" not in file.parts]
    names = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).split(".")[0])
    return names - OWN - sys.stdlib_module_names


def test_everything_chosen_is_pinned_and_the_tests_run_on_the_products_pins() -> None:
    product, tests = pins("requirements.txt"), pins("requirements-dev.txt")
    assert all(product.values())
    assert all(tests.values())
    assert chosen("requirements.in") <= product.keys()
    assert chosen("requirements-dev.in") <= tests.keys()
    assert product.items() <= tests.items()


def test_what_the_product_imports_was_chosen() -> None:
    known, by_import = chosen("requirements.in"), packages_distributions()
    assert [
        name for name in sorted(imported()) if not known & set(map(normal, by_import.get(name, [])))
    ] == []
