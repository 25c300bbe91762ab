-- The digests of the texts of a namespace that were ever embedded, with the vectors they have, by model.
SELECT encode(model_digest, 'hex') AS model_digest, encode(text_digest, 'hex') AS text_digest, vector
FROM embedding
WHERE namespace_key = $1;
