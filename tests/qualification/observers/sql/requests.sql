-- The commands of a namespace that are on record, by method and request id.
SELECT method, key
FROM request
WHERE namespace_key = $1::bytea;
