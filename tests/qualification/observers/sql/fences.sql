-- The highest fence on record of each partition, and what its newest receipt covers.
SELECT namespace_key, authority_digest, fence, covered_history_id, covered_revision, run_count
FROM semantic_partition
WHERE namespace_key = ANY ($1::bytea[]);
