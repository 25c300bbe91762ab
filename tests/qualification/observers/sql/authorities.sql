-- The partitions of all namespaces: whoever is not named here has nothing in the index.
SELECT namespace_key, authority_digest
FROM semantic_partition;
