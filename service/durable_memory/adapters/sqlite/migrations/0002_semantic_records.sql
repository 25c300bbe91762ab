-- What the repository keeps for semantic recall, beside the namespaces' state: cached vectors, fences, intents,
-- receipts, schedules and runs. A partition is a namespace in a semantic generation, named by its authority digest.
--
-- Nothing here refers to a namespace's row: a namespace that nobody wrote to has none, and may have any of this.

-- The generation that a session is bound to, NULL for none. It follows from the binding, so no writer can forget it.
ALTER TABLE sessions ADD COLUMN semantic_authority_digest TEXT
    GENERATED ALWAYS AS (json_extract(binding, '$.semantic_generation.authority_digest')) VIRTUAL;

-- The namespaces with an open session of a generation: what drives refreshes on change.
CREATE INDEX sessions_semantic ON sessions (semantic_authority_digest, namespace_key)
    WHERE state = 1 AND semantic_authority_digest IS NOT NULL;

-- Vectors by namespace, model and text, as little-endian floats; what is there stays. Kept by namespace, so that how
-- long an embedding takes tells nobody what others remember. Rows are too large to live in the tree of their key.
CREATE TABLE embeddings (
    namespace_key BLOB NOT NULL CHECK (length(namespace_key) = 32),
    model_digest TEXT NOT NULL CHECK (length(model_digest) = 64),
    text_digest TEXT NOT NULL CHECK (length(text_digest) = 64),
    vector BLOB NOT NULL CHECK (length(vector) > 0),
    PRIMARY KEY (namespace_key, model_digest, text_digest)
) STRICT;

-- Where a partition stands: the highest fence that was recorded, what its newest receipt covers, and its runs.
CREATE TABLE semantic_partitions (
    namespace_key BLOB NOT NULL CHECK (length(namespace_key) = 32),
    authority_digest TEXT NOT NULL CHECK (length(authority_digest) = 64),
    fence INTEGER NOT NULL CHECK (fence >= 0),
    covered_history_id TEXT,
    covered_revision INTEGER CHECK (covered_revision >= 0),
    run_count INTEGER NOT NULL DEFAULT 0 CHECK (run_count >= 0),
    last_run_at INTEGER,
    PRIMARY KEY (namespace_key, authority_digest),
    CHECK ((covered_history_id IS NULL) = (covered_revision IS NULL)),
    CHECK ((last_run_at IS NULL) = (run_count = 0))
) STRICT, WITHOUT ROWID;

-- What a publisher was last about to publish. One that is no longer pending has its receipt, or was overtaken by one.
CREATE TABLE refresh_intents (
    namespace_key BLOB NOT NULL,
    authority_digest TEXT NOT NULL,
    pending INTEGER NOT NULL CHECK (pending IN (0, 1)),
    fence INTEGER NOT NULL CHECK (fence > 0),
    nonce TEXT NOT NULL CHECK (nonce <> ''),
    expected_index_revision INTEGER NOT NULL CHECK (expected_index_revision >= 0),
    history_digest TEXT NOT NULL CHECK (length(history_digest) = 64),
    source_history_id TEXT NOT NULL,
    source_revision INTEGER NOT NULL CHECK (source_revision >= 0),
    active_count INTEGER NOT NULL CHECK (active_count >= 0),
    work TEXT NOT NULL CHECK (json_valid(work)),
    started_at INTEGER NOT NULL,
    PRIMARY KEY (namespace_key, authority_digest),
    FOREIGN KEY (namespace_key, authority_digest)
        REFERENCES semantic_partitions (namespace_key, authority_digest)
) STRICT, WITHOUT ROWID;

-- Publications and verified no-ops, in the order of their positions. A row is never changed.
CREATE TABLE refresh_receipts (
    namespace_key BLOB NOT NULL,
    authority_digest TEXT NOT NULL,
    fence INTEGER NOT NULL CHECK (fence > 0),
    index_revision INTEGER NOT NULL CHECK (index_revision >= 0),
    source_revision INTEGER NOT NULL CHECK (source_revision >= 0),
    source_history_id TEXT NOT NULL,
    history_digest TEXT NOT NULL CHECK (length(history_digest) = 64),
    active_count INTEGER NOT NULL CHECK (active_count >= 0),
    indexed_count INTEGER NOT NULL CHECK (indexed_count >= 0),
    consistency TEXT NOT NULL CHECK (consistency <> ''),
    work TEXT NOT NULL CHECK (json_valid(work)),
    at INTEGER NOT NULL,
    completed_by_successor INTEGER NOT NULL CHECK (completed_by_successor IN (0, 1)),
    PRIMARY KEY (namespace_key, authority_digest, fence, index_revision, source_revision),
    FOREIGN KEY (namespace_key, authority_digest)
        REFERENCES semantic_partitions (namespace_key, authority_digest)
) STRICT, WITHOUT ROWID;

-- The last 64 runs of a partition: each takes the place of the one 64 before it.
CREATE TABLE refresh_runs (
    namespace_key BLOB NOT NULL,
    authority_digest TEXT NOT NULL,
    slot INTEGER NOT NULL CHECK (slot = run_number % 64),
    run_number INTEGER NOT NULL CHECK (run_number > 0),
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    outcome INTEGER NOT NULL CHECK (outcome BETWEEN 1 AND 4),
    error TEXT NOT NULL CHECK (length(error) <= 200),
    index_revision INTEGER NOT NULL CHECK (index_revision >= 0),
    fence INTEGER NOT NULL CHECK (fence >= 0),
    PRIMARY KEY (namespace_key, authority_digest, slot),
    FOREIGN KEY (namespace_key, authority_digest)
        REFERENCES semantic_partitions (namespace_key, authority_digest)
) STRICT, WITHOUT ROWID;

-- When partitions are refreshed; NULL is off, and without a row the server's default holds.
CREATE TABLE refresh_schedules (
    namespace_key BLOB NOT NULL CHECK (length(namespace_key) = 32),
    authority_digest TEXT NOT NULL CHECK (length(authority_digest) = 64),
    interval_seconds REAL CHECK (interval_seconds > 0 AND interval_seconds <= 31622400),
    on_change_delay_seconds REAL CHECK (on_change_delay_seconds BETWEEN 0 AND 31622400),
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    PRIMARY KEY (namespace_key, authority_digest)
) STRICT, WITHOUT ROWID;

-- The namespaces that a generation's interval refreshes go round.
CREATE INDEX refresh_schedules_interval ON refresh_schedules (authority_digest, namespace_key)
    WHERE interval_seconds IS NOT NULL;
