-- name: heads
-- Where many namespaces stand, and what server says so; one row without a key if none of them was written to.
-- index: namespace_pkey
SELECT server.in_recovery, server.timeline, namespace.namespace_key, namespace.history_id, namespace.revision,
       namespace.chain_digest, namespace.node_count, namespace.active_count, namespace.active_bytes,
       namespace.session_revision
FROM (
    SELECT pg_is_in_recovery() AS in_recovery,
           CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline
) AS server
LEFT JOIN namespace ON namespace.namespace_key = ANY ($1::bytea[]);

-- name: find_head
-- index: namespace_pkey
SELECT history_id, revision, chain_digest, node_count, active_count, active_bytes, session_revision
FROM namespace WHERE namespace_key = $1;

-- name: lock_namespace
-- One change set at a time. Foreign key checks on the row do not wait for it.
-- index: namespace_pkey
SELECT history_id, revision, chain_digest, node_count, active_count, active_bytes, session_revision
FROM namespace WHERE namespace_key = $1 FOR NO KEY UPDATE;

-- name: add_namespace
-- The row of a namespace that is written to for the first time. Whoever comes at the same moment is told by any of the
-- table's unique indexes, so all of them count: one that was not named would fail the statement.
INSERT INTO namespace (
    namespace_key, tenant_id, principal_id, scope_id, history_id, revision, chain_digest, node_count, active_count,
    active_bytes, session_revision
)
VALUES ($1::bytea, $2::text, $3::text, $4::text, $5::text, 0, $6::text, 0, 0, 0, 0)
ON CONFLICT DO NOTHING;

-- name: namespace_has_rows
-- Whether anything but change sets is there already.
-- index: session_pkey
-- index: request_pkey
-- index: access_event_pkey
SELECT (SELECT true FROM session WHERE namespace_key = $1 ORDER BY namespace_key, session_id LIMIT 1) IS NOT NULL
    OR (SELECT true FROM request WHERE namespace_key = $1 ORDER BY namespace_key, method, key LIMIT 1) IS NOT NULL
    OR (SELECT true FROM access_event WHERE namespace_key = $1 ORDER BY namespace_key, event_id LIMIT 1) IS NOT NULL;

-- name: replace_head
-- For an import, whose namespace stands anywhere.
-- index: namespace_pkey
UPDATE namespace
SET history_id = $2, revision = $3, chain_digest = $4, node_count = $5, active_count = $6, active_bytes = $7
WHERE namespace_key = $1;

-- name: list_change_sets
-- index: change_set_pkey
SELECT namespace_revision, method, request_id, caller, note, occurred_at, committed_at, changes, chain_digest
FROM change_set
WHERE namespace_key = $1 AND namespace_revision > $2
ORDER BY namespace_revision LIMIT $3;
