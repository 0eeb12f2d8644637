"""What to look at first: judgements, each with its evidence and why it matters. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Facts = Mapping[str, Any]
ORDER = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True)
class AssessmentFinding:
    """One thing that a maintainer should know."""

    severity: str
    title: str
    evidence: str
    why: str
    where: tuple[str, ...] = ()


def judge(inventory: Facts, history: Facts, code: Facts, dependencies: Facts) -> list[dict[str, Any]]:
    """Return all findings, the gravest first."""
    found = [
        *_secrets(code),
        *_hot_and_complex(history, code),
        *_complex(code),
        *_people(history),
        *_tests(inventory),
        *_loose(dependencies),
        *_house_keeping(inventory),
        *_bulk(inventory, code),
    ]
    found.sort(key=lambda finding: ORDER[finding.severity])
    return [{**asdict(finding), "where": list(finding.where)} for finding in found]


def _secrets(code: Facts) -> Iterator[AssessmentFinding]:
    own = [item for item in code["secrets"] if not item["test"]]
    for certain, severity in ((True, "high"), (False, "medium")):
        some = [item for item in own if item["certain"] is certain]
        if some:
            kinds = ", ".join(sorted({item["kind"] for item in some}))
            yield AssessmentFinding(
                severity,
                f"{_count(len(some), 'line')} that {'look' if len(some) > 1 else 'looks'} like a credential",
                kinds,
                "A credential in the history is there for whoever has a clone: revoke it, then remove it.",
                tuple(f"{item['path']}:{item['line']}" for item in some[:8]),
            )


def _hot_and_complex(history: Facts, code: Facts) -> Iterator[AssessmentFinding]:
    worst = {item["path"]: item["worst"] for item in code["byFile"]}
    hot = [
        item for item in history["hotspots"][:15] if worst.get(item["path"], 0) > 15 and item["commits"] >= 3
    ]
    if hot:
        hardest = max(hot, key=lambda item: worst[item["path"]])
        yield AssessmentFinding(
            "high" if worst[hardest["path"]] > 30 else "medium",
            f"{_count(len(hot), 'file')} that {'change' if len(hot) > 1 else 'changes'} often and "
            f"{'are' if len(hot) > 1 else 'is'} complex",
            f"{hardest['path']}: {hardest['commits']} commits, complexity {worst[hardest['path']]}",
            "Where complex code changes often, most defects are made: simplify or test these first.",
            tuple(item["path"] for item in hot[:8]),
        )


def _complex(code: Facts) -> Iterator[AssessmentFinding]:
    hard = [item for item in code["complexFunctions"] if item["ccn"] > 25 and not item["test"]]
    if hard:
        top = hard[0]
        yield AssessmentFinding(
            "medium",
            f"{_count(len(hard), 'function')} with more than 25 paths",
            f"{top['name']} has {top['ccn']}",
            "More paths than anybody can hold in mind, or test.",
            tuple(f"{item['path']}:{item['line']} {item['name']}" for item in hard[:8]),
        )


def _people(history: Facts) -> Iterator[AssessmentFinding]:
    if history["busFactor"] == 1 and history["commits"] >= 50 and history["authors"] > 1:
        top = history["topAuthors"][0]
        yield AssessmentFinding(
            "medium",
            "One person wrote most of it",
            f"{round(top['share'] * 100)} % of {history['commits']} commits by {top['name']}",
            "If that person is away, nobody knows most of the code from having written it.",
        )


def _tests(inventory: Facts) -> Iterator[AssessmentFinding]:
    ratio = inventory["tests"]["ratio"]
    if ratio is not None and ratio < 0.15 and inventory["code"] > 200:
        yield AssessmentFinding(
            "medium",
            "Hardly any tests" if inventory["tests"]["files"] else "No tests were found",
            f"{inventory['tests']['code']} lines of test code for {inventory['code']} lines of code",
            "A change cannot be checked without people trying everything by hand.",
        )


def _loose(dependencies: Facts) -> Iterator[AssessmentFinding]:
    loose = [
        item
        for item in dependencies["manifests"]
        if not item["test"] and item["lockFile"] is None and item["dependencies"] > item["pinned"]
    ]
    if loose:
        open_ended = sum(item["dependencies"] - item["pinned"] for item in loose)
        yield AssessmentFinding(
            "medium",
            f"{_count(open_ended, 'dependency', 'dependencies')} neither pinned nor locked",
            "; ".join(item["unpinned"][0] for item in loose[:4] if item["unpinned"]),
            "Two builds of one commit may get different code, and a bad release arrives by itself.",
            tuple(item["path"] for item in loose[:8]),
        )
    broken = [item["path"] for item in dependencies["manifests"] if item["error"] and not item["test"]]
    if broken:
        why = "Tools that read it may see no dependencies at all."
        yield AssessmentFinding("low", "A manifest that cannot be parsed", broken[0], why, tuple(broken[:8]))


def _house_keeping(inventory: Facts) -> Iterator[AssessmentFinding]:
    licence = inventory["licence"]
    if licence is None:
        yield AssessmentFinding(
            "medium", "No licence", "no licence file in the root", "Without one nobody may use it."
        )
    elif licence["spdx"] == "unknown":
        why = "A licence of one's own has to be read by a lawyer of each user."
        yield AssessmentFinding("low", "A licence that is none of the common ones", licence["file"], why)
    if not inventory["ci"]:
        why = "What no machine checks at each change is checked when somebody remembers."
        yield AssessmentFinding(
            "medium", "No continuous integration", "no configuration of a common CI system", why
        )
    if inventory["docs"]["readme"] is None:
        yield AssessmentFinding(
            "medium", "No README", "no README in the root", "A newcomer does not learn what it is for."
        )
    elif inventory["docs"]["readmeWords"] < 60:
        words = f"{inventory['docs']['readmeWords']} words"
        yield AssessmentFinding(
            "low", "A very short README", words, "A newcomer does not learn how to start."
        )
    if inventory["docs"]["security"] is None and inventory["code"] > 5000:
        why = "Who finds a hole does not know whom to tell in private."
        yield AssessmentFinding("low", "No security policy", "no SECURITY file", why)


def _bulk(inventory: Facts, code: Facts) -> Iterator[AssessmentFinding]:
    large = [item for item in inventory["largestFiles"] if item["bytes"] > 5 * 1024 * 1024]
    if large:
        evidence = f"{large[0]['path']}: {large[0]['bytes'] // 1024 // 1024} MiB"
        why = "Every clone carries it for ever."
        where = tuple(item["path"] for item in large[:8])
        yield AssessmentFinding("low", f"{_count(len(large), 'file')} over 5 MiB", evidence, why, where)
    long = [item for item in code["longFunctions"] if item["nloc"] > 150 and not item["test"]]
    if long:
        evidence = f"{long[0]['name']} has {long[0]['nloc']} lines"
        where = tuple(f"{item['path']}:{item['line']} {item['name']}" for item in long[:8])
        yield AssessmentFinding(
            "low", f"{_count(len(long), 'function')} of more than 150 lines", evidence,
            "Long functions do several things; each is harder to find and to test.", where,
        )  # fmt: skip


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
