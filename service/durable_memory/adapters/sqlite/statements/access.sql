-- Access events. Sets of names come as JSON arrays.

-- name: find_events
SELECT event.*
FROM json_each(:event_ids) AS wanted
CROSS JOIN access_events AS event
WHERE event.namespace_key = :namespace_key AND event.event_id = wanted.value;

-- name: list_events
SELECT event.*
FROM access_events AS event
WHERE event.namespace_key = :namespace_key
    AND event.event_id > :after_event_id
    AND (:kind IS NULL OR event.kind = :kind)
ORDER BY event.event_id
LIMIT :limit;

-- name: add_event
INSERT INTO access_events (namespace_key, event_id, kind, session_id, context_id, node_id, revision, caller, at)
VALUES (:namespace_key, :event_id, :kind, :session_id, :context_id, :node_id, :revision, :caller, :at);

-- name: usage
SELECT
    node_id,
    revision,
    count(*) FILTER (WHERE kind = 1) AS admissions,
    count(*) FILTER (WHERE kind = 2) AS uses,
    max(at) FILTER (WHERE kind = 1) AS last_admitted_at,
    max(at) FILTER (WHERE kind = 2) AS last_used_at
FROM access_events
WHERE namespace_key = :namespace_key
    AND (node_id, revision) > (:after_node_id, :after_revision)
GROUP BY node_id, revision
ORDER BY node_id, revision
LIMIT :limit;

-- name: usage_of_nodes
SELECT
    event.node_id,
    event.revision,
    count(*) FILTER (WHERE event.kind = 1) AS admissions,
    count(*) FILTER (WHERE event.kind = 2) AS uses,
    max(event.at) FILTER (WHERE event.kind = 1) AS last_admitted_at,
    max(event.at) FILTER (WHERE event.kind = 2) AS last_used_at
FROM access_events AS event
WHERE event.namespace_key = :namespace_key
    AND event.node_id IN (SELECT value FROM json_each(:node_ids))
    AND (event.node_id, event.revision) > (:after_node_id, :after_revision)
GROUP BY event.node_id, event.revision
ORDER BY event.node_id, event.revision
LIMIT :limit;
