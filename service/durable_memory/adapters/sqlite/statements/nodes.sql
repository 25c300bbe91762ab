-- Node revisions and their evidence. Sets of names come as JSON arrays.

-- name: current_nodes
SELECT node.*
FROM json_each(:node_ids) AS wanted
CROSS JOIN node_revisions AS node
WHERE node.namespace_key = :namespace_key AND node.node_id = wanted.value AND node.valid_to IS NULL;

-- name: nodes_at
SELECT node.*
FROM json_each(:node_ids) AS wanted
CROSS JOIN node_revisions AS node
WHERE node.namespace_key = :namespace_key
    AND node.node_id = wanted.value
    AND node.valid_from <= :at_revision
    AND (node.valid_to IS NULL OR node.valid_to > :at_revision);

-- name: exact_revisions
-- `refs` is an array of [node id, revision].
SELECT node.*
FROM json_each(:refs) AS wanted
CROSS JOIN node_revisions AS node
WHERE node.namespace_key = :namespace_key
    AND node.node_id = json_extract(wanted.value, '$[0]')
    AND node.revision = json_extract(wanted.value, '$[1]');

-- name: nodes_by_content
SELECT node.*
FROM json_each(:content_digests) AS wanted
CROSS JOIN node_revisions AS node
WHERE node.namespace_key = :namespace_key AND node.content_digest = wanted.value AND node.valid_to IS NULL
ORDER BY node.node_id;

-- name: known_evidence
-- `evidence` is an array of [node id, uri, digest].
SELECT held.node_id, held.uri, held.digest
FROM json_each(:evidence) AS wanted
CROSS JOIN node_evidence AS held
WHERE held.namespace_key = :namespace_key
    AND held.node_id = json_extract(wanted.value, '$[0]')
    AND held.uri = json_extract(wanted.value, '$[1]')
    AND held.digest = json_extract(wanted.value, '$[2]');

-- name: list_nodes_at
-- The state at any namespace revision, past or present.
SELECT node.*
FROM node_revisions AS node
WHERE node.namespace_key = :namespace_key
    AND node.node_id > :after_node_id
    AND node.valid_from <= :at_revision
    AND (node.valid_to IS NULL OR node.valid_to > :at_revision)
    AND (:statuses = '[]' OR node.status IN (SELECT value FROM json_each(:statuses)))
    AND (:kinds = '[]' OR node.kind IN (SELECT value FROM json_each(:kinds)))
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(:labels) AS wanted
        WHERE NOT EXISTS (
            SELECT 1 FROM json_each(node.labels) AS held WHERE held.key = wanted.key AND held.value = wanted.value
        )
    )
ORDER BY node.node_id
LIMIT :limit;

-- name: list_current_nodes_of_status
-- The state now, of one status: what lists of candidates ask for.
SELECT node.*
FROM node_revisions AS node
WHERE node.namespace_key = :namespace_key
    AND node.status = :status
    AND node.node_id > :after_node_id
    AND node.valid_to IS NULL
    AND (:kinds = '[]' OR node.kind IN (SELECT value FROM json_each(:kinds)))
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(:labels) AS wanted
        WHERE NOT EXISTS (
            SELECT 1 FROM json_each(node.labels) AS held WHERE held.key = wanted.key AND held.value = wanted.value
        )
    )
ORDER BY node.node_id
LIMIT :limit;

-- name: list_revisions
SELECT node.*
FROM node_revisions AS node
WHERE node.namespace_key = :namespace_key AND node.node_id = :node_id AND node.revision > :after_revision
ORDER BY node.revision
LIMIT :limit;

-- name: changed_nodes
-- Reads what was committed in between and nothing else, then sorts it.
SELECT node.*
FROM node_revisions AS node INDEXED BY node_revisions_valid_from
WHERE node.namespace_key = :namespace_key
    AND node.valid_from > :after_revision
    AND node.valid_from <= :at_revision
    AND (node.valid_to IS NULL OR node.valid_to > :at_revision)
    AND node.node_id > :after_node_id
ORDER BY node.node_id
LIMIT :limit;

-- name: revisions_committed_at
SELECT node.*
FROM json_each(:namespace_revisions) AS wanted
CROSS JOIN node_revisions AS node
WHERE node.namespace_key = :namespace_key AND node.valid_from = wanted.value
ORDER BY node.valid_from, node.node_id;

-- name: add_node_revision
INSERT INTO node_revisions (
    namespace_key, node_id, revision, kind, status, content, content_digest, surroundings, author, occurred_at,
    confidence, importance, evidence, relations, labels, created_at, updated_at, committed_at, decided_by,
    valid_from, valid_to
) VALUES (
    :namespace_key, :node_id, :revision, :kind, :status, :content, :content_digest, :surroundings, :author,
    :occurred_at, :confidence, :importance, :evidence, :relations, :labels, :created_at, :updated_at, :committed_at,
    :decided_by, :valid_from, :valid_to
);

-- name: end_node_revision
-- Changes no row unless the revision before the new one is the current one.
UPDATE node_revisions
SET valid_to = :valid_from
WHERE namespace_key = :namespace_key AND node_id = :node_id AND revision = :revision - 1 AND valid_to IS NULL;

-- name: add_evidence
INSERT INTO node_evidence (namespace_key, node_id, uri, digest)
VALUES (:namespace_key, :node_id, :uri, :digest)
ON CONFLICT DO NOTHING;
