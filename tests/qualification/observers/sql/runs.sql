-- The runs of the schedule that are still kept.
SELECT namespace_key, authority_digest, run_number, extract(epoch FROM started_at)::float8 AS started_at,
       extract(epoch FROM ended_at)::float8 AS ended_at, outcome, error, index_revision, fence
FROM refresh_run
WHERE namespace_key = ANY ($1::bytea[])
ORDER BY namespace_key, authority_digest, run_number;
