-- Connections, transactions and the store itself.

-- name: journal_mode
-- Readers never wait for the writer. The mode stays with the file; the answer says whether it took.
PRAGMA journal_mode = WAL;

-- name: synchronous
-- Every commit waits until its pages are on stable storage.
PRAGMA synchronous = FULL;

-- name: foreign_keys
PRAGMA foreign_keys = ON;

-- name: journal_size_limit
-- A burst must not leave a large log behind for ever; in bytes.
PRAGMA journal_size_limit = 67108864;

-- name: query_only
PRAGMA query_only = ON;

-- name: begin_read
-- One snapshot from the first statement to the end.
BEGIN DEFERRED;

-- name: begin_write
BEGIN IMMEDIATE;

-- name: savepoint
SAVEPOINT one_plan;

-- name: release
RELEASE one_plan;

-- name: roll_back_to
ROLLBACK TO one_plan;

-- name: ping
-- The cheapest answer that the file, and not only the connection, has to give.
SELECT history_id FROM store WHERE id = 1;

-- name: add_store
INSERT INTO store (id, history_id) VALUES (1, :history_id) ON CONFLICT DO NOTHING;

-- name: page_token_keys
-- The newest two keys, newest first, and whether another is due. The newest signs, and the other verifies until that one
-- is replaced, which is longer than any token is good for.
SELECT key, created_at < (CAST(strftime('%s', 'now') AS INTEGER) - 6 * 86400) * 1000000 AS due
FROM page_token_keys ORDER BY id DESC LIMIT 2;

-- name: add_page_token_key
INSERT INTO page_token_keys (key, created_at) VALUES (:key, CAST(strftime('%s', 'now') AS INTEGER) * 1000000);

-- name: forget_page_token_keys
DELETE FROM page_token_keys WHERE id < (SELECT id FROM page_token_keys ORDER BY id DESC LIMIT 1 OFFSET 1);
