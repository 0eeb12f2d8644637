"""What nobody may write, because each of these has gone around a rule somewhere before."""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.architecture.source import APPS, PACKAGES, ROOT, Source, called, calls, dotted, keywords, sources

KERNEL_OF_TRANSACTIONS = (
    "factory/kernel/tenancy.py",
    "factory/kernel/commanding.py",
    "factory/evidence/auditor.py",
    "factory/evidence/schema/readiness.py",
)
CLOCKS = {
    "timezone.now", "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today",
}  # fmt: skip
BUSINESS = ("commands", "operations", "selectors", "models", "states", "engine", "dispatch", "policy")


def found(places: Iterable[tuple[Source, ast.AST]]) -> list[str]:
    return [source.at(node) for source, node in places]


def business() -> Iterator[Source]:
    """Modules that decide: those rooms of the apps."""
    for source in sources():
        parts = source.path.with_suffix("").parts
        if source.is_in(*APPS) and any(room in parts for room in BUSINESS):
            yield source


def test_transactions_are_opened_by_the_kernel_alone() -> None:
    places = ((s, c) for s in sources() if not s.is_in(*KERNEL_OF_TRANSACTIONS) for c in calls(s, "atomic"))
    assert found(places) == []


def test_business_code_asks_the_database_for_the_time() -> None:
    places = (
        (source, node)
        for source in business()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and dotted(node.func) in CLOCKS
    )
    assert found(places) == []


def test_rows_are_locked_without_their_keys() -> None:
    """FOR UPDATE blocks everybody who inserts a child; FOR NO KEY UPDATE does not."""

    def spares_keys(call: ast.Call) -> bool:
        value = keywords(call).get("no_key")
        return isinstance(value, ast.Constant) and value.value is True

    places = ((s, c) for s in sources() for c in calls(s, "select_for_update") if not spares_keys(c))
    assert found(places) == []


IN_AN_ADMIN = {"__init__", "tables", "detail", "actions", "dashboard", "search", "project_of"}
PAGES_OF_THEIR_OWN = {"approvals": {"inbox"}, "notifications": {"preferences"}, "usage": {"explorer"}}


def test_every_admin_package_has_the_same_files() -> None:
    for app in APPS:
        names = {path.stem for path in (ROOT / app / "admin").iterdir() if path.stem != "__pycache__"}
        assert names <= IN_AN_ADMIN | PAGES_OF_THEIR_OWN.get(app, set()), f"{app}/admin"


IN_NO_JOB = (
    "factory/management",
    "factory/evidence/recovery.py",
    "factory/messaging/relay/delivery.py",
    "factory/messaging/relay/destinations.py",
    "factory/messaging/relay/loop.py",
    "factory/messaging/webhooks/sending.py",
    "runs/watch",
    "runs/worker",
    "config/launching",
)
"""What runs in other processes than a job's: the relay, the stream, workers, a terminal."""


def test_who_notes_every_fault_lets_the_end_of_a_job_s_time_through() -> None:
    """It is an `Exception` like others, raised anywhere: whoever went on would be killed in the next thing.

    `robust` of Django's `on_commit` goes on, too: only `factory.kernel.hints` runs hints after a commit.
    """

    def goes_on(tried: ast.Try) -> bool:
        spared = False
        for handler in tried.handlers:
            types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            caught = {dotted(each) if each else "BaseException" for each in types}
            reraised = isinstance(last := handler.body[-1], ast.Raise) and last.exc is None
            spared = spared or ("TimeIsUp" in caught and reraised)
            if caught & {"Exception", "BaseException"} and not reraised:
                return not spared
        return False

    places = [
        (source, node)
        for source in sources()
        if not source.is_in(*IN_NO_JOB)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Try) and goes_on(node)
    ]
    hooks = [
        (s, c) for s in sources() if not s.is_in("factory/kernel/hints.py") for c in calls(s, "on_commit")
    ]
    assert found(places) + found(hooks) == []


def test_no_state_is_set_past_its_transition() -> None:
    """`.update(state=…)`, and any other assignment of a state from outside."""
    updates = ((s, c) for s in sources() for c in calls(s, "update") if "state" in keywords(c))
    bulk = ((s, c) for s in sources() for c in calls(s, "bulk_update"))
    assert found(updates) + found(bulk) == []


def test_many_rows_are_written_at_once_by_the_recorder_alone() -> None:
    """`update_rows` journals nothing: `record_many` is what checks and journals what it writes."""
    places = (
        (s, c)
        for s in sources()
        if not s.is_in("factory/kernel/recording.py")
        for c in calls(s, "update_rows")
    )
    assert found(places) == []


def test_commands_and_operations_save_named_fields_only() -> None:
    places = (
        (source, call)
        for source in business()
        for call in calls(source, "save")
        if isinstance(call.func, ast.Attribute) and "update_fields" not in keywords(call)
    )
    assert found(places) == []


def test_messages_are_sent_by_the_relay_alone() -> None:
    senders = ("delay", "apply_async", "send_task")
    places = (
        (source, node)
        for source in sources()
        if not source.is_in("factory/messaging/relay", *(f"{app}/handlers.py" for app in APPS))
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and called(node) in senders
    )
    assert found(places) == []


def test_nothing_happens_behind_a_save() -> None:
    """Django's signals run code that no reader of a command can see."""
    banned = ("django.db.models.signals", "django.dispatch")
    places = (
        (source, node)
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(banned)
    )
    assert found(places) == []


def test_a_link_of_a_page_does_not_rest_on_the_address_that_shows_it() -> None:
    """A refused act shows a page at an address that answers to POST alone: `?tab=…` leads nowhere there."""
    places = (ROOT / package for package in PACKAGES)
    templates = [file for place in places for file in place.rglob("*.html")]
    assert len(templates) > 50
    assert [
        f"{file.relative_to(ROOT)}: {link}"
        for file in templates
        for link in re.findall(r"""(?:href|action|formaction|src)=["'](?:\?|["'])""", file.read_text())
    ] == []


def test_no_library_mixin_moves_states_in_the_admin() -> None:
    assert [s.name for s in sources() if "FSMAdminMixin" in s.text or "FSMTransitionMixin" in s.text] == []


def test_secrets_are_compared_and_made_by_the_right_tools() -> None:
    places = (
        (source, node)
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and dotted(node.func) in ("random.choice", "hashlib.md5", "hashlib.sha1")
    )
    assert found(places) == []


DECLARED_BESIDE_THE_PAGE = ("config", "factory/console")
"""Pages say what they show as `admin.register` does; entry points start what they are for."""


def test_importing_a_module_does_nothing() -> None:
    """What an app registers is named in its `AppConfig.ready()`: no import that looks unused keeps a rule."""
    places = (
        (source, node)
        for source in sources()
        if not source.is_in(*DECLARED_BESIDE_THE_PAGE)
        and not {"admin", "templatetags"} & set(source.path.parts)
        for node in source.tree.body
        if isinstance(node, ast.For | ast.While | ast.With)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    )
    assert found(places) == []


INTERFACES = ("factory/console", "config", "notifications/channels", "factory/identity/accounts.py")
"""Mail leads to pages, too, and so does the link that is in it."""


def test_nothing_below_the_interfaces_knows_the_addresses_of_the_console() -> None:
    """What is told below names a page and a key at most: the console alone knows where that is."""
    places = (
        (source, node)
        for source in sources()
        if not source.is_in(*INTERFACES) and not {"admin", "templatetags"} & set(source.path.parts)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("admin:")
    )
    assert found(places) == []
