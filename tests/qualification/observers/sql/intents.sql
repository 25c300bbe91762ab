-- What was last about to be published to each partition, and whether that is still in doubt.
SELECT namespace_key, authority_digest, pending, fence, nonce, expected_index_revision, history_digest,
       source_history_id, source_revision, extract(epoch FROM started_at)::float8 AS started_at
FROM refresh_intent
WHERE namespace_key = ANY ($1::bytea[]);
