-- The ids of all nodes that a namespace ever had.
SELECT DISTINCT node_id
FROM node_revision
WHERE namespace_key = $1;
