-- fragment: session
session_id, binding, binding_version, request_digest, state, opened_by, opened_at, rebound_at, closed_at

-- fragment: run
session_id, run_id, incarnation, host_instance, state, sequence, context_id, begun_by, opened_at, active_at, ended_at

-- fragment: context_and_run
context.context_id AS of_context_id, context.sequence AS of_sequence, run.session_id, run.run_id, run.incarnation,
       run.host_instance, run.state, run.sequence, run.context_id, run.begun_by, run.opened_at, run.active_at,
       run.ended_at

-- name: get_session
-- index: session_pkey
SELECT {session}
FROM session
WHERE namespace_key = $1 AND session_id = $2;

-- name: list_sessions
-- index: session_pkey
SELECT {session}
FROM session
WHERE namespace_key = $1 AND session_id > $2
ORDER BY session_id LIMIT $3;

-- name: lock_sessions_to_change
-- index: session_pkey
SELECT {session}
FROM session
WHERE namespace_key = $1 AND session_id = ANY ($2::text[])
ORDER BY session_id FOR NO KEY UPDATE;

-- name: lock_sessions_to_name
-- index: session_pkey
SELECT {session}
FROM session
WHERE namespace_key = $1 AND session_id = ANY ($2::text[])
ORDER BY session_id FOR SHARE;

-- name: write_sessions
-- Sessions as they are now, counted by the namespace, and what they were bound to for the first time.
WITH counted AS (
    UPDATE namespace SET session_revision = session_revision + $16
    WHERE namespace_key = $1 AND $16 > 0
), bound AS (
    INSERT INTO session_binding (namespace_key, session_id, binding_version, binding, bound_at, bound_by)
    SELECT $1::bytea, record.*
    FROM unnest($11::text[], $12::bigint[], $13::json[], $14::timestamptz[], $15::text[]) AS record
)
INSERT INTO session (
    namespace_key, session_id, binding, binding_version, request_digest, state, opened_by, opened_at, rebound_at,
    closed_at
)
SELECT $1::bytea, record.*
FROM unnest(
    $2::text[], $3::json[], $4::bigint[], $5::text[], $6::smallint[], $7::text[], $8::timestamptz[],
    $9::timestamptz[], $10::timestamptz[]
) AS record
ON CONFLICT (namespace_key, session_id) DO UPDATE SET
    binding = excluded.binding, binding_version = excluded.binding_version, request_digest = excluded.request_digest,
    state = excluded.state, opened_by = excluded.opened_by, opened_at = excluded.opened_at,
    rebound_at = excluded.rebound_at, closed_at = excluded.closed_at;

-- name: export_bindings
-- index: session_binding_pkey
SELECT session_id, binding_version, binding, bound_at, bound_by
FROM session_binding
WHERE namespace_key = $1 AND (session_id, binding_version) > ($2, $3)
ORDER BY session_id, binding_version LIMIT $4;

-- name: lock_latest_runs
-- The newest incarnations, in the order in which everybody locks runs.
-- index: run_opened
SELECT latest.*
FROM (
    SELECT DISTINCT session_id, run_id
    FROM unnest($2::text[], $3::text[]) AS asked (session_id, run_id)
    ORDER BY session_id, run_id
) AS named
CROSS JOIN LATERAL (
    SELECT {run}
    FROM run
    WHERE run.namespace_key = $1 AND run.session_id = named.session_id AND run.run_id = named.run_id
    ORDER BY run.opened_at DESC, run.incarnation DESC LIMIT 1
    FOR NO KEY UPDATE
) AS latest;

-- name: lock_contexts
-- Contexts, which never change, with their runs, which do, in the order in which everybody locks runs.
-- index: context_pkey
-- index: run_pkey or run_opened
SELECT {context_and_run}
FROM (
    SELECT context_id, session_id, run_id, incarnation, sequence
    FROM context
    WHERE namespace_key = $1 AND context_id = ANY ($2::text[])
    ORDER BY session_id, run_id, incarnation
) AS context
CROSS JOIN LATERAL (
    SELECT {run}
    FROM run
    WHERE run.namespace_key = $1 AND run.session_id = context.session_id AND run.run_id = context.run_id
      AND run.incarnation = context.incarnation
    LIMIT 1
    FOR NO KEY UPDATE
) AS run;

-- name: get_context
-- index: context_pkey
-- index: run_pkey or run_opened
SELECT {context_and_run}
FROM context
JOIN run ON run.namespace_key = $1 AND run.session_id = context.session_id AND run.run_id = context.run_id
        AND run.incarnation = context.incarnation
WHERE context.namespace_key = $1 AND context.context_id = $2;

-- name: export_runs
-- index: run_opened
SELECT {run}
FROM run
WHERE namespace_key = $1 AND (session_id, run_id, opened_at, incarnation) > ($2, $3, $4, $5)
ORDER BY session_id, run_id, opened_at, incarnation LIMIT $6;

-- name: contexts_of_runs
-- index: context_sequence
SELECT context.context_id, context.session_id, context.run_id, context.incarnation, context.sequence
FROM unnest($2::text[], $3::text[], $4::text[]) AS named (session_id, run_id, incarnation)
JOIN context USING (session_id, run_id, incarnation)
WHERE context.namespace_key = $1
ORDER BY context.session_id, context.run_id, context.incarnation, context.sequence;
