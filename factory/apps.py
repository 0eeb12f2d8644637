"""The shared kernel: it knows no run, no approval and no budget."""

from types import ModuleType

from factory.kernel.app_config import BaseAppConfig


def register(*modules: ModuleType) -> None:
    """Register what these modules define: lifecycles, events, permits, handlers, reconcilers, invariants."""
    for module in modules:
        for thing in list(vars(module).values()):
            for item in thing if isinstance(thing, tuple) else (thing,):
                _register(item)


def _register(item: object) -> None:
    from factory.evidence.auditor import Invariant, register_invariant
    from factory.kernel.events import Event, register_event
    from factory.kernel.lifecycle import Lifecycle, register_lifecycle
    from factory.kernel.permissions import Permit, register_permit
    from factory.kernel.reconciling import Reconciler, register_reconciler
    from factory.messaging.relay.handlers import Handler, register_handler

    match item:
        case Lifecycle():
            register_lifecycle(item)
        case Permit():
            register_permit(item)
        case Handler():
            register_handler(item)
        case Invariant():
            register_invariant(item)
        case type() if issubclass(item, Event) and item is not Event:
            register_event(item)
        case type() if issubclass(item, Reconciler) and item is not Reconciler:
            register_reconciler(item)


class FactoryConfig(BaseAppConfig):
    name = "factory"
    default = True

    def ready(self) -> None:
        from factory import permissions
        from factory.evidence import invariants, schema_guards
        from factory.evidence.anchors import checking
        from factory.kernel.models import webhook
        from factory.messaging.webhooks import events, restore
        from factory.messaging.webhooks import invariants as of_webhooks

        register(permissions, webhook, events, checking, invariants, schema_guards, of_webhooks)
        restore.register()
