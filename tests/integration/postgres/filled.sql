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

ANALYZE;
