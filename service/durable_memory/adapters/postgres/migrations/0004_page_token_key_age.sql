-- So that keys can be replaced: one that was there before counts from now.
ALTER TABLE page_token_key ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();
