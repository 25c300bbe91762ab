-- fragment: node
node_id, revision, kind, status, content, content_digest, surroundings, author, occurred_at, confidence, importance,
       evidence, relations, labels, created_at, updated_at, committed_at, decided_by, valid_from, valid_to

-- name: current_nodes
-- index: node_revision_current
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND node_id = ANY ($2::text[]) AND valid_to IS NULL;

-- name: lock_nodes_to_change
-- The current revisions, in the order in which everybody locks nodes.
-- index: node_revision_current
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND node_id = ANY ($2::text[]) AND valid_to IS NULL
ORDER BY node_id FOR NO KEY UPDATE;

-- name: lock_nodes_to_name
-- As above, beside others who name them. A revision that was replaced while this waited is not answered.
-- index: node_revision_current
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND node_id = ANY ($2::text[]) AND valid_to IS NULL
ORDER BY node_id FOR SHARE;

-- name: existing_nodes
-- index: node_revision_current
SELECT node_id
FROM node_revision
WHERE namespace_key = $1 AND node_id = ANY ($2::text[]) AND valid_to IS NULL;

-- name: nodes_by_content
-- index: node_revision_content
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND content_digest = ANY ($2::text[]) AND valid_to IS NULL
ORDER BY node_id;

-- name: nodes_at
-- index: node_revision_pkey
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND node_id = ANY ($2::text[])
  AND valid_from <= $3 AND (valid_to IS NULL OR valid_to > $3);

-- name: exact_revisions
-- index: node_revision_pkey
SELECT {node}
FROM unnest($2::text[], $3::bigint[]) AS named (node_id, revision)
JOIN node_revision USING (node_id, revision)
WHERE namespace_key = $1;

-- name: list_nodes
-- index: node_revision_pkey
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND node_id > $2
  AND valid_from <= $3 AND (valid_to IS NULL OR valid_to > $3)
  AND (cardinality($4::smallint[]) = 0 OR status = ANY ($4::smallint[]))
  AND (cardinality($5::smallint[]) = 0 OR kind = ANY ($5::smallint[]))
  AND labels @> $6::jsonb
ORDER BY node_id LIMIT $7;

-- name: list_revisions
-- index: node_revision_pkey
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND node_id = $2 AND revision > $3
ORDER BY revision LIMIT $4;

-- name: changed_nodes
-- The ids come from what was committed since, so the cost is that of the change, not of the namespace.
-- index: node_revision_committed
WITH changed AS MATERIALIZED (
    SELECT node_id, revision
    FROM node_revision
    WHERE namespace_key = $1 AND valid_from > $2 AND valid_from <= $3 AND (valid_to IS NULL OR valid_to > $3)
      AND node_id > $4
    ORDER BY node_id LIMIT $5
)
SELECT {node}
FROM changed
JOIN node_revision USING (node_id, revision)
WHERE namespace_key = $1
ORDER BY node_id;

-- name: revisions_committed_at
-- index: node_revision_committed
SELECT {node}
FROM node_revision
WHERE namespace_key = $1 AND valid_from = ANY ($2::bigint[])
ORDER BY valid_from, node_id;
