-- A database big enough for the planner to care: one namespace of 5,000 nodes, 100 of 50, and many that are hardly there.
CREATE TEMPORARY TABLE filled AS
SELECT sha256(number::text::bytea) AS key, number, CASE WHEN number = 0 THEN 5000 WHEN number <= 100 THEN 50 ELSE 0 END AS nodes
FROM generate_series(0, 3000) AS number;

INSERT INTO namespace
SELECT key, 'acme', 'user-' || number, 'default', 'history', nodes, repeat('0', 64), nodes, nodes, nodes, 0 FROM filled;

INSERT INTO change_set
SELECT key, revision, 'Test', 'request', 'tester', '', now(), now(), '[]', repeat('0', 64)
FROM filled CROSS JOIN LATERAL generate_series(1, nodes) AS revision;

-- Every tenth node has a second revision.
INSERT INTO node_revision
SELECT key, 'node-' || to_char(node, 'FM000000'), revision, 1 + node % 3, 1 + node % 6, 'content',
       md5(node::text) || repeat('0', 32), '[]', '', now(), 0.5, 0.5, '[]', '[]', '{"a": "b"}', now(), now(), now(), '',
       CASE revision WHEN 1 THEN greatest(1, node / 2) ELSE greatest(2, node) END,
       CASE WHEN revision = 1 AND node % 10 = 0 THEN greatest(2, node) END
FROM filled CROSS JOIN LATERAL generate_series(1, nodes) AS node
CROSS JOIN LATERAL generate_series(1, CASE WHEN node % 10 = 0 THEN 2 ELSE 1 END) AS revision;

INSERT INTO node_evidence
SELECT DISTINCT key, 'node-' || to_char(node, 'FM000000'), sha256(item::text::bytea)
FROM filled CROSS JOIN LATERAL generate_series(1, nodes) AS node CROSS JOIN generate_series(1, 2) AS item;

INSERT INTO request
SELECT key, 'Test', 'key-' || node, 'v1:x', '{}', node FROM filled CROSS JOIN LATERAL generate_series(1, nodes) AS node;

INSERT INTO session
SELECT key, 'session-' || item, '{}', 1, repeat('0', 64), 1, 'tester', now(), NULL, NULL
FROM filled CROSS JOIN generate_series(1, 10) AS item;

INSERT INTO session_binding
SELECT namespace_key, session_id, 1, '{}', now(), 'tester' FROM session;

INSERT INTO run
SELECT namespace_key, session_id, 'run-' || item, 'a', 'host', 1, 0, 'context', 'tester', now(), now(), NULL
FROM session CROSS JOIN generate_series(1, 2) AS item;

INSERT INTO context
SELECT namespace_key, session_id || run_id, session_id, run_id, incarnation, 0 FROM run;

INSERT INTO access_event
SELECT namespace_key, 'event-' || node_id || revision, 1 + revision % 2, 'session', 'context', node_id, revision,
       'tester', now()
FROM node_revision;

-- Every third namespace has ten more sessions, which are bound to a generation; half of them were closed.
INSERT INTO session
SELECT key, 'bound-' || item, format('{"semantic_generation": {"authority_digest": "%s"}}', repeat('a', 64))::json, 1, repeat('0', 64), 1 + item % 2, 'tester', now(), NULL, NULL
FROM filled CROSS JOIN generate_series(1, 10) AS item
WHERE number % 3 = 0;

INSERT INTO embedding
SELECT key, decode(repeat('aa', 32), 'hex'), sha256(node::text::bytea), decode(repeat('00', 1536), 'hex')
FROM filled CROSS JOIN LATERAL generate_series(1, nodes) AS node;

INSERT INTO semantic_partition
SELECT key, repeat('a', 64), 70, 'history', greatest(0, nodes - number % 2), 70, now() FROM filled;

INSERT INTO refresh_intent
SELECT namespace_key, authority_digest, true, 1, 'nonce', 0, repeat('0', 64), 'history', 0, 0, '{}', now()
FROM semantic_partition;

INSERT INTO refresh_receipt
SELECT namespace_key, authority_digest, given.fence, 1, 0, 'history', repeat('0', 64), 0, 0, 'INDEX_REVISION_CAS', '{}', now(), false
FROM semantic_partition JOIN filled ON key = namespace_key AND number <= 200 CROSS JOIN generate_series(1, 70) AS given (fence);

INSERT INTO refresh_run
SELECT namespace_key, authority_digest, run_number % 64, run_number, now(), now(), 1, '', 1, 1
FROM semantic_partition JOIN filled ON key = namespace_key AND number <= 200 CROSS JOIN generate_series(7, 70) AS run_number;

INSERT INTO refresh_schedule
SELECT key, repeat(CASE WHEN number % 10 = 0 THEN 'a' ELSE 'b' END, 64), CASE WHEN number % 20 = 0 THEN 60 END, 5, 'tester', now()
FROM filled;

ANALYZE;
