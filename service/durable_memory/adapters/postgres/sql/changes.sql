-- name: write_change
-- A change set with all that it makes: head, record, replaced and new revisions, evidence and request, in one trip.
-- The new revisions wait for the count of the replaced ones, so a node never has two current revisions.
WITH replaced AS (
    UPDATE node_revision SET valid_to = $2
    WHERE namespace_key = $1 AND node_id = ANY ($16::text[]) AND valid_to IS NULL
    RETURNING 1
), moved AS (
    UPDATE namespace
    SET revision = $2, chain_digest = $3, node_count = $4, active_count = $5, active_bytes = $6
    WHERE namespace_key = $1 AND revision = $2 - 1
    RETURNING 1
), recorded AS (
    INSERT INTO change_set (
        namespace_key, namespace_revision, method, request_id, caller, note, occurred_at, committed_at, changes,
        chain_digest
    )
    VALUES ($1::bytea, $2, $7, $8, $9, $10, $11, $12, $13, $3)
), evidence AS (
    INSERT INTO node_evidence (namespace_key, node_id, evidence_key)
    SELECT $1::bytea, item.*
    FROM unnest($14::text[], $15::bytea[]) AS item
    ON CONFLICT DO NOTHING
), asked AS (
    INSERT INTO request (namespace_key, method, key, fingerprint, result, namespace_revision)
    SELECT $1::bytea, item.*, $2
    FROM unnest($36::text[], $37::text[], $38::text[], $39::json[]) AS item
), written AS (
    INSERT INTO node_revision (
        namespace_key, node_id, revision, kind, status, content, content_digest, surroundings, author, occurred_at,
        confidence, importance, evidence, relations, labels, created_at, updated_at, committed_at, decided_by,
        valid_from, valid_to
    )
    SELECT $1::bytea, item.*
    FROM (SELECT count(*) FROM replaced) AS after_that
    CROSS JOIN unnest(
        $16::text[], $17::bigint[], $18::smallint[], $19::smallint[], $20::text[], $21::text[], $22::json[],
        $23::text[], $24::timestamptz[], $25::float8[], $26::float8[], $27::json[], $28::json[], $29::jsonb[],
        $30::timestamptz[], $31::timestamptz[], $32::timestamptz[], $33::text[], $34::bigint[], $35::bigint[]
    ) AS item
    RETURNING 1
)
SELECT (SELECT count(*) FROM moved) AS moved,
       (SELECT count(*) FROM replaced) AS replaced,
       (SELECT count(*) FROM written) AS written;

-- name: import_change_sets
INSERT INTO change_set (
    namespace_key, namespace_revision, method, request_id, caller, note, occurred_at, committed_at, changes,
    chain_digest
)
SELECT $1::bytea, item.*
FROM unnest(
    $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::json[],
    $10::text[]
) AS item;

-- name: import_revisions
INSERT INTO node_revision (
    namespace_key, node_id, revision, kind, status, content, content_digest, surroundings, author, occurred_at,
    confidence, importance, evidence, relations, labels, created_at, updated_at, committed_at, decided_by,
    valid_from, valid_to
)
SELECT $1::bytea, item.*
FROM unnest(
    $2::text[], $3::bigint[], $4::smallint[], $5::smallint[], $6::text[], $7::text[], $8::json[],
    $9::text[], $10::timestamptz[], $11::float8[], $12::float8[], $13::json[], $14::json[], $15::jsonb[],
    $16::timestamptz[], $17::timestamptz[], $18::timestamptz[], $19::text[], $20::bigint[], $21::bigint[]
) AS item;

-- name: import_evidence
INSERT INTO node_evidence (namespace_key, node_id, evidence_key)
SELECT $1::bytea, item.*
FROM unnest($2::text[], $3::bytea[]) AS item
ON CONFLICT DO NOTHING;
