"""Migrations that have landed, and the hash of what each does: a list that only grows.

    python -m tests.architecture.landed        adds the new ones (a part of `make schema`)

Import paths may move: imports, comments, blank space and the modules in front of a class's name are no part
of what a migration does.
"""

import ast
import re
from hashlib import sha256
from pathlib import Path

from tests.architecture.source import ROOT, dotted

LIST = Path(__file__).with_name("landed_migrations.txt")


def migrations() -> dict[str, str]:
    """Return the hash of every migration of ours, by its path."""
    files = sorted(file for file in ROOT.glob("*/migrations/[0-9]*.py"))
    return {str(file.relative_to(ROOT)): hash_of(file.read_text()) for file in files}


def hash_of(source: str) -> str:
    """Return the hash of what a migration does, wherever what it imports stands."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    bare = ast.unparse(_WithoutModules().visit(tree))
    return sha256(re.sub(r"\s+", "", bare).encode()).hexdigest()


class _WithoutModules(ast.NodeTransformer):
    """Turn `factory.kernel.models.base.TenantForeignKey` into `TenantForeignKey`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr) if dotted(node) else self.generic_visit(node)


def landed() -> dict[str, str]:
    """Return the list as it is committed."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return dict(line.split() for line in lines if not line.startswith("#"))


def main() -> None:
    """Add migrations that are new; a line that is there is never written anew."""
    known = landed()
    fresh = {path: hash_ for path, hash_ in migrations().items() if path not in known}
    with LIST.open("a") as file:
        file.writelines(f"{path} {hash_}\n" for path, hash_ in fresh.items())
    print(f"{len(fresh)} migrations added to {LIST.relative_to(ROOT)}")  # noqa: T201  it is a command


if __name__ == "__main__":
    main()
