-- The vector index of the embedded default: derived state, which can be lost and rebuilt from the rest of the file.
-- A partition is named by 64 hexadecimal digits; times are microseconds since 1970-01-01 UTC.

-- One row per lease that was ever granted: the highest fence stays when the lease has ended. The last grant is live
-- from `since` until before `expires_at`; a clock that was set back ends it, rather than keeping it for longer.
CREATE TABLE index_leases (
    name          TEXT    NOT NULL PRIMARY KEY,
    highest_fence INTEGER NOT NULL CHECK (highest_fence > 0),
    owner         TEXT,
    nonce         TEXT,
    since         INTEGER,
    expires_at    INTEGER,
    CHECK ((owner IS NULL) = (nonce IS NULL)),
    CHECK ((owner IS NULL) = (since IS NULL)),
    CHECK ((owner IS NULL) = (expires_at IS NULL))
) STRICT, WITHOUT ROWID;

-- The published state of each partition. `segments` is a JSON list, in order.
CREATE TABLE index_manifests (
    partition         TEXT    NOT NULL PRIMARY KEY,
    format            INTEGER NOT NULL,
    descriptor        TEXT    NOT NULL,
    index_revision    INTEGER NOT NULL CHECK (index_revision > 0),
    history_digest    TEXT    NOT NULL,
    fence             INTEGER NOT NULL CHECK (fence > 0),
    nonce             TEXT    NOT NULL,
    source_history_id TEXT    NOT NULL,
    source_revision   INTEGER NOT NULL CHECK (source_revision >= 0),
    segments          TEXT    NOT NULL
) STRICT;

-- Immutable blocks of vectors. `expires_at` is NULL for what is published. `data` comes last, so that the other
-- columns are read without it.
CREATE TABLE index_segments (
    partition  TEXT    NOT NULL,
    segment_id TEXT    NOT NULL,
    nbytes     INTEGER NOT NULL CHECK (nbytes > 0),
    checksum   TEXT    NOT NULL,
    expires_at INTEGER,
    data       BLOB    NOT NULL,
    PRIMARY KEY (partition, segment_id)
) STRICT;

CREATE INDEX index_segments_by_expiry ON index_segments (expires_at) WHERE expires_at IS NOT NULL;
