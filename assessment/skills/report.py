"""The report as Markdown: findings first, then the figures behind them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
BAR = 24
MARKS = {"high": "🔴 high", "medium": "🟠 medium", "low": "🟡 low"}


def markdown(report: Facts) -> str:
    """Return the whole report. What comes from the repository is data, and is quoted as such."""
    parts = [
        _head(report),
        _summary(report),
        _findings(report["findings"]),
        _languages(report["inventory"]),
        _history(report["history"]),
        _hotspots(report["history"], report["code"]),
        _complexity(report["code"]),
        _dependencies(report["dependencies"]),
        _secrets(report["code"]),
        _upkeep(report["inventory"]),
        _method(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def text(value: object) -> str:
    """Return words from elsewhere as one line that cannot become markup, a table cell or a link."""
    line = " ".join(str(value).split())
    for mark in "\\`*_[]<>|#":
        line = line.replace(mark, "\\" + mark)
    return line


def code(value: object) -> str:
    """Return a path or a name as code; a backtick in it is replaced."""
    line = " ".join(str(value).split()).replace("`", "'").replace("|", "¦")
    return f"`{line}`" if line else ""


def bar(value: float, most: float) -> str:
    """Draw a bar of block characters."""
    eighths = round(BAR * 8 * value / most) if most else 0
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Draw a table whose columns are right-aligned when the head ends with a colon."""
    names = [name.rstrip(":") for name in head]
    rules = ["---:" if name.endswith(":") else "---" for name in head]
    lines = [names, rules, *[[str(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _count(number: int, noun: str) -> str:
    return f"{_number(number)} {noun if number == 1 else noun + 's'}"


def _number(value: float) -> str:
    return f"{value:,}".replace(",", " ")


def _size(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def _head(report: Facts) -> str:
    found, history = report["inventory"], report["history"]
    lines = [
        f"# Assessment of {text(report['name'])}",
        f"Commit {code(found['commit'][:12])} of {found['committedAt'][:10]}: {text(found['subject'])}",
    ]
    lines += [f"> Reviewer asked: “{text(note)}”" for note in report["reviewerNotes"]]
    lines.append(
        f"**{_count(found['files'], 'file')}, {_count(found['code'], 'line')} of code outside tests, "
        f"{_count(history['commits'], 'commit')} by {_number(history['authors'])} "
        f"{'person' if history['authors'] == 1 else 'people'} over {_span(history['ageDays'])}.**"
    )
    return "\n\n".join(lines)


def _span(days: int) -> str:
    if days < 60:
        return _count(max(days, 1), "day")
    return f"{days // 30} months" if days < 730 else f"{days / 365.25:.1f} years"


def _summary(report: Facts) -> str:
    summary = report["summary"]
    if not summary:
        return ""
    quoted = "\n".join("> " + text(line) if line.strip() else ">" for line in summary["text"].splitlines())
    return f"## Summary\n\nWritten by the model {code(summary['model'])} from the figures below.\n\n{quoted}"


def _findings(findings: Sequence[Facts]) -> str:
    if not findings:
        return "## What to look at first\n\nNothing stands out."
    lines = ["## What to look at first"]
    for number, item in enumerate(findings, start=1):
        lines.append(
            f"{number}. **{text(item['title'])}** ({MARKS[item['severity']]}): {text(item['evidence'])}.  "
        )
        lines[-1] += f"\n   {text(item['why'])}"
        if item["where"]:
            lines[-1] += "  \n   " + ", ".join(code(place) for place in item["where"])
    return lines[0] + "\n\n" + "\n".join(lines[1:])


def _languages(found: Facts) -> str:
    most = max((item["code"] for item in found["languages"]), default=0)
    rows = [
        (
            text(item["language"]),
            _number(item["files"]),
            _number(item["code"]),
            _number(item["comment"]),
            bar(item["code"], most),
        )
        for item in found["languages"][:12]
    ]
    largest = [(code(item["path"]), _size(item["bytes"])) for item in found["largestFiles"][:8]]
    return "\n\n".join(
        (
            "## What it is made of",
            table(("language", "files:", "code:", "comment:", "share"), rows),
            f"{_size(found['bytes'])} in all; {_number(found['binaryFiles'])} binary and "
            f"{_number(found['vendoredFiles'])} vendored or generated files are not counted.",
            "Largest files:",
            table(("file", "size:"), largest),
        )
    )


def _history(history: Facts) -> str:
    months = history["activity"]
    most = max(month["commits"] for month in months)
    rows = [(month["month"], month["commits"], bar(month["commits"], most)) for month in months]
    people = [
        (text(item["name"]), _number(item["commits"]), _percent(item["share"]))
        for item in history["topAuthors"]
    ]
    factor = history["busFactor"]
    known = "One person has" if factor == 1 else f"{factor} people together have"
    return "\n\n".join(
        (
            "## How it came to be",
            f"From {history['firstAt'][:10]} to {history['lastAt'][:10]}. {known} made half of all commits."
            + (" The copy that was assessed has only part of the history." if history["shallow"] else ""),
            table(("month", "commits:", ""), rows),
            table(("author", "commits:", "share:"), people),
        )
    )


def _percent(share: float) -> str:
    return "under 1 %" if share < 0.01 else f"{share * 100:.0f} %"


def _hotspots(history: Facts, found: Facts) -> str:
    worst = {item["path"]: item["worst"] for item in found["byFile"]}
    rows = [
        (
            code(item["path"]),
            item["commits"],
            _number(item["lines"]),
            item["authors"],
            worst.get(item["path"], "–"),
        )
        for item in history["hotspots"][:12]
    ]
    if not rows:
        return ""
    window = history["window"]
    return "\n\n".join(
        (
            "## Where it changes most",
            f"In the {_number(window['commits'])} commits since {window['since'][:10]}.",
            table(("file", "commits:", "lines changed:", "authors:", "worst complexity:"), rows),
        )
    )


def _complexity(found: Facts) -> str:
    if not found["functions"]:
        return ""
    paths, long = found["complexity"], found["length"]
    most = max(item["functions"] for item in found["distribution"])
    spread = [
        (item["ccn"].replace("-", "–"), _number(item["functions"]), bar(item["functions"], most))
        for item in found["distribution"]
    ]
    counted = f"{_count(found['functions'], 'function')} in {_count(found['analysedFiles'], 'file')}."
    middle = f"Outside tests: median complexity {paths['median']:g}, nine in ten at most {paths['p90']:g},"
    parts = [
        "## How complex it is",
        f"{counted} {middle} the highest {paths['max']:g}; median length {long['median']:g} lines.",
        table(("paths through a function", "functions outside tests:", ""), spread),
    ]
    if found["complexFunctions"]:
        rows = map(_function, found["complexFunctions"][:12])
        parts.append(table(("function", "where", "complexity:", "lines:"), rows))
    return "\n\n".join(parts)


def _function(item: Facts) -> tuple[object, ...]:
    return code(item["name"]), code(f"{item['path']}:{item['line']}"), item["ccn"], item["nloc"]


def _dependencies(found: Facts) -> str:
    if not found["manifests"]:
        return "## What it depends on\n\nNo manifest of a common ecosystem."
    rows = [
        (
            code(item["path"]),
            text(item["ecosystem"]),
            item["dependencies"],
            item["pinned"],
            code(item["lockFile"]) if item["lockFile"] else "–",
        )
        for item in found["manifests"][:20]
    ]
    return "## What it depends on\n\n" + table(
        ("manifest", "ecosystem", "dependencies:", "pinned:", "lock file"), rows
    )


def _secrets(found: Facts) -> str:
    if not found["secrets"]:
        return ""
    rows = [
        (
            text(item["kind"]),
            code(f"{item['path']}:{item['line']}"),
            code(item["fingerprint"]),
            "sure" if item["certain"] else "likely",
            "yes" if item["test"] else "no",
        )
        for item in found["secrets"][:15]
    ]
    head = ("kind", "where", "fingerprint", "", "in tests")
    note = "The values are stored nowhere; the same fingerprint is the same value."
    return "\n\n".join(("## What looks like a secret", note, table(head, rows)))


def _upkeep(found: Facts) -> str:
    docs, licence, tests = found["docs"], found["licence"], found["tests"]
    systems = ", ".join(f"{text(item['system'])} ({code(item['path'])})" for item in found["ci"])
    ratio = "–" if tests["ratio"] is None else f"{tests['ratio']:.2f} lines of test for each line of code"
    rows: list[tuple[object, object]] = [
        ("licence", f"{text(licence['spdx'])} ({code(licence['file'])})" if licence else "none"),
        ("continuous integration", systems or "none"),
        ("tests", f"{_count(tests['files'], 'file')}, {ratio}"),
        (
            "README",
            f"{code(docs['readme'])}, {_number(docs['readmeWords'])} words" if docs["readme"] else "none",
        ),
    ]
    names = (("contributing", "CONTRIBUTING"), ("changelog", "change log"), ("security", "security policy"))
    rows += [(name, code(docs[key]) if docs[key] else "none") for key, name in names]
    return "## How it is kept\n\n" + table(("", ""), rows)


def _method(report: Facts) -> str:
    found = report["inventory"]
    return (
        "## How this was made\n\n"
        f"Run {code(report['runId'])} looked at commit {code(found['commit'])} in git's object store and "
        "ran nothing of it. Lines are counted by language, complexity is the cyclomatic complexity of each "
        "function, churn is counted without sweeping commits and vendored files. All figures are in "
        "`report.json`."
    )
