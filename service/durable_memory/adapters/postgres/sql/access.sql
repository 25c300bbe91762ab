-- fragment: event
event_id, kind, session_id, context_id, node_id, revision, caller, at

-- name: events_by_id
-- index: access_event_pkey
SELECT {event}
FROM access_event
WHERE namespace_key = $1 AND event_id = ANY ($2::text[]);

-- name: head_and_events
-- Where the namespace stands, once per event that is there, or once without any.
-- index: namespace_pkey
-- index: access_event_pkey
SELECT namespace.history_id, namespace.revision, namespace.chain_digest, namespace.node_count,
       namespace.active_count, namespace.active_bytes, namespace.session_revision,
       access_event.event_id, access_event.kind, access_event.session_id, access_event.context_id,
       access_event.node_id, access_event.revision AS of_revision, access_event.caller, access_event.at
FROM namespace
LEFT JOIN access_event ON access_event.namespace_key = $1 AND access_event.event_id = ANY ($2::text[])
WHERE namespace.namespace_key = $1;

-- name: list_events
-- index: access_event_pkey
SELECT {event}
FROM access_event
WHERE namespace_key = $1 AND event_id > $2 AND ($3::smallint IS NULL OR kind = $3)
ORDER BY event_id LIMIT $4;

-- name: usage
-- Events per node revision, in order, so that a page ends the scan.
-- index: access_event_node
SELECT node_id, revision,
       count(*) FILTER (WHERE kind = 1) AS admissions,
       count(*) FILTER (WHERE kind = 2) AS uses,
       max(at) FILTER (WHERE kind = 1) AS last_admitted_at,
       max(at) FILTER (WHERE kind = 2) AS last_used_at
FROM access_event
WHERE namespace_key = $1 AND (node_id, revision) > ($3, $4)
  AND (cardinality($2::text[]) = 0 OR node_id = ANY ($2::text[]))
GROUP BY node_id, revision
ORDER BY node_id, revision LIMIT $5;

-- name: write_access
-- Runs as they are now, contexts and events that are new, and the record of the request that was claimed for them.
-- The count tells whether somebody else was first with an event.
WITH progressed AS (
    INSERT INTO run (
        namespace_key, session_id, run_id, incarnation, host_instance, state, sequence, context_id, begun_by,
        opened_at, active_at, ended_at
    )
    SELECT $1::bytea, item.*
    FROM unnest(
        $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], $8::text[], $9::text[],
        $10::timestamptz[], $11::timestamptz[], $12::timestamptz[]
    ) AS item
    ON CONFLICT (namespace_key, session_id, run_id, incarnation) DO UPDATE SET
        host_instance = excluded.host_instance, state = excluded.state, sequence = excluded.sequence,
        context_id = excluded.context_id, begun_by = excluded.begun_by, opened_at = excluded.opened_at,
        active_at = excluded.active_at, ended_at = excluded.ended_at
), handed_out AS (
    INSERT INTO context (namespace_key, context_id, session_id, run_id, incarnation, sequence)
    SELECT $1::bytea, item.*
    FROM unnest($13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[]) AS item
    ON CONFLICT (namespace_key, context_id) DO NOTHING
), happened AS (
    INSERT INTO access_event (namespace_key, event_id, kind, session_id, context_id, node_id, revision, caller, at)
    SELECT $1::bytea, item.*
    FROM unnest(
        $18::text[], $19::smallint[], $20::text[], $21::text[], $22::text[], $23::bigint[], $24::text[],
        $25::timestamptz[]
    ) AS item
    ON CONFLICT (namespace_key, event_id) DO NOTHING
    RETURNING 1
), settled AS (
    UPDATE request SET result = item.result, namespace_revision = item.namespace_revision
    FROM unnest($26::text[], $27::text[], $28::json[], $29::bigint[]) AS item (method, key, result, namespace_revision)
    WHERE request.namespace_key = $1 AND request.method = item.method AND request.key = item.key
)
SELECT count(*) AS happened FROM happened;
