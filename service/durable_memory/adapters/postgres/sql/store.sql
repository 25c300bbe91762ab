-- name: server
-- What a connection has to know of the server at its other end before it is used.
SELECT pg_is_in_recovery() AS in_recovery,
       CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
       (SELECT history_id FROM store) AS history_id;

-- name: server_role
-- The same of a server whose database may have no schema yet.
SELECT pg_is_in_recovery() AS in_recovery,
       CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline;

-- name: schema_migrations
-- What has been applied to this database, oldest first.
SELECT version, checksum FROM schema_migration ORDER BY version;

-- name: schema_version
-- index: schema_migration_pkey
SELECT max(version) FROM schema_migration;

-- name: page_token_keys
-- The newest two keys, and whether another is due. The first signs: the newest, once every process has had the time to
-- read it. The other verifies until the newest is replaced, which is longer than any token is good for.
-- index: page_token_key_pkey
SELECT secret, created_at < now() - interval '6 days' AS due
FROM (SELECT * FROM page_token_key ORDER BY key_id DESC LIMIT 2) AS newest
ORDER BY created_at > now() - interval '5 minutes', key_id DESC;

-- name: lock_page_token_keys
-- Of several processes that find a key due, one mints it, and the others read it after that.
SELECT pg_advisory_xact_lock(7236829141);

-- name: mint_page_token_key
INSERT INTO page_token_key (secret)
SELECT $1::bytea
WHERE NOT EXISTS (SELECT FROM page_token_key WHERE created_at >= now() - interval '6 days');

-- name: forget_page_token_keys
-- index: page_token_key_pkey
DELETE FROM page_token_key WHERE key_id < (SELECT key_id FROM page_token_key ORDER BY key_id DESC LIMIT 1 OFFSET 1);

-- name: vouch
-- A commit of its own for an answer that repeats what others committed: it waits for the standby as theirs must have.
SELECT pg_logical_emit_message(true, 'durable-memory', '');

-- name: own_session
SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid();

-- name: session_is_executing
SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2 AND state = 'active';

-- name: notify
SELECT pg_notify($1::text, $2::text);
