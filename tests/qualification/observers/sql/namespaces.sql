-- The namespaces of the tenants whose name begins so.
SELECT namespace_key, tenant_id, principal_id, scope_id, history_id, revision, active_count
FROM namespace
WHERE starts_with(tenant_id, $1::text);
