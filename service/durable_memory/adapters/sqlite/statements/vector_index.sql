-- Leases and the vector index.

-- name: find_lease
SELECT highest_fence, owner, nonce, since, expires_at FROM index_leases WHERE name = :name;

-- name: put_lease
INSERT INTO index_leases (name, highest_fence, owner, nonce, since, expires_at)
VALUES (:name, :fence, :owner, :nonce, :since, :expires_at)
ON CONFLICT (name) DO UPDATE SET
    highest_fence = excluded.highest_fence, owner = excluded.owner, nonce = excluded.nonce, since = excluded.since,
    expires_at = excluded.expires_at;

-- name: end_lease
UPDATE index_leases SET owner = NULL, nonce = NULL, since = NULL, expires_at = NULL WHERE name = :name;

-- name: find_manifest
SELECT
    format, descriptor, index_revision, history_digest, fence, nonce, source_history_id, source_revision, segments
FROM index_manifests
WHERE partition = :partition;

-- name: put_manifest
INSERT INTO index_manifests (
    partition, format, descriptor, index_revision, history_digest, fence, nonce, source_history_id, source_revision,
    segments
) VALUES (
    :partition, :format, :descriptor, :index_revision, :history_digest, :fence, :nonce, :source_history_id,
    :source_revision, :segments
)
ON CONFLICT (partition) DO UPDATE SET
    format = excluded.format, descriptor = excluded.descriptor, index_revision = excluded.index_revision,
    history_digest = excluded.history_digest, fence = excluded.fence, nonce = excluded.nonce,
    source_history_id = excluded.source_history_id, source_revision = excluded.source_revision,
    segments = excluded.segments;

-- name: read_segments
SELECT segment_id, data FROM index_segments
WHERE partition = :partition AND segment_id IN (SELECT value FROM json_each(:segment_ids))
    AND (expires_at IS NULL OR expires_at > :now);

-- name: find_segments
-- Without their data.
SELECT segment_id, nbytes, checksum FROM index_segments
WHERE partition = :partition AND segment_id IN (SELECT value FROM json_each(:segment_ids))
    AND (expires_at IS NULL OR expires_at > :now);

-- name: add_segment
INSERT INTO index_segments (partition, segment_id, nbytes, checksum, expires_at, data)
VALUES (:partition, :segment_id, :nbytes, :checksum, :expires_at, :data);

-- name: keep_segments
-- What is published stays published.
UPDATE index_segments SET expires_at = :expires_at
WHERE partition = :partition AND segment_id IN (SELECT value FROM json_each(:segment_ids)) AND expires_at IS NOT NULL;

-- name: publish_segments
UPDATE index_segments SET expires_at = NULL
WHERE partition = :partition AND segment_id IN (SELECT value FROM json_each(:segment_ids)) AND expires_at IS NOT NULL;

-- name: retire_segments
UPDATE index_segments SET expires_at = :expires_at
WHERE partition = :partition AND segment_id IN (SELECT value FROM json_each(:segment_ids)) AND expires_at IS NULL;

-- name: drop_expired_segments
-- Of every partition: those of one that nobody publishes to any more have to go as well.
DELETE FROM index_segments WHERE expires_at <= :now;

-- name: drop_manifest
DELETE FROM index_manifests WHERE partition = :partition;

-- name: drop_published_segments
DELETE FROM index_segments WHERE partition = :partition AND expires_at IS NULL;
