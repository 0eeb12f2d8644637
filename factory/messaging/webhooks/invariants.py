"""What must hold of webhooks at any moment."""

from factory.evidence.auditor import invariant


@invariant("C5", "No webhook was sent an event before an earlier one of its stream")
def sent_in_order() -> str:
    return """
        SELECT l.tenant_id, l.subscription_id || ':' || l.stream_id || '#' || l.sequence,
               'sent before an earlier event of its stream'
        FROM factory_webhookdelivery l WHERE l.delivered_at IS NOT NULL AND EXISTS (
            SELECT 1 FROM factory_webhookdelivery e
            WHERE e.subscription_id = l.subscription_id AND e.stream_id = l.stream_id
            AND (e.sequence, e.position) < (l.sequence, l.position)
            AND (e.delivered_at IS NULL OR e.delivered_at > l.delivered_at))
    """


@invariant("C6", "A webhook is offered events of its own scope alone, and each delivery is its event's")
def sent_within_scope() -> str:
    return """
        SELECT d.tenant_id, d.id, 'not an event of this subscription''s scope'
        FROM factory_webhookdelivery d
        JOIN factory_webhooksubscription s ON s.id = d.subscription_id
        JOIN factory_outboxevent e ON e.id = d.event_id
        WHERE d.tenant_id <> s.tenant_id OR e.tenant_id <> s.tenant_id
           OR (d.stream_id, d.sequence, d.position, d.topic)
              IS DISTINCT FROM (e.stream_id, e.sequence, e.position, e.topic)
           OR (s.project_id IS NOT NULL AND e.stream_id <> s.id
               AND e.project_id IS DISTINCT FROM s.project_id)
    """
