-- What the repository keeps for semantic recall, beside the namespaces' state: cached vectors, fences, intents,
-- receipts, schedules and runs. A partition is a namespace in a semantic generation, named by its authority digest.
--
-- Nothing here refers to a namespace's row: a namespace that nobody wrote to has none, and may have any of this.

-- The generation that a session is bound to, NULL for none. It follows from the binding, so no writer can forget it.
ALTER TABLE session ADD COLUMN semantic_authority_digest text COLLATE "C"
    GENERATED ALWAYS AS (binding -> 'semantic_generation' ->> 'authority_digest') STORED;

-- The namespaces with an open session of a generation: what drives refreshes on change.
CREATE INDEX session_semantic ON session (semantic_authority_digest, namespace_key)
    WHERE state = 1 AND semantic_authority_digest IS NOT NULL;

-- Vectors by namespace, model and text, as little-endian floats; what is there stays. Kept by namespace, so that how
-- long an embedding takes tells nobody what others remember. The digests are bytes: there are many of them.
CREATE TABLE embedding (
    namespace_key namespace_hash NOT NULL,
    model_digest bytea NOT NULL CHECK (octet_length(model_digest) = 32),
    text_digest bytea NOT NULL CHECK (octet_length(text_digest) = 32),
    vector bytea NOT NULL CHECK (octet_length(vector) > 0),
    PRIMARY KEY (namespace_key, model_digest, text_digest)
) PARTITION BY HASH (namespace_key);

-- Floats do not compress, and trying takes longer than writing them.
ALTER TABLE embedding ALTER COLUMN vector SET STORAGE EXTERNAL;

-- Where a partition stands: the highest recorded fence, what its newest receipt covers, and its runs. The row is
-- the lock of all that is written under a fence. Half-filled pages keep its updates in place.
CREATE TABLE semantic_partition (
    namespace_key namespace_hash NOT NULL,
    authority_digest hex_digest NOT NULL,
    fence bigint NOT NULL CHECK (fence >= 0),
    covered_history_id text COLLATE "C",
    covered_revision bigint CHECK (covered_revision >= 0),
    run_count bigint NOT NULL DEFAULT 0 CHECK (run_count >= 0),
    last_run_at timestamptz,
    PRIMARY KEY (namespace_key, authority_digest),
    CONSTRAINT semantic_partition_covered CHECK ((covered_history_id IS NULL) = (covered_revision IS NULL)),
    CONSTRAINT semantic_partition_last_run CHECK ((last_run_at IS NULL) = (run_count = 0))
) WITH (fillfactor = 50);

-- What a publisher was last about to publish. One that is no longer pending has its receipt, or was overtaken by one.
CREATE TABLE refresh_intent (
    namespace_key namespace_hash NOT NULL,
    authority_digest hex_digest NOT NULL,
    pending boolean NOT NULL,
    fence bigint NOT NULL CHECK (fence >= 1),
    nonce identifier NOT NULL,
    expected_index_revision bigint NOT NULL CHECK (expected_index_revision >= 0),
    history_digest hex_digest NOT NULL,
    source_history_id text COLLATE "C" NOT NULL,
    source_revision bigint NOT NULL CHECK (source_revision >= 0),
    active_count bigint NOT NULL CHECK (active_count >= 0),
    work json NOT NULL,
    started_at timestamptz NOT NULL,
    PRIMARY KEY (namespace_key, authority_digest),
    CONSTRAINT refresh_intent_partition FOREIGN KEY (namespace_key, authority_digest) REFERENCES semantic_partition
) WITH (fillfactor = 50);

-- Publications and verified no-ops, in the order of their positions. A row is never changed.
CREATE TABLE refresh_receipt (
    namespace_key namespace_hash NOT NULL,
    authority_digest hex_digest NOT NULL,
    fence bigint NOT NULL CHECK (fence >= 1),
    index_revision bigint NOT NULL CHECK (index_revision >= 0),
    source_revision bigint NOT NULL CHECK (source_revision >= 0),
    source_history_id text COLLATE "C" NOT NULL,
    history_digest hex_digest NOT NULL,
    active_count bigint NOT NULL CHECK (active_count >= 0),
    indexed_count bigint NOT NULL CHECK (indexed_count >= 0),
    consistency text COLLATE "C" NOT NULL CHECK (consistency <> ''),
    work json NOT NULL,
    at timestamptz NOT NULL,
    completed_by_successor boolean NOT NULL,
    PRIMARY KEY (namespace_key, authority_digest, fence, index_revision, source_revision),
    CONSTRAINT refresh_receipt_partition FOREIGN KEY (namespace_key, authority_digest) REFERENCES semantic_partition
) PARTITION BY HASH (namespace_key);

-- The last 64 runs of a partition: each takes the place of the one 64 before it.
CREATE TABLE refresh_run (
    namespace_key namespace_hash NOT NULL,
    authority_digest hex_digest NOT NULL,
    slot smallint NOT NULL,
    run_number bigint NOT NULL CHECK (run_number >= 1),
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    outcome smallint NOT NULL CHECK (outcome BETWEEN 1 AND 4),
    error text COLLATE "C" NOT NULL CHECK (char_length(error) <= 200),
    index_revision bigint NOT NULL CHECK (index_revision >= 0),
    fence bigint NOT NULL CHECK (fence >= 0),
    PRIMARY KEY (namespace_key, authority_digest, slot),
    CONSTRAINT refresh_run_slot CHECK (slot = run_number % 64),
    CONSTRAINT refresh_run_partition FOREIGN KEY (namespace_key, authority_digest) REFERENCES semantic_partition
) PARTITION BY HASH (namespace_key);

-- When partitions are refreshed; NULL is off, and without a row the server's default holds.
CREATE TABLE refresh_schedule (
    namespace_key namespace_hash NOT NULL,
    authority_digest hex_digest NOT NULL,
    interval_seconds double precision CHECK (interval_seconds > 0 AND interval_seconds <= 31622400),
    on_change_delay_seconds double precision CHECK (on_change_delay_seconds BETWEEN 0 AND 31622400),
    set_by text COLLATE "C" NOT NULL,
    set_at timestamptz NOT NULL,
    PRIMARY KEY (namespace_key, authority_digest)
);

-- The namespaces that a generation's interval refreshes go round.
CREATE INDEX refresh_schedule_interval ON refresh_schedule (authority_digest, namespace_key)
    WHERE interval_seconds IS NOT NULL;

DO $$
DECLARE
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['embedding', 'refresh_receipt', 'refresh_run'] LOOP
        FOR remainder IN 0..15 LOOP
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
                parent || '_p' || to_char(remainder, 'FM00'), parent, remainder
            );
        END LOOP;
    END LOOP;
END
$$;
