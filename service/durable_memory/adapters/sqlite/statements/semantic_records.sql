-- What is kept for semantic recall. Sets of digests come as JSON arrays.

-- name: served_generation
SELECT provider, model, revision, dimension, normalization, metric, text_form, similarity_floor, authority_digest
FROM served_generations
WHERE configuration_digest = :configuration_digest;

-- name: record_generation
-- Changes no row where that generation is recorded already.
INSERT INTO served_generations (
    configuration_digest, provider, model, revision, dimension, normalization, metric, text_form, similarity_floor,
    authority_digest, recorded_at
) VALUES (
    :configuration_digest, :provider, :model, :revision, :dimension, :normalization, :metric, :text_form,
    :similarity_floor, :authority_digest, :recorded_at
)
ON CONFLICT (configuration_digest) DO UPDATE SET
    provider = excluded.provider,
    model = excluded.model,
    revision = excluded.revision,
    dimension = excluded.dimension,
    normalization = excluded.normalization,
    metric = excluded.metric,
    text_form = excluded.text_form,
    similarity_floor = excluded.similarity_floor,
    authority_digest = excluded.authority_digest,
    recorded_at = excluded.recorded_at
WHERE served_generations.authority_digest <> excluded.authority_digest;

-- name: cached_vectors
SELECT cached.text_digest, cached.vector
FROM json_each(:text_digests) AS wanted
CROSS JOIN embeddings AS cached
WHERE cached.namespace_key = :namespace_key
    AND cached.model_digest = :model_digest
    AND cached.text_digest = wanted.value;

-- name: add_vector
INSERT INTO embeddings (namespace_key, model_digest, text_digest, vector)
VALUES (:namespace_key, :model_digest, :text_digest, :vector)
ON CONFLICT DO NOTHING;

-- name: recorded_fence
SELECT fence
FROM semantic_partitions
WHERE namespace_key = :namespace_key AND authority_digest = :authority_digest;

-- name: record_fence
-- Changes no row unless the fence is above every recorded one.
INSERT INTO semantic_partitions (namespace_key, authority_digest, fence)
VALUES (:namespace_key, :authority_digest, :fence)
ON CONFLICT (namespace_key, authority_digest) DO UPDATE SET fence = excluded.fence
WHERE semantic_partitions.fence < excluded.fence;

-- name: add_partition
-- For what is written before any fence was granted.
INSERT INTO semantic_partitions (namespace_key, authority_digest, fence)
VALUES (:namespace_key, :authority_digest, 0)
ON CONFLICT DO NOTHING;

-- name: put_intent
INSERT INTO refresh_intents (
    namespace_key, authority_digest, pending, fence, nonce, expected_index_revision, history_digest,
    source_history_id, source_revision, active_count, work, started_at
) VALUES (
    :namespace_key, :authority_digest, 1, :fence, :nonce, :expected_index_revision, :history_digest,
    :source_history_id, :source_revision, :active_count, :work, :started_at
)
ON CONFLICT (namespace_key, authority_digest) DO UPDATE SET
    pending = excluded.pending,
    fence = excluded.fence,
    nonce = excluded.nonce,
    expected_index_revision = excluded.expected_index_revision,
    history_digest = excluded.history_digest,
    source_history_id = excluded.source_history_id,
    source_revision = excluded.source_revision,
    active_count = excluded.active_count,
    work = excluded.work,
    started_at = excluded.started_at;

-- name: pending_intent
SELECT fence, nonce, expected_index_revision, history_digest, source_history_id, source_revision, active_count, work,
    started_at
FROM refresh_intents
WHERE namespace_key = :namespace_key AND authority_digest = :authority_digest AND pending = 1;

-- name: end_intent
-- Changes no row if a newer receipt than the one at this position is there.
UPDATE refresh_intents
SET pending = 0
WHERE namespace_key = :namespace_key
    AND authority_digest = :authority_digest
    AND NOT EXISTS (
        SELECT 1
        FROM refresh_receipts AS newer
        WHERE newer.namespace_key = :namespace_key
            AND newer.authority_digest = :authority_digest
            AND (newer.fence, newer.index_revision, newer.source_revision)
                > (:fence, :index_revision, :source_revision)
    );

-- name: add_receipt
-- One whose position is taken is a repeat.
INSERT INTO refresh_receipts (
    namespace_key, authority_digest, fence, index_revision, source_revision, source_history_id, history_digest,
    active_count, indexed_count, consistency, work, at, completed_by_successor
) VALUES (
    :namespace_key, :authority_digest, :fence, :index_revision, :source_revision, :source_history_id, :history_digest,
    :active_count, :indexed_count, :consistency, :work, :at, :completed_by_successor
)
ON CONFLICT DO NOTHING;

-- name: cover_newest_receipt
UPDATE semantic_partitions
SET (covered_history_id, covered_revision) = (
    SELECT newest.source_history_id, newest.source_revision
    FROM refresh_receipts AS newest
    WHERE newest.namespace_key = :namespace_key AND newest.authority_digest = :authority_digest
    ORDER BY newest.fence DESC, newest.index_revision DESC, newest.source_revision DESC
    LIMIT 1
)
WHERE namespace_key = :namespace_key AND authority_digest = :authority_digest;

-- name: forget_receipts
-- All but the newest 1,000: an interval writes one each time, also when nothing was to be done. Of a backlog from before
-- there was this bound, the oldest 1,000 at a time: the one writer is held up for milliseconds.
DELETE FROM refresh_receipts
WHERE namespace_key = :namespace_key
    AND authority_digest = :authority_digest
    AND (fence, index_revision, source_revision) IN (
        SELECT surplus.fence, surplus.index_revision, surplus.source_revision
        FROM refresh_receipts AS surplus
        WHERE surplus.namespace_key = :namespace_key
            AND surplus.authority_digest = :authority_digest
            AND (surplus.fence, surplus.index_revision, surplus.source_revision) < (
                SELECT newest.fence, newest.index_revision, newest.source_revision
                FROM refresh_receipts AS newest
                WHERE newest.namespace_key = :namespace_key AND newest.authority_digest = :authority_digest
                ORDER BY newest.fence DESC, newest.index_revision DESC, newest.source_revision DESC
                LIMIT 1 OFFSET 999
            )
        ORDER BY surplus.fence, surplus.index_revision, surplus.source_revision
        LIMIT 1000
    );

-- name: list_receipts
SELECT receipt.*
FROM refresh_receipts AS receipt
WHERE receipt.namespace_key = :namespace_key
    AND receipt.authority_digest = :authority_digest
    AND (receipt.fence, receipt.index_revision, receipt.source_revision)
        < (:before_fence, :before_index_revision, :before_source_revision)
ORDER BY receipt.fence DESC, receipt.index_revision DESC, receipt.source_revision DESC
LIMIT :limit;

-- name: put_schedule
INSERT INTO refresh_schedules (
    namespace_key, authority_digest, interval_seconds, on_change_delay_seconds, set_by, set_at
) VALUES (
    :namespace_key, :authority_digest, :interval_seconds, :on_change_delay_seconds, :set_by, :set_at
)
ON CONFLICT (namespace_key, authority_digest) DO UPDATE SET
    interval_seconds = excluded.interval_seconds,
    on_change_delay_seconds = excluded.on_change_delay_seconds,
    set_by = excluded.set_by,
    set_at = excluded.set_at;

-- name: find_schedule
SELECT authority_digest, interval_seconds, on_change_delay_seconds, set_by, set_at
FROM refresh_schedules
WHERE namespace_key = :namespace_key AND authority_digest = :authority_digest;

-- name: count_refresh_run
UPDATE semantic_partitions
SET run_count = run_count + 1, last_run_at = :started_at
WHERE namespace_key = :namespace_key AND authority_digest = :authority_digest;

-- name: put_refresh_run
-- The run that was just counted, in the place of the one 64 before it.
INSERT INTO refresh_runs (
    namespace_key, authority_digest, slot, run_number, started_at, ended_at, outcome, error, index_revision, fence
)
SELECT
    held.namespace_key, held.authority_digest, held.run_count % 64, held.run_count,
    :started_at, :ended_at, :outcome, :error, :index_revision, :fence
FROM semantic_partitions AS held
WHERE held.namespace_key = :namespace_key AND held.authority_digest = :authority_digest
ON CONFLICT (namespace_key, authority_digest, slot) DO UPDATE SET
    run_number = excluded.run_number,
    started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    outcome = excluded.outcome,
    error = excluded.error,
    index_revision = excluded.index_revision,
    fence = excluded.fence;

-- name: list_refresh_runs
SELECT started_at, ended_at, outcome, error, index_revision, fence
FROM refresh_runs
WHERE namespace_key = :namespace_key AND authority_digest = :authority_digest
ORDER BY run_number DESC;

-- name: due_refreshes
-- Across namespaces, for the scheduler. Driven by the open sessions of the generation, of which the index gives each
-- namespace once however many it has, and by the schedules with an interval; every other table is looked up by its key.
WITH RECURSIVE bound (namespace_key) AS (
    SELECT min(session.namespace_key)
    FROM sessions AS session
    WHERE session.semantic_authority_digest = :authority_digest AND session.state = 1
    UNION ALL
    SELECT (
        SELECT min(session.namespace_key)
        FROM sessions AS session
        WHERE session.semantic_authority_digest = :authority_digest
            AND session.state = 1
            AND session.namespace_key > bound.namespace_key
    )
    FROM bound
    WHERE bound.namespace_key IS NOT NULL
),
waiting (namespace_key, due_at) AS (
    -- On change: the oldest change set that the newest receipt does not cover, or the last run.
    SELECT
        bound.namespace_key,
        max(coalesce(uncovered.committed_at, 0), coalesce(held.last_run_at, 0)) + CAST(round(1000000 * CASE
            WHEN schedule.namespace_key IS NULL THEN :default_delay_seconds
            ELSE schedule.on_change_delay_seconds
        END) AS INTEGER)
    FROM bound
    CROSS JOIN namespaces AS namespace ON namespace.namespace_key = bound.namespace_key
    LEFT JOIN semantic_partitions AS held
        ON held.namespace_key = bound.namespace_key AND held.authority_digest = :authority_digest
    LEFT JOIN refresh_schedules AS schedule
        ON schedule.namespace_key = bound.namespace_key AND schedule.authority_digest = :authority_digest
    LEFT JOIN change_sets AS uncovered
        ON uncovered.namespace_key = bound.namespace_key
        AND uncovered.namespace_revision
            = CASE WHEN held.covered_history_id = namespace.history_id THEN held.covered_revision ELSE 0 END + 1
    WHERE (schedule.namespace_key IS NULL OR schedule.on_change_delay_seconds IS NOT NULL)
        AND CASE
            WHEN held.covered_revision IS NULL THEN namespace.active_count > 0
            ELSE (held.covered_history_id, held.covered_revision) <> (namespace.history_id, namespace.revision)
        END
    UNION ALL
    SELECT
        schedule.namespace_key,
        coalesce(
            held.last_run_at + CAST(round(1000000 * schedule.interval_seconds) AS INTEGER),
            schedule.set_at
        )
    FROM refresh_schedules AS schedule
    CROSS JOIN namespaces AS namespace ON namespace.namespace_key = schedule.namespace_key
    LEFT JOIN semantic_partitions AS held
        ON held.namespace_key = schedule.namespace_key AND held.authority_digest = :authority_digest
    WHERE schedule.authority_digest = :authority_digest
        AND schedule.interval_seconds IS NOT NULL
        AND namespace.revision > 0
)
SELECT namespace.tenant_id, namespace.principal_id, namespace.scope_id
FROM waiting
CROSS JOIN namespaces AS namespace ON namespace.namespace_key = waiting.namespace_key
WHERE waiting.due_at <= :now
GROUP BY waiting.namespace_key
ORDER BY min(waiting.due_at), waiting.namespace_key
LIMIT :limit;
