-- Every publication and verified no-op on record, oldest position first.
SELECT namespace_key, authority_digest, fence, index_revision, source_revision, source_history_id, history_digest,
       active_count, indexed_count, consistency, work::text AS work, extract(epoch FROM at)::float8 AS at,
       completed_by_successor
FROM refresh_receipt
WHERE namespace_key = ANY ($1::bytea[])
ORDER BY namespace_key, authority_digest, fence, index_revision, source_revision;
