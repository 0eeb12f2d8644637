"""What axe-core finds wrong with a page, in either theme: findings that keep somebody from using it."""

from axe_playwright_python.sync_playwright import Axe

from tests.browser.visitor import Visitor

GRAVE = ("serious", "critical")
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
DARK = "document.documentElement.classList.toggle('dark', {})"


def findings(visitor: Visitor) -> list[str]:
    """Serious and critical ones; by night only what a theme changes, which is contrast."""
    found = _run(visitor, None)
    was_dark = visitor.measure("document.documentElement.classList.contains('dark')")
    visitor.measure(DARK.format("false" if was_dark else "true"))
    found += _run(visitor, CONTRAST)
    visitor.measure(DARK.format("true" if was_dark else "false"))
    return found


def _run(visitor: Visitor, options: dict[str, list[str]] | None) -> list[str]:
    usual = {"resultTypes": ["violations"]}
    violations = Axe().run(visitor.page, options=options or usual).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:160]}"
        for one in violations
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]
