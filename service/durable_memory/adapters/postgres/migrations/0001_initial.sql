-- The repository of record. Invariants are here first and in code second.
--
-- Every row carries its namespace's key, the SHA-256 of tenant, principal and scope, and every statement compares it
-- by equality. What grows with use is hash-partitioned by it, so that one namespace lives in one partition of each
-- table. Ids and names have collation C: they are compared and ordered byte by byte, whatever the database's locale.

CREATE DOMAIN namespace_hash AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN identifier AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 256);
CREATE DOMAIN hex_digest AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{64}$');

-- One row: the random id that history ids of namespaces are derived from. A copy that goes its own way needs another.
CREATE TABLE store (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    history_id text COLLATE "C" NOT NULL CHECK (history_id <> '')
);
INSERT INTO store (history_id) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- What signs page tokens, for all processes: the newest two count.
CREATE TABLE page_token_key (
    key_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    secret bytea NOT NULL CHECK (octet_length(secret) = 32)
);

-- Where a namespace stands. The row is the lock of its change sets. Half-filled pages keep its updates in place.
CREATE TABLE namespace (
    namespace_key namespace_hash PRIMARY KEY,
    tenant_id identifier NOT NULL,
    principal_id identifier NOT NULL,
    scope_id identifier NOT NULL,
    history_id text COLLATE "C" NOT NULL CHECK (history_id <> ''),
    revision bigint NOT NULL CHECK (revision >= 0),
    chain_digest hex_digest NOT NULL,
    node_count bigint NOT NULL CHECK (node_count >= 0),
    active_count bigint NOT NULL CHECK (active_count BETWEEN 0 AND node_count),
    active_bytes bigint NOT NULL CHECK (active_bytes >= 0),
    session_revision bigint NOT NULL CHECK (session_revision >= 0),
    CONSTRAINT namespace_parts UNIQUE (tenant_id, principal_id, scope_id)
) WITH (fillfactor = 50);

-- One row per namespace revision: what it changed, by whom, and the digest of everything up to it.
CREATE TABLE change_set (
    namespace_key namespace_hash NOT NULL REFERENCES namespace,
    namespace_revision bigint NOT NULL CHECK (namespace_revision >= 1),
    method text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    caller text COLLATE "C" NOT NULL,
    note text NOT NULL,
    occurred_at timestamptz NOT NULL,
    committed_at timestamptz NOT NULL,
    changes json NOT NULL,
    chain_digest hex_digest NOT NULL,
    PRIMARY KEY (namespace_key, namespace_revision)
) PARTITION BY HASH (namespace_key);

-- Every revision of every node. Only valid_to is ever updated, once: when the next revision is committed.
CREATE TABLE node_revision (
    namespace_key namespace_hash NOT NULL,
    node_id identifier NOT NULL,
    revision bigint NOT NULL CHECK (revision >= 1),
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 3),
    status smallint NOT NULL CHECK (status BETWEEN 1 AND 6),
    content text NOT NULL CHECK (octet_length(content) <= 65536),
    content_digest hex_digest NOT NULL,
    surroundings json NOT NULL,
    author text NOT NULL CHECK (octet_length(author) <= 256),
    occurred_at timestamptz NOT NULL,
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    importance double precision NOT NULL CHECK (importance BETWEEN 0 AND 1),
    evidence json NOT NULL,
    relations json NOT NULL,
    labels jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    committed_at timestamptz NOT NULL,
    decided_by text COLLATE "C" NOT NULL,
    valid_from bigint NOT NULL,
    valid_to bigint,
    PRIMARY KEY (namespace_key, node_id, revision),
    -- Whatever is stored was committed by a change set that is stored.
    CONSTRAINT node_revision_change_set
        FOREIGN KEY (namespace_key, valid_from) REFERENCES change_set (namespace_key, namespace_revision),
    CONSTRAINT node_revision_validity CHECK (valid_to > valid_from)
) PARTITION BY HASH (namespace_key);

-- A node has one current revision.
CREATE UNIQUE INDEX node_revision_current ON node_revision (namespace_key, node_id) WHERE valid_to IS NULL;
-- A change set gives a node one revision; deltas and change sets find theirs here.
CREATE UNIQUE INDEX node_revision_committed ON node_revision (namespace_key, valid_from, node_id);
CREATE INDEX node_revision_content ON node_revision (namespace_key, content_digest, node_id) WHERE valid_to IS NULL;

-- Which evidence a node has had in any revision, by the digest of uri and source digest.
CREATE TABLE node_evidence (
    namespace_key namespace_hash NOT NULL,
    node_id identifier NOT NULL,
    evidence_key bytea NOT NULL CHECK (octet_length(evidence_key) = 32),
    PRIMARY KEY (namespace_key, node_id, evidence_key)
) PARTITION BY HASH (namespace_key);

-- The first result of every keyed call: ids, revisions and outcomes, never text.
CREATE TABLE request (
    namespace_key namespace_hash NOT NULL,
    method text COLLATE "C" NOT NULL CHECK (method <> ''),
    key identifier NOT NULL,
    fingerprint text COLLATE "C" NOT NULL CHECK (fingerprint <> ''),
    result json NOT NULL,
    namespace_revision bigint NOT NULL CHECK (namespace_revision >= 0),
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (namespace_key, method, key)
) PARTITION BY HASH (namespace_key);

CREATE TABLE session (
    namespace_key namespace_hash NOT NULL REFERENCES namespace,
    session_id identifier NOT NULL,
    binding json NOT NULL,
    binding_version bigint NOT NULL CHECK (binding_version >= 1),
    request_digest text COLLATE "C" NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 2),
    opened_by text COLLATE "C" NOT NULL,
    opened_at timestamptz NOT NULL,
    rebound_at timestamptz,
    closed_at timestamptz,
    PRIMARY KEY (namespace_key, session_id)
);

-- The audit trail of a session: every binding that it has had.
CREATE TABLE session_binding (
    namespace_key namespace_hash NOT NULL,
    session_id identifier NOT NULL,
    binding_version bigint NOT NULL CHECK (binding_version >= 1),
    binding json NOT NULL,
    bound_at timestamptz NOT NULL,
    bound_by text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace_key, session_id, binding_version),
    CONSTRAINT session_binding_session FOREIGN KEY (namespace_key, session_id) REFERENCES session
);

-- Incarnations of runs.
CREATE TABLE run (
    namespace_key namespace_hash NOT NULL,
    session_id identifier NOT NULL,
    run_id identifier NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    host_instance text COLLATE "C" NOT NULL,
    state smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
    sequence bigint NOT NULL CHECK (sequence >= 0),
    context_id text COLLATE "C" NOT NULL,
    begun_by text COLLATE "C" NOT NULL,
    opened_at timestamptz NOT NULL,
    active_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (namespace_key, session_id, run_id, incarnation),
    CONSTRAINT run_session FOREIGN KEY (namespace_key, session_id) REFERENCES session
) PARTITION BY HASH (namespace_key);

CREATE UNIQUE INDEX run_opened ON run (namespace_key, session_id, run_id, opened_at, incarnation);

-- Context ids that were handed out.
CREATE TABLE context (
    namespace_key namespace_hash NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    session_id identifier NOT NULL,
    run_id identifier NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 0),
    PRIMARY KEY (namespace_key, context_id),
    CONSTRAINT context_run FOREIGN KEY (namespace_key, session_id, run_id, incarnation) REFERENCES run
) PARTITION BY HASH (namespace_key);

CREATE UNIQUE INDEX context_sequence ON context (namespace_key, session_id, run_id, incarnation, sequence);

-- Admissions and uses of exact revisions.
CREATE TABLE access_event (
    namespace_key namespace_hash NOT NULL,
    event_id identifier NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 1 AND 2),
    session_id text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    node_id identifier NOT NULL,
    revision bigint NOT NULL,
    caller text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (namespace_key, event_id),
    CONSTRAINT access_event_revision
        FOREIGN KEY (namespace_key, node_id, revision) REFERENCES node_revision
) PARTITION BY HASH (namespace_key);

CREATE INDEX access_event_node ON access_event (namespace_key, node_id, revision, kind, at);

DO $$
DECLARE
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY[
        'change_set', 'node_revision', 'node_evidence', 'request', 'run', 'context', 'access_event'
    ] LOOP
        FOR remainder IN 0..15 LOOP
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
                parent || '_p' || to_char(remainder, 'FM00'), parent, remainder
            );
        END LOOP;
    END LOOP;
END
$$;
