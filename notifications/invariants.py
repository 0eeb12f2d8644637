"""What must hold of notifications at any moment."""

from factory.evidence.auditor import invariant


@invariant("N1", "Nobody was asked, or reminded, to decide on what they asked for or wrote")
def nobody_asked_about_their_own() -> str:
    return """
        SELECT n.tenant_id, 'notification:' || n.id, n.subject || ' was asked to decide on their own request'
        FROM notifications_notification n
        JOIN notifications_notice t ON t.id = n.notice_id
        JOIN approvals_approvalrequest a ON a.id = t.approval_id
        WHERE t.kind IN ('requested', 'expiring')
          AND n.subject IN (a.requested_by, a.requester_person, a.author_person)
    """


@invariant("N2", "Each message is for its channel's owner, within its notice's scope, and said once")
def within_its_scope() -> str:
    return """
        SELECT n.tenant_id, 'notification:' || n.id, 'goes to another''s channel, or out of its scope'
        FROM notifications_notification n
        JOIN notifications_notice t ON t.id = n.notice_id
        LEFT JOIN notifications_channel c ON c.id = n.channel_id
        LEFT JOIN approvals_approvalrequest a ON a.id = t.approval_id
        WHERE n.tenant_id <> t.tenant_id OR n.project_id IS DISTINCT FROM t.project_id
           OR c.subject <> n.subject OR c.tenant_id <> n.tenant_id
           OR a.tenant_id <> t.tenant_id OR (a.id IS NOT NULL AND a.project_id IS DISTINCT FROM t.project_id)
        UNION ALL
        SELECT tenant_id, 'notice:' || approval_id, kind || ' was told ' || count(*) || ' times'
        FROM notifications_notice WHERE approval_id IS NOT NULL
        GROUP BY tenant_id, approval_id, kind HAVING count(*) > 1
        UNION ALL
        SELECT tenant_id, 'notification:' || notice_id, subject || ' was told ' || count(*) || ' times'
        FROM notifications_notification
        GROUP BY tenant_id, notice_id, subject, channel_id HAVING count(*) > 1
    """


@invariant("N3", "A reminder came in the last quarter of a request's time, before its end")
def reminded_in_time() -> str:
    return """
        SELECT r.tenant_id, 'notice:' || r.id, 'the reminder came at ' || r.made_at
        FROM notifications_notice r
        JOIN notifications_notice t ON t.approval_id = r.approval_id AND t.kind = 'requested'
        JOIN approvals_approvalrequest a ON a.id = r.approval_id
        WHERE r.kind = 'expiring' AND (r.made_at < t.remind_at OR r.made_at >= a.expires_at)
    """
