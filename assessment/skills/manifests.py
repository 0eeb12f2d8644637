"""Dependency manifests of the common ecosystems: what they ask for, and whether it is pinned."""

import json
import re
import tomllib
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement


@dataclass(frozen=True)
class Dependency:
    """One line of a manifest. Pinned: exactly one version would satisfy it."""

    name: str
    wanted: str
    pinned: bool
    dev: bool = False


Parser = Callable[[str], Iterator[Dependency]]

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*?)\s*(?:\[|[=<>!~])")
"""The name of a requirement whose version no tool of today accepts: it is asked for all the same."""
_COMMIT = re.compile(r"@[0-9a-f]{40}\b")
_EXACT = re.compile(r"^v?\d+(\.\d+)*([-+.][0-9A-Za-z.-]+)?$")


def _requirement(line: str, dev: bool = False) -> Dependency | None:
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        named = _NAMED.match(line)
        return Dependency(named[1], "", False, dev) if named else None
    if wanted.url:
        return Dependency(wanted.name, "url", bool(_COMMIT.search(wanted.url)), dev)
    exact = [item.operator in ("==", "===") and "*" not in item.version for item in wanted.specifier]
    return Dependency(wanted.name, str(wanted.specifier), exact == [True], dev)


def _requirements_txt(text: str) -> Iterator[Dependency]:
    for line in text.replace("\\\n", " ").splitlines():
        plain = re.split(r"\s(?:#|--hash)", line)[0].strip()
        if plain.startswith(("git+", "https:", "http:", "file:")):
            yield Dependency(plain.split("#egg=")[-1][:100], "url", bool(_COMMIT.search(plain)))
        elif found := _requirement(plain):
            yield found


def _pyproject(text: str) -> Iterator[Dependency]:
    data = tomllib.loads(text)
    project = data.get("project", {})
    groups = [(project.get("dependencies", []), False)]
    groups += [(group, True) for group in project.get("optional-dependencies", {}).values()]
    groups += [(group, True) for group in data.get("dependency-groups", {}).values()]
    for lines, dev in groups:
        for line in lines:
            found = _requirement(line, dev) if isinstance(line, str) else None
            if found:
                yield found
    poetry = data.get("tool", {}).get("poetry", {})
    yield from _table(poetry.get("dependencies", {}), False, skip="python")
    for group in poetry.get("group", {}).values():
        yield from _table(group.get("dependencies", {}), True)


def _table(table: Mapping[str, Any], dev: bool, skip: str = "") -> Iterator[Dependency]:
    """`name = "version"` or `name = {version = …}`, as in TOML and JSON manifests."""
    for name, value in table.items():
        if name == skip:
            continue
        wanted = value if isinstance(value, str) else str(value.get("version", value.get("rev", "")))
        bare = wanted.strip().removeprefix("==").removeprefix("=").strip()
        yield Dependency(name, wanted[:100], bool(_EXACT.match(bare)), dev)


def _pipfile(text: str) -> Iterator[Dependency]:
    data = tomllib.loads(text)
    for section, dev in (("packages", False), ("dev-packages", True)):
        for found in _table(data.get(section, {}), dev):
            yield Dependency(found.name, found.wanted, found.wanted.startswith("=="), dev)


def _package_json(text: str) -> Iterator[Dependency]:
    data = json.loads(text)
    for section in ("dependencies", "devDependencies", "optionalDependencies"):
        yield from _table(data.get(section) or {}, section == "devDependencies")


def _composer(text: str) -> Iterator[Dependency]:
    data = json.loads(text)
    for section in ("require", "require-dev"):
        for found in _table(data.get(section) or {}, section == "require-dev"):
            if found.name != "php" and not found.name.startswith("ext-"):
                yield found


def _cargo(text: str) -> Iterator[Dependency]:
    data = tomllib.loads(text)
    tables = [data, data.get("workspace", {}), *data.get("target", {}).values()]
    for table in tables:
        for section in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, value in table.get(section, {}).items():
                wanted = value if isinstance(value, str) else str(value.get("version", ""))
                # In Cargo a bare version is a range; only `=1.2.3` is exact.
                yield Dependency(name, wanted, wanted.startswith("="), section != "dependencies")


def _go_mod(text: str) -> Iterator[Dependency]:
    for line in re.sub(r"(?m)^\s*(require|replace|exclude|retract)\s*\(", r"\1 (", text).splitlines():
        match = re.match(r"^\s*(?:require\s+)?([\w.~-]+\.[\w./~-]+)\s+(v[\w.+-]+)", line)
        if match and "=>" not in line:
            yield Dependency(match[1], match[2], True)


def _xml(text: str) -> Xml.Element:
    """Parse XML but refuse document types: no entity is ever expanded."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a document type in a manifest")
    root = Xml.fromstring(text.encode())
    for element in root.iter():
        element.tag = str(element.tag).rsplit("}", 1)[-1]
    return root


def _pom(text: str) -> Iterator[Dependency]:
    for found in _xml(text).iter("dependency"):
        wanted = (found.findtext("version") or "").strip()
        name = f"{found.findtext('groupId')}:{found.findtext('artifactId')}"
        pinned = bool(_EXACT.match(wanted)) or wanted.startswith("${")
        yield Dependency(name, wanted, pinned, found.findtext("scope") == "test")


def _csproj(text: str) -> Iterator[Dependency]:
    root = _xml(text)
    for found in (*root.iter("PackageReference"), *root.iter("PackageVersion")):
        wanted = found.get("Version") or found.findtext("Version") or ""
        if found.get("Include"):
            exact = bool(_EXACT.match(wanted.strip("[]")))
            yield Dependency(str(found.get("Include")), wanted, exact)


def _gradle(text: str) -> Iterator[Dependency]:
    configurations = (
        r"(implementation|api|compileOnly|runtimeOnly|testImplementation|testRuntimeOnly|kapt|classpath)"
    )
    for match in re.finditer(
        configurations + r"\s*[( ]\s*['\"]([^'\":]+:[^'\":]+)(?::([^'\"]+))?['\"]", text
    ):
        wanted = match[3] or ""
        yield Dependency(match[2], wanted, bool(_EXACT.match(wanted)), match[1].startswith("test"))


def _gemfile(text: str) -> Iterator[Dependency]:
    for match in re.finditer(r"(?m)^\s*gem\s+['\"]([^'\"]+)['\"](?:\s*,\s*['\"]([^'\"]+)['\"])?", text):
        wanted = match[2] or ""
        yield Dependency(match[1], wanted, bool(_EXACT.match(wanted.removeprefix("=").strip())))


# pattern of the path's last part: (ecosystem, parser, lock files beside it or above)
_KINDS: tuple[tuple[str, str, Parser, tuple[str, ...]], ...] = (
    (r"requirements[\w.-]*\.txt|constraints[\w.-]*\.txt", "Python", _requirements_txt, ()),
    (r"pyproject\.toml", "Python", _pyproject, ("poetry.lock", "uv.lock", "pdm.lock", "requirements.txt")),
    (r"Pipfile", "Python", _pipfile, ("Pipfile.lock",)),
    (r"package\.json", "Node.js", _package_json,
     ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb", "bun.lock")),
    (r"go\.mod", "Go", _go_mod, ("go.sum",)),
    (r"Cargo\.toml", "Rust", _cargo, ("Cargo.lock",)),
    (r"pom\.xml", "Maven", _pom, ()),
    (r"build\.gradle(\.kts)?", "Gradle", _gradle, ("gradle.lockfile",)),
    (r".+\.(cs|fs|vb)proj|Directory\.Packages\.props", ".NET", _csproj, ("packages.lock.json",)),
    (r"Gemfile", "Ruby", _gemfile, ("Gemfile.lock",)),
    (r"composer\.json", "PHP", _composer, ("composer.lock",)),
)  # fmt: skip


def kind_of(path: str) -> tuple[str, Parser, tuple[str, ...]] | None:
    """Return ecosystem, parser and lock files, when the path is a manifest."""
    name = PurePosixPath(path).name
    for pattern, ecosystem, parser, locks in _KINDS:
        if re.fullmatch(pattern, name):
            return ecosystem, parser, locks
    return None


def lock_for(path: str, locks: tuple[str, ...], known: set[str]) -> str | None:
    """Return the lock file beside the manifest, or in a folder above (workspaces keep one for all)."""
    folder = PurePosixPath(path).parent
    for above in (folder, *folder.parents):
        for lock in locks:
            candidate = str(above / lock)
            if candidate in known:
                return candidate
    return None
