-- Sessions, their bindings, runs and contexts. Sets of names come as JSON arrays.

-- name: find_sessions
SELECT session.*
FROM json_each(:session_ids) AS wanted
CROSS JOIN sessions AS session
WHERE session.namespace_key = :namespace_key AND session.session_id = wanted.value;

-- name: list_sessions
SELECT session.*
FROM sessions AS session
WHERE session.namespace_key = :namespace_key AND session.session_id > :after_session_id
ORDER BY session.session_id
LIMIT :limit;

-- name: put_session
INSERT INTO sessions (
    namespace_key, session_id, binding, binding_version, request_digest, state,
    opened_by, opened_at, rebound_at, closed_at
) VALUES (
    :namespace_key, :session_id, :binding, :binding_version, :request_digest, :state,
    :opened_by, :opened_at, :rebound_at, :closed_at
)
ON CONFLICT (namespace_key, session_id) DO UPDATE SET
    binding = excluded.binding,
    binding_version = excluded.binding_version,
    request_digest = excluded.request_digest,
    state = excluded.state,
    opened_by = excluded.opened_by,
    opened_at = excluded.opened_at,
    rebound_at = excluded.rebound_at,
    closed_at = excluded.closed_at;

-- name: add_binding
INSERT INTO session_bindings (namespace_key, session_id, binding_version, binding, bound_at, bound_by)
VALUES (:namespace_key, :session_id, :binding_version, :binding, :bound_at, :bound_by);

-- name: list_bindings
SELECT session_id, binding_version, binding, bound_at, bound_by
FROM session_bindings
WHERE namespace_key = :namespace_key
    AND (session_id, binding_version) > (:after_session_id, :after_binding_version)
ORDER BY session_id, binding_version
LIMIT :limit;

-- name: latest_run
SELECT run.*
FROM runs AS run
WHERE run.namespace_key = :namespace_key AND run.session_id = :session_id AND run.run_id = :run_id
ORDER BY run.opened_at DESC, run.incarnation DESC
LIMIT 1;

-- name: find_run
SELECT run.*
FROM runs AS run
WHERE run.namespace_key = :namespace_key
    AND run.session_id = :session_id
    AND run.run_id = :run_id
    AND run.incarnation = :incarnation;

-- name: list_runs
SELECT run.*
FROM runs AS run
WHERE run.namespace_key = :namespace_key
    AND (run.session_id, run.run_id, run.opened_at, run.incarnation)
        > (:after_session_id, :after_run_id, :after_opened_at, :after_incarnation)
ORDER BY run.session_id, run.run_id, run.opened_at, run.incarnation
LIMIT :limit;

-- name: put_run
INSERT INTO runs (
    namespace_key, session_id, run_id, incarnation, host_instance, state, sequence, context_id, begun_by,
    opened_at, active_at, ended_at
) VALUES (
    :namespace_key, :session_id, :run_id, :incarnation, :host_instance, :state, :sequence, :context_id, :begun_by,
    :opened_at, :active_at, :ended_at
)
ON CONFLICT (namespace_key, session_id, run_id, incarnation) DO UPDATE SET
    host_instance = excluded.host_instance,
    state = excluded.state,
    sequence = excluded.sequence,
    context_id = excluded.context_id,
    begun_by = excluded.begun_by,
    opened_at = excluded.opened_at,
    active_at = excluded.active_at,
    ended_at = excluded.ended_at;

-- name: find_contexts
SELECT context_id, session_id, run_id, incarnation, sequence
FROM json_each(:context_ids) AS wanted
CROSS JOIN contexts AS context
WHERE context.namespace_key = :namespace_key AND context.context_id = wanted.value;

-- name: list_contexts
SELECT context_id, session_id, run_id, incarnation, sequence
FROM contexts
WHERE namespace_key = :namespace_key
    AND session_id = :session_id
    AND run_id = :run_id
    AND incarnation = :incarnation
ORDER BY sequence;

-- name: add_context
INSERT INTO contexts (namespace_key, context_id, session_id, run_id, incarnation, sequence)
VALUES (:namespace_key, :context_id, :session_id, :run_id, :incarnation, :sequence)
ON CONFLICT (namespace_key, context_id) DO NOTHING;
