-- The repository of record in one file.
--
-- Every row belongs to a namespace, by its 32-byte key. Times are whole microseconds since 1970-01-01 UTC. Text sorts
-- by its UTF-8 bytes (collation BINARY). Ordinary rows are never deleted and node revisions change in `valid_to` only.

-- One row: what makes this store another than every copy that starts with its schema.
CREATE TABLE store (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    history_id TEXT NOT NULL CHECK (length(history_id) = 32)
) STRICT;

-- Keys that sign page tokens; the greatest id is the newest.
CREATE TABLE page_token_keys (
    id INTEGER NOT NULL PRIMARY KEY,
    key BLOB NOT NULL CHECK (length(key) = 32)
) STRICT;

-- Where each namespace stands: `Head`. A namespace has a row from its first write on.
CREATE TABLE namespaces (
    namespace_key BLOB NOT NULL PRIMARY KEY CHECK (length(namespace_key) = 32),
    tenant_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    history_id TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 0),
    chain_digest TEXT NOT NULL CHECK (length(chain_digest) = 64),
    node_count INTEGER NOT NULL CHECK (node_count >= 0),
    active_count INTEGER NOT NULL CHECK (active_count BETWEEN 0 AND node_count),
    active_bytes INTEGER NOT NULL CHECK (active_bytes >= 0),
    session_revision INTEGER NOT NULL CHECK (session_revision >= 0),
    UNIQUE (tenant_id, principal_id, scope_id)
) STRICT, WITHOUT ROWID;

-- Committed change sets; their revisions have no gaps, which the writer ensures by comparing the head.
CREATE TABLE change_sets (
    namespace_key BLOB NOT NULL REFERENCES namespaces (namespace_key),
    namespace_revision INTEGER NOT NULL CHECK (namespace_revision > 0),
    method TEXT NOT NULL,
    request_id TEXT NOT NULL,
    caller TEXT NOT NULL,
    note TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    committed_at INTEGER NOT NULL,
    changes TEXT NOT NULL CHECK (json_valid(changes)),
    chain_digest TEXT NOT NULL CHECK (length(chain_digest) = 64),
    PRIMARY KEY (namespace_key, namespace_revision)
) STRICT, WITHOUT ROWID;

-- Every revision of every node, each tied to the change sets that made and that replaced it.
CREATE TABLE node_revisions (
    namespace_key BLOB NOT NULL,
    node_id TEXT NOT NULL CHECK (node_id <> ''),
    revision INTEGER NOT NULL CHECK (revision > 0),
    kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
    status INTEGER NOT NULL CHECK (status BETWEEN 1 AND 6),
    content TEXT NOT NULL,
    content_digest TEXT NOT NULL CHECK (length(content_digest) = 64),
    surroundings TEXT NOT NULL CHECK (json_valid(surroundings)),
    author TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    importance REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    evidence TEXT NOT NULL CHECK (json_valid(evidence)),
    relations TEXT NOT NULL CHECK (json_valid(relations)),
    labels TEXT NOT NULL CHECK (json_valid(labels)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    committed_at INTEGER NOT NULL,
    decided_by TEXT NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER CHECK (valid_to > valid_from),
    PRIMARY KEY (namespace_key, node_id, revision),
    FOREIGN KEY (namespace_key, valid_from) REFERENCES change_sets (namespace_key, namespace_revision),
    FOREIGN KEY (namespace_key, valid_to) REFERENCES change_sets (namespace_key, namespace_revision)
) STRICT;

-- A node has one current revision.
CREATE UNIQUE INDEX node_revisions_current ON node_revisions (namespace_key, node_id) WHERE valid_to IS NULL;

-- Lists of candidates, and of any other one status.
CREATE INDEX node_revisions_status ON node_revisions (namespace_key, status, node_id) WHERE valid_to IS NULL;

-- Whether a text is remembered, proposed or refused already.
CREATE INDEX node_revisions_content ON node_revisions (namespace_key, content_digest, node_id) WHERE valid_to IS NULL;

-- What each change set did; a node changes once in one.
CREATE UNIQUE INDEX node_revisions_valid_from ON node_revisions (namespace_key, valid_from, node_id);

-- Every piece of evidence that any revision of a node has had.
CREATE TABLE node_evidence (
    namespace_key BLOB NOT NULL REFERENCES namespaces (namespace_key),
    node_id TEXT NOT NULL,
    uri TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (namespace_key, node_id, uri, digest)
) STRICT, WITHOUT ROWID;

-- Results of requests, for their repeats. `result` holds ids, revisions and outcomes, never text.
CREATE TABLE requests (
    namespace_key BLOB NOT NULL REFERENCES namespaces (namespace_key),
    method TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result TEXT NOT NULL CHECK (json_valid(result)),
    namespace_revision INTEGER NOT NULL CHECK (namespace_revision >= 0),
    PRIMARY KEY (namespace_key, method, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    namespace_key BLOB NOT NULL REFERENCES namespaces (namespace_key),
    session_id TEXT NOT NULL,
    binding TEXT NOT NULL CHECK (json_valid(binding)),
    binding_version INTEGER NOT NULL CHECK (binding_version > 0),
    request_digest TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 2),
    opened_by TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    rebound_at INTEGER,
    closed_at INTEGER,
    PRIMARY KEY (namespace_key, session_id)
) STRICT, WITHOUT ROWID;

-- Which bindings a session has had.
CREATE TABLE session_bindings (
    namespace_key BLOB NOT NULL,
    session_id TEXT NOT NULL,
    binding_version INTEGER NOT NULL CHECK (binding_version > 0),
    binding TEXT NOT NULL CHECK (json_valid(binding)),
    bound_at INTEGER NOT NULL,
    bound_by TEXT NOT NULL,
    PRIMARY KEY (namespace_key, session_id, binding_version),
    FOREIGN KEY (namespace_key, session_id) REFERENCES sessions (namespace_key, session_id)
) STRICT, WITHOUT ROWID;

-- Incarnations of runs.
CREATE TABLE runs (
    namespace_key BLOB NOT NULL,
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    host_instance TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4),
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    context_id TEXT NOT NULL,
    begun_by TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    active_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (namespace_key, session_id, run_id, incarnation),
    FOREIGN KEY (namespace_key, session_id) REFERENCES sessions (namespace_key, session_id)
) STRICT, WITHOUT ROWID;

-- The newest incarnation of a run, and all in the order of an export.
CREATE INDEX runs_order ON runs (namespace_key, session_id, run_id, opened_at, incarnation);

CREATE TABLE contexts (
    namespace_key BLOB NOT NULL,
    context_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 0),
    PRIMARY KEY (namespace_key, context_id),
    UNIQUE (namespace_key, session_id, run_id, incarnation, sequence),
    FOREIGN KEY (namespace_key, session_id, run_id, incarnation)
        REFERENCES runs (namespace_key, session_id, run_id, incarnation)
) STRICT, WITHOUT ROWID;

-- Admissions and uses of exact revisions.
CREATE TABLE access_events (
    namespace_key BLOB NOT NULL,
    event_id TEXT NOT NULL,
    kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 2),
    session_id TEXT NOT NULL,
    context_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    caller TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (namespace_key, event_id),
    FOREIGN KEY (namespace_key, node_id, revision) REFERENCES node_revisions (namespace_key, node_id, revision)
) STRICT, WITHOUT ROWID;

-- Usage per node revision, answered from the index alone.
CREATE INDEX access_events_usage ON access_events (namespace_key, node_id, revision, kind, at);
