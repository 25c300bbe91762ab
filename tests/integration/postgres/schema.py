"""What a database's schema is, as text that can be compared."""

from collections.abc import Iterator

import asyncpg

from durable_memory.adapters.postgres.pool import SCHEMA

# Partitions are counted; what they have is what their parent has.
_TABLES = """
SELECT relation.relname, relation.relkind, pg_get_partkeydef(relation.oid) AS partitioned_by, relation.reloptions,
       (SELECT count(*) FROM pg_inherits WHERE inhparent = relation.oid) AS partitions
FROM pg_class AS relation
WHERE relation.relnamespace = $1::regnamespace AND relation.relkind IN ('r', 'p') AND NOT relation.relispartition
ORDER BY relation.relname
"""
_COLUMNS = """
SELECT attribute.attname, format_type(attribute.atttypid, attribute.atttypmod) AS type, attribute.attnotnull,
       attribute.attidentity, pg_get_expr(def.adbin, def.adrelid) AS default,
       CASE attribute.attgenerated WHEN 's' THEN 'stored' END AS generated,
       CASE attribute.attstorage WHEN 'e' THEN 'external' END AS storage,
       (SELECT collname FROM pg_collation WHERE oid = attribute.attcollation) AS collation
FROM pg_attribute AS attribute
LEFT JOIN pg_attrdef AS def ON def.adrelid = attribute.attrelid AND def.adnum = attribute.attnum
WHERE attribute.attrelid = $1::regclass AND attribute.attnum > 0 AND NOT attribute.attisdropped
ORDER BY attribute.attnum
"""
_CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(oid) AS definition
FROM pg_constraint WHERE conrelid = $1::regclass AND conparentid = 0 ORDER BY conname
"""
_INDEXES = """
SELECT pg_get_indexdef(indexrelid) AS definition
FROM pg_index WHERE indrelid = $1::regclass ORDER BY indexrelid::regclass::text
"""
_DOMAINS = """
SELECT domain.typname, format_type(domain.typbasetype, domain.typtypmod) AS type,
       (SELECT collname FROM pg_collation WHERE oid = domain.typcollation) AS collation,
       pg_get_constraintdef(con.oid) AS definition
FROM pg_type AS domain
JOIN pg_constraint AS con ON con.contypid = domain.oid
WHERE domain.typnamespace = $1::regnamespace ORDER BY domain.typname
"""


async def describe(dsn: str) -> str:
    """Tables, columns, constraints, indexes and domains, in order."""
    connection = await asyncpg.connect(dsn, server_settings={"search_path": SCHEMA})
    try:
        return "\n".join([line async for line in _lines(connection)]) + "\n"
    finally:
        await connection.close()


async def _lines(connection: asyncpg.Connection):
    for domain in await connection.fetch(_DOMAINS, SCHEMA):
        yield f"domain {domain['typname']} {domain['type']} {domain['collation'] or ''} {domain['definition']}"
    for table in await connection.fetch(_TABLES, SCHEMA):
        name = table["relname"]
        yield ""
        yield " ".join(["table", name, *_told(table, "partitioned_by", "partitions", "reloptions")])
        for column in await connection.fetch(_COLUMNS, name):
            null = "" if column["attnotnull"] else " null"
            details = _told(column, "default", "generated", "storage", "collation")
            yield " ".join([f"  {column['attname']} {column['type']}{null}", *details])
        for constraint in await connection.fetch(_CONSTRAINTS, name):
            yield f"  constraint {constraint['conname']} {constraint['definition']}"
        for index in await connection.fetch(_INDEXES, name):
            yield f"  {index['definition']}"


def _told(row: asyncpg.Record, *names: str) -> Iterator[str]:
    return (f"{name}={row[name]}" for name in names if row[name])
