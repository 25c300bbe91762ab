-- So that keys can be replaced, in microseconds as all times; one that was there before counts from now.
ALTER TABLE page_token_keys ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
UPDATE page_token_keys SET created_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000;
