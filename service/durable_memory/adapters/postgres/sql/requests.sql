-- name: find_request
-- index: request_pkey
SELECT method, key, fingerprint, result, namespace_revision
FROM request
WHERE namespace_key = $1 AND method = $2 AND key = $3;

-- name: find_request_and_evidence
-- The stored call, if there is one, and which of the offered evidence its nodes have had, by position from 1.
-- A subquery per piece, not a join: it can only be a look-up, however many pieces the planner thinks there are.
-- index: request_pkey
-- index: node_evidence_pkey
SELECT request.method, request.key, request.fingerprint, request.result, request.namespace_revision,
       ARRAY(
           SELECT offered.position
           FROM unnest($4::text[], $5::bytea[]) WITH ORDINALITY AS offered (node_id, evidence_key, position)
           WHERE (
               SELECT true
               FROM node_evidence
               WHERE node_evidence.namespace_key = $1
                 AND node_evidence.node_id = offered.node_id
                 AND node_evidence.evidence_key = offered.evidence_key
           )
       ) AS known_evidence
FROM (SELECT) AS always
LEFT JOIN request ON request.namespace_key = $1 AND request.method = $2 AND request.key = $3;

-- name: claim_request
-- Be the first to make this call, or wait for whoever is. The row becomes a record when the call is settled.
INSERT INTO request (namespace_key, method, key, fingerprint, result, namespace_revision)
VALUES ($1::bytea, $2::text, $3::text, $4::text, 'null', 0)
ON CONFLICT (namespace_key, method, key) DO NOTHING
RETURNING true;

-- name: add_requests
INSERT INTO request (namespace_key, method, key, fingerprint, result, namespace_revision)
SELECT $1::bytea, item.*
FROM unnest($2::text[], $3::text[], $4::text[], $5::json[], $6::bigint[]) AS item;

-- name: export_requests
-- index: request_pkey
SELECT method, key, fingerprint, result, namespace_revision
FROM request
WHERE namespace_key = $1 AND (method, key) > ($2, $3)
ORDER BY method, key LIMIT $4;
