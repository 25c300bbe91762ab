-- fragment: intent
fence, nonce, expected_index_revision, history_digest, source_history_id, source_revision, active_count, work,
       started_at

-- fragment: receipt
authority_digest, fence, index_revision, source_revision, source_history_id, history_digest, active_count,
       indexed_count, consistency, work, at, completed_by_successor

-- name: served_generation
-- index: served_generation_pkey
SELECT provider, model, revision, dimension, normalization, metric, text_form, similarity_floor, authority_digest
FROM served_generation
WHERE configuration_digest = $1;

-- name: record_generation
-- Changes no row where that generation is recorded already.
INSERT INTO served_generation (
    configuration_digest, provider, model, revision, dimension, normalization, metric, text_form, similarity_floor,
    authority_digest, recorded_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (configuration_digest) DO UPDATE SET
    provider = excluded.provider, model = excluded.model, revision = excluded.revision,
    dimension = excluded.dimension, normalization = excluded.normalization, metric = excluded.metric,
    text_form = excluded.text_form, similarity_floor = excluded.similarity_floor,
    authority_digest = excluded.authority_digest, recorded_at = excluded.recorded_at
WHERE served_generation.authority_digest <> excluded.authority_digest;

-- name: cached_vectors
-- index: embedding_pkey
SELECT text_digest, vector
FROM embedding
WHERE namespace_key = $1 AND model_digest = $2 AND text_digest = ANY ($3::bytea[]);

-- name: cache_vectors
-- In the order of the digests, so that two that cache the same ones wait for each other in no circle.
WITH added AS (
    INSERT INTO embedding (namespace_key, model_digest, text_digest, vector)
    SELECT $1::bytea, $2::bytea, item.text_digest, item.vector
    FROM unnest($3::bytea[], $4::bytea[]) AS item (text_digest, vector)
    ORDER BY item.text_digest
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) AS added FROM added;

-- name: recorded_fence
-- index: semantic_partition_pkey
SELECT fence FROM semantic_partition WHERE namespace_key = $1 AND authority_digest = $2;

-- name: lock_partition
-- All that is written under a fence waits here for a grant that is being recorded, and the other way round.
-- index: semantic_partition_pkey
SELECT fence FROM semantic_partition WHERE namespace_key = $1 AND authority_digest = $2 FOR NO KEY UPDATE;

-- name: record_fence
-- Answers a row if the fence is above every recorded one, and changes nothing otherwise.
INSERT INTO semantic_partition (namespace_key, authority_digest, fence)
SELECT $1::bytea, $2::text, $3::bigint WHERE $3 > 0
ON CONFLICT (namespace_key, authority_digest) DO UPDATE SET fence = excluded.fence
WHERE semantic_partition.fence < excluded.fence
RETURNING true;

-- name: add_partition
-- For what is written before any fence was granted.
INSERT INTO semantic_partition (namespace_key, authority_digest, fence)
VALUES ($1::bytea, $2::text, 0)
ON CONFLICT DO NOTHING;

-- name: write_intent
INSERT INTO refresh_intent (
    namespace_key, authority_digest, pending, fence, nonce, expected_index_revision, history_digest,
    source_history_id, source_revision, active_count, work, started_at
)
VALUES ($1::bytea, $2::text, true, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (namespace_key, authority_digest) DO UPDATE SET
    pending = excluded.pending, fence = excluded.fence, nonce = excluded.nonce,
    expected_index_revision = excluded.expected_index_revision, history_digest = excluded.history_digest,
    source_history_id = excluded.source_history_id, source_revision = excluded.source_revision,
    active_count = excluded.active_count, work = excluded.work, started_at = excluded.started_at;

-- name: pending_intent
-- index: refresh_intent_pkey
SELECT {intent}
FROM refresh_intent
WHERE namespace_key = $1 AND authority_digest = $2 AND pending;

-- name: add_receipt
-- One whose position is taken is a repeat.
INSERT INTO refresh_receipt (
    namespace_key, authority_digest, fence, index_revision, source_revision, source_history_id, history_digest,
    active_count, indexed_count, consistency, work, at, completed_by_successor
)
VALUES ($1::bytea, $2::text, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT DO NOTHING;

-- name: settle_receipt
-- The partition covers what its newest receipt says, and the intent has ended unless that one is newer than this.
-- index: semantic_partition_pkey
-- index: refresh_receipt_pkey
-- index: refresh_intent_pkey
WITH newest AS (
    SELECT fence, index_revision, source_revision, source_history_id
    FROM refresh_receipt
    WHERE namespace_key = $1 AND authority_digest = $2
    ORDER BY fence DESC, index_revision DESC, source_revision DESC LIMIT 1
), covered AS (
    UPDATE semantic_partition
    SET covered_history_id = newest.source_history_id, covered_revision = newest.source_revision
    FROM newest
    WHERE namespace_key = $1 AND authority_digest = $2
)
UPDATE refresh_intent SET pending = false
FROM newest
WHERE namespace_key = $1 AND authority_digest = $2
  AND (newest.fence, newest.index_revision, newest.source_revision) = ($3, $4, $5);

-- name: forget_receipts
-- All but the newest 1,000: an interval writes one each time, also when nothing was to be done. Of a backlog from before
-- there was this bound, the oldest 1,000 at a time: the partition stays locked for milliseconds.
-- index: refresh_receipt_pkey
DELETE FROM refresh_receipt
WHERE namespace_key = $1 AND authority_digest = $2 AND (fence, index_revision, source_revision) IN (
    SELECT fence, index_revision, source_revision
    FROM refresh_receipt
    WHERE namespace_key = $1 AND authority_digest = $2 AND (fence, index_revision, source_revision) < (
        SELECT fence, index_revision, source_revision
        FROM refresh_receipt
        WHERE namespace_key = $1 AND authority_digest = $2
        ORDER BY fence DESC, index_revision DESC, source_revision DESC LIMIT 1 OFFSET 999
    )
    ORDER BY fence, index_revision, source_revision LIMIT 1000
);

-- name: list_receipts
-- index: refresh_receipt_pkey
SELECT {receipt}
FROM refresh_receipt
WHERE namespace_key = $1 AND authority_digest = $2 AND (fence, index_revision, source_revision) < ($3, $4, $5)
ORDER BY fence DESC, index_revision DESC, source_revision DESC LIMIT $6;

-- name: set_schedule
INSERT INTO refresh_schedule (
    namespace_key, authority_digest, interval_seconds, on_change_delay_seconds, set_by, set_at
)
VALUES ($1::bytea, $2::text, $3, $4, $5, $6)
ON CONFLICT (namespace_key, authority_digest) DO UPDATE SET
    interval_seconds = excluded.interval_seconds, on_change_delay_seconds = excluded.on_change_delay_seconds,
    set_by = excluded.set_by, set_at = excluded.set_at;

-- name: find_schedule
-- index: refresh_schedule_pkey
SELECT authority_digest, interval_seconds, on_change_delay_seconds, set_by, set_at
FROM refresh_schedule
WHERE namespace_key = $1 AND authority_digest = $2;

-- name: add_run
-- Count the run, and put it into the place of the one 64 before it.
-- index: semantic_partition_pkey
WITH counted AS (
    UPDATE semantic_partition SET run_count = run_count + 1, last_run_at = $3
    WHERE namespace_key = $1 AND authority_digest = $2
    RETURNING run_count
)
INSERT INTO refresh_run (
    namespace_key, authority_digest, slot, run_number, started_at, ended_at, outcome, error, index_revision, fence
)
SELECT $1::bytea, $2::text, run_count % 64, run_count, $3::timestamptz, $4::timestamptz, $5::smallint, $6::text,
       $7::bigint, $8::bigint
FROM counted
ON CONFLICT (namespace_key, authority_digest, slot) DO UPDATE SET
    run_number = excluded.run_number, started_at = excluded.started_at, ended_at = excluded.ended_at,
    outcome = excluded.outcome, error = excluded.error, index_revision = excluded.index_revision,
    fence = excluded.fence;

-- name: list_refresh_runs
-- index: refresh_run_pkey
SELECT started_at, ended_at, outcome, error, index_revision, fence
FROM refresh_run
WHERE namespace_key = $1 AND authority_digest = $2
ORDER BY run_number DESC;

-- name: due_refreshes
-- Across namespaces, for the scheduler. Driven by the open sessions of the generation, of which the index gives each
-- namespace once however many it has, and by the schedules with an interval. What they lead to are subqueries, not
-- joins: they can only be look-ups, however few namespaces the planner thinks there are.
-- index: session_semantic
-- index: namespace_pkey
-- index: semantic_partition_pkey
-- index: refresh_schedule_pkey
-- index: refresh_schedule_interval
-- index: change_set_pkey
WITH RECURSIVE bound (namespace_key) AS (
    SELECT (
        SELECT session.namespace_key::bytea
        FROM session
        WHERE session.semantic_authority_digest = $1 AND session.state = 1
        ORDER BY session.namespace_key LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT session.namespace_key::bytea
        FROM session
        WHERE session.semantic_authority_digest = $1 AND session.state = 1
          AND session.namespace_key > bound.namespace_key
        ORDER BY session.namespace_key LIMIT 1
    )
    FROM bound
    WHERE bound.namespace_key IS NOT NULL
), changed AS (
    SELECT bound.namespace_key,
           greatest(coalesce(uncovered.committed_at, 'epoch'), held.last_run_at) + make_interval(
               secs => CASE WHEN schedule.set_at IS NULL THEN $3 ELSE schedule.on_change_delay_seconds END
           ) AS due_at
    FROM bound
    CROSS JOIN LATERAL (
        SELECT history_id, revision, active_count
        FROM namespace
        WHERE namespace_key = bound.namespace_key LIMIT 1
    ) AS head
    LEFT JOIN LATERAL (
        SELECT covered_history_id, covered_revision, last_run_at
        FROM semantic_partition
        WHERE namespace_key = bound.namespace_key AND authority_digest = $1 LIMIT 1
    ) AS held ON true
    LEFT JOIN LATERAL (
        SELECT on_change_delay_seconds, set_at
        FROM refresh_schedule
        WHERE namespace_key = bound.namespace_key AND authority_digest = $1 LIMIT 1
    ) AS schedule ON true
    LEFT JOIN LATERAL (
        SELECT committed_at
        FROM change_set
        WHERE namespace_key = bound.namespace_key
          AND namespace_revision
            = CASE WHEN held.covered_history_id = head.history_id THEN held.covered_revision ELSE 0 END + 1
        LIMIT 1
    ) AS uncovered ON true
    WHERE (schedule.set_at IS NULL OR schedule.on_change_delay_seconds IS NOT NULL)
      AND CASE
              WHEN held.covered_revision IS NULL THEN head.active_count > 0
              ELSE (held.covered_history_id, held.covered_revision) <> (head.history_id, head.revision)
          END
), ticked AS (
    SELECT schedule.namespace_key,
           coalesce(held.last_run_at + make_interval(secs => schedule.interval_seconds), schedule.set_at) AS due_at
    FROM refresh_schedule AS schedule
    LEFT JOIN LATERAL (
        SELECT last_run_at
        FROM semantic_partition
        WHERE namespace_key = schedule.namespace_key AND authority_digest = $1 LIMIT 1
    ) AS held ON true
    WHERE schedule.authority_digest = $1 AND schedule.interval_seconds IS NOT NULL
      AND (SELECT revision FROM namespace WHERE namespace_key = schedule.namespace_key LIMIT 1) > 0
), waiting AS (
    SELECT namespace_key, min(due_at) AS due_at
    FROM (SELECT * FROM changed UNION ALL SELECT * FROM ticked) AS either
    WHERE due_at <= $2
    GROUP BY namespace_key
    ORDER BY min(due_at), namespace_key LIMIT $4
)
SELECT named.tenant_id, named.principal_id, named.scope_id
FROM waiting
CROSS JOIN LATERAL (
    SELECT tenant_id, principal_id, scope_id
    FROM namespace
    WHERE namespace_key = waiting.namespace_key LIMIT 1
) AS named
ORDER BY waiting.due_at, waiting.namespace_key;
