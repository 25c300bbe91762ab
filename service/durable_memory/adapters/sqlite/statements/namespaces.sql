-- Namespaces, change sets and requests.

-- name: head
SELECT history_id, revision, chain_digest, node_count, active_count, active_bytes, session_revision
FROM namespaces
WHERE namespace_key = :namespace_key;

-- name: add_namespace
INSERT INTO namespaces (
    namespace_key, tenant_id, principal_id, scope_id,
    history_id, revision, chain_digest, node_count, active_count, active_bytes, session_revision
) VALUES (
    :namespace_key, :tenant_id, :principal_id, :scope_id,
    :history_id, :revision, :chain_digest, :node_count, :active_count, :active_bytes, :session_revision
);

-- name: move_head
-- Changes no row unless the namespace stands where the decision found it.
UPDATE namespaces
SET revision = :revision,
    chain_digest = :chain_digest,
    node_count = :node_count,
    active_count = :active_count,
    active_bytes = :active_bytes
WHERE namespace_key = :namespace_key AND revision = :revision - 1;

-- name: count_session_write
UPDATE namespaces
SET session_revision = session_revision + 1
WHERE namespace_key = :namespace_key;

-- name: add_change_set
INSERT INTO change_sets (
    namespace_key, namespace_revision, method, request_id, caller, note,
    occurred_at, committed_at, changes, chain_digest
) VALUES (
    :namespace_key, :namespace_revision, :method, :request_id, :caller, :note,
    :occurred_at, :committed_at, :changes, :chain_digest
);

-- name: list_change_sets
SELECT namespace_revision, method, request_id, caller, note, occurred_at, committed_at, changes, chain_digest
FROM change_sets
WHERE namespace_key = :namespace_key AND namespace_revision > :after_revision
ORDER BY namespace_revision
LIMIT :limit;

-- name: find_request
SELECT method, key, fingerprint, result, namespace_revision
FROM requests
WHERE namespace_key = :namespace_key AND method = :method AND key = :key;

-- name: add_request
INSERT INTO requests (namespace_key, method, key, fingerprint, result, namespace_revision)
VALUES (:namespace_key, :method, :key, :fingerprint, :result, :namespace_revision);

-- name: list_requests
SELECT method, key, fingerprint, result, namespace_revision
FROM requests
WHERE namespace_key = :namespace_key AND (method, key) > (:after_method, :after_key)
ORDER BY method, key
LIMIT :limit;
