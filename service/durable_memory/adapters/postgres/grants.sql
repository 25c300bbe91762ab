-- Least privilege for the role that the service connects as. Run as the owner of the schema, after every `migrate` that
-- applied something: new tables have no grants. Repeating it changes nothing.
--
--     psql "$OWNER_DSN" -v role=durable_memory_service -f grants.sql
--
-- The role can add, and change what is meant to change. It cannot rewrite a committed revision, a change set, a
-- context, an event, a receipt or a cached vector, and it can delete nothing but old receipts and keys of page tokens.
-- Migrations are for the owner.

GRANT USAGE ON SCHEMA durable_memory TO :"role";
GRANT SELECT ON ALL TABLES IN SCHEMA durable_memory TO :"role";

GRANT INSERT ON
    durable_memory.page_token_key, durable_memory.namespace, durable_memory.change_set, durable_memory.node_revision,
    durable_memory.node_evidence, durable_memory.request, durable_memory.session, durable_memory.session_binding,
    durable_memory.run, durable_memory.context, durable_memory.access_event, durable_memory.embedding,
    durable_memory.semantic_partition, durable_memory.refresh_intent, durable_memory.refresh_receipt,
    durable_memory.refresh_run, durable_memory.refresh_schedule, durable_memory.served_generation
TO :"role";

GRANT UPDATE ON
    durable_memory.namespace, durable_memory.session, durable_memory.run, durable_memory.semantic_partition,
    durable_memory.refresh_intent, durable_memory.refresh_run, durable_memory.refresh_schedule,
    durable_memory.served_generation
TO :"role";
GRANT DELETE ON durable_memory.refresh_receipt, durable_memory.page_token_key TO :"role";
GRANT UPDATE (valid_to) ON durable_memory.node_revision TO :"role";
GRANT UPDATE (result, namespace_revision) ON durable_memory.request TO :"role";
