"""The small pure parts: lines, licences, manifests, secrets."""

import pytest

from assessment.skills.compose import clean
from assessment.skills.languages import LANGUAGES, LineCounts, count_lines, is_test, is_vendored, language_of
from assessment.skills.licences import identify
from assessment.skills.manifests import kind_of
from assessment.skills.secretscan import scan


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("Python", '"""A\nB"""\n\nx = 1  # c\n# d\n', LineCounts(1, 3, 1)),
        ("JavaScript", "/* a\n b */\nf(); // c\n\n// d\n", LineCounts(1, 3, 1)),
        ("C", 'char *s = "/*";\nint x; /* a\nb */\nint y;\n', LineCounts(3, 1, 0)),
        ("HTML", "<p>\n<!-- a\nb -->\n</p>\n", LineCounts(2, 2, 0)),
        ("SQL", "-- a\nselect 1;\n", LineCounts(1, 1, 0)),
        ("JSON", '{"a": "# b"}\n', LineCounts(1, 0, 0)),
    ],
)
def test_counts_lines(name: str, text: str, lines: LineCounts) -> None:
    assert count_lines(LANGUAGES[name], text) == lines


@pytest.mark.parametrize(
    ("path", "content", "name"),
    [
        ("a/b.PY", b"", "Python"),
        ("a.h", b"", "C"),
        ("a.mm", b"", "Objective-C"),
        (".bashrc", b"", "Shell"),
        ("a.mts", b"", "TypeScript"),
        ("b/init.EL", b"", "Lisp"),
        ("setup.cfg", b"", "INI"),
        ("tsconfig.jsonc", b"", "JSON"),
        ("a.cfg/run", b"#!/bin/bash\n", "Shell"),
        ("Makefile", b"", "Make"),
        ("Dockerfile.dev", b"", "Docker"),
        ("run", b"#!/usr/bin/env -S python3.12 -u\n", "Python"),
        ("run", b"#!/bin/bash\n", "Shell"),
        ("notes", b"hello", None),
        ("a.xyz", b"", None),
    ],
)
def test_knows_languages(path: str, content: bytes, name: str | None) -> None:
    found = language_of(path, content)
    assert (found.name if found else None) == name


def test_knows_tests_and_foreign_code() -> None:
    assert all(
        map(is_test, ["tests/a.py", "a/test_b.py", "x_test.go", "a.spec.ts", "src/test/java/ATest.java"])
    )
    assert not any(map(is_test, ["contest.py", "latest.go", "src/attest.py"]))
    assert all(
        map(is_vendored, ["vendor/a.go", "web/node_modules/x.js", "a.min.js", "yarn.lock", "p_pb2.py"])
    )
    assert not any(map(is_vendored, ["src/vendors.py", "lockfile.py"]))


@pytest.mark.parametrize(
    ("text", "spdx"),
    [
        ("Apache License\n Version 2.0, January 2004", "Apache-2.0"),
        ("GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "AGPL-3.0"),
        ("Redistribution and use in source and binary forms … Neither the name of", "BSD-3-Clause"),
        ("SPDX-License-Identifier: MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("Be nice.", None),
    ],
)
def test_knows_licences(text: str, spdx: str | None) -> None:
    assert identify(text) == spdx


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        (
            "requirements-dev.txt",
            "a==1.0 # x\n-r b.txt\nb>=2\nc[x]==3.* ; python_version<'3'\n",
            ["a!", "b", "c"],
        ),
        ("requirements.txt", "pytz==2004d\nold=>1\nnot a line\n", ["pytz", "old"]),
        (
            "pyproject.toml",
            "[project]\ndependencies = ['a==1', 'b']\n[dependency-groups]\nd = ['c==2']",
            ["a!", "b", "c!"],
        ),
        (
            "pyproject.toml",
            "[tool.poetry.dependencies]\npython='^3'\na='1.2.3'\nb={version='^1'}",
            ["a!", "b"],
        ),
        ("Pipfile", "[packages]\na='==1'\nb='*'", ["a!", "b"]),
        (
            "package.json",
            '{"dependencies":{"a":"1.0.0","b":"^1"},"devDependencies":{"c":"~2"}}',
            ["a!", "b", "c"],
        ),
        (
            "go.mod",
            "module x.y/z\nrequire a.b/c v1.0.0\nrequire (\n\td.e/f v2.0.0 // indirect\n)\n",
            ["a.b/c!", "d.e/f!"],
        ),
        (
            "Cargo.toml",
            "[dependencies]\na='1'\nb={version='=1.2'}\n[dev-dependencies]\nc='2'",
            ["a", "b!", "c"],
        ),
        (
            "pom.xml",
            '<project xmlns="u"><dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId>'
            "<version>1.2</version></dependency></dependencies></project>",
            ["g:a!"],
        ),
        ("build.gradle.kts", 'implementation("g:a:1.2")\ntestImplementation("g:b:1.+")\n', ["g:a!", "g:b"]),
        (
            "App.csproj",
            '<Project><ItemGroup><PackageReference Include="A" Version="1.2.3"/></ItemGroup></Project>',
            ["A!"],
        ),
        ("Gemfile", "gem 'a', '1.2'\ngem 'b', '~> 1'\ngem 'c'\n", ["a!", "b", "c"]),
        ("composer.json", '{"require":{"php":"^8","v/a":"1.2.3","v/b":"^1"}}', ["v/a!", "v/b"]),
    ],
)
def test_reads_manifests(path: str, text: str, wanted: list[str]) -> None:
    kind = kind_of("some/folder/" + path)
    assert kind is not None
    assert [found.name + "!" * found.pinned for found in kind[1](text)] == wanted


CERTAIN = {
    "AWS access key": "AKIA" + "Q3EGT7WZN5YD2MXK",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "Slack token": "xoxb-" + "1234567890-abcdefghij",
    "Google API key": "AIza" + "Sy" * 17 + "x",
    "Stripe key": "sk_live_" + "aB3" * 8,
    "npm token": "npm_" + "aB3d" * 9,
}


@pytest.mark.parametrize("kind", sorted(CERTAIN))
def test_finds_what_is_surely_a_secret(kind: str) -> None:
    (found,) = scan("a.py", f'ok = 1\nkey = "{CERTAIN[kind]}"\n')
    assert (found.kind, found.line, found.certain) == (kind, 2, True)
    assert CERTAIN[kind] not in str(found.shown())


def test_finds_what_is_likely_one() -> None:
    text = (
        'db = "postgres://app:'
        + "Xk9vQ2mZ7p"
        + '@db.internal/x"\napi_key: "'
        + "f4Kq9Zr2Lw8Yx3Vb7Nc1"
        + '"\n'
    )
    assert [found.kind for found in scan("a.py", text)] == ["password in a URL", "assigned credential"]


@pytest.mark.parametrize(
    "line",
    [
        'password = "changeme-please-now1"',
        'token = os.environ["SERVICE_TOKEN"]',
        'secret_key = "${SECRET_KEY_FROM_VAULT}"',
        "AKIAIOSFODNN7EXAMPLE",
        'url = "https://user:password@host/"',
        'api_key = "aaaaaaaaaaaaaaaaaaaaaaaa"',
        'token_type = "urn:ietf:params:oauth"',
    ],
)
def test_leaves_examples_alone(line: str) -> None:
    assert scan("a.py", line) == []


def test_the_same_value_has_the_same_fingerprint_and_another_has_not() -> None:
    first, second = CERTAIN["GitHub token"], CERTAIN["npm token"]
    marks = [scan("a", f'"{value}"')[0].fingerprint for value in (first, first, second)]
    assert marks[0] == marks[1] != marks[2]


def test_what_would_hide_in_a_diff_is_taken_out() -> None:
    assert clean("a\tb\n\u202ec\0\r\u2066d\x9be\U0001f600ä") == "a\tb\ncde\U0001f600ä"
