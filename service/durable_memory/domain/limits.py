"""Every bound of the kernel, in one place.

Sizes of text are bytes of UTF-8 unless a name says otherwise. The contract repeats these numbers in its comments
and `SessionService.GetServerInfo` reports them; a test compares the three.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

NAME_MAX_BYTES: Final = 256
"""Tenant, principal, scope, node, session, run, request and event ids, and idempotency keys."""

CONTENT_MAX_BYTES: Final = 65_536
SURROUNDINGS_MAX_COUNT: Final = 4
SURROUNDING_MAX_BYTES: Final = 4_096
AUTHOR_MAX_BYTES: Final = 256

EVIDENCE_MAX_COUNT: Final = 64
EVIDENCE_URI_MAX_BYTES: Final = 2_048
EVIDENCE_BODY_MAX_BYTES: Final = 1_048_576

RELATIONS_MAX_COUNT: Final = 256

LABELS_MAX_COUNT: Final = 64
LABEL_KEY_MAX_BYTES: Final = 128
LABEL_VALUE_MAX_BYTES: Final = 1_024
SERVER_LABEL_PREFIX: Final = "dm."

CHANGE_SET_MAX_OPERATIONS: Final = 128
NOTE_MAX_BYTES: Final = 1_024
BATCH_MAX_ITEMS: Final = 128

QUERY_MAX_BYTES: Final = 1_048_576
"""Whole documents get pasted into queries; only `QUERY_MAX_TERMS` of their terms cost anything beyond reading."""

MAX_RESULTS_MAX: Final = 100
RELATED_LOOKUPS_MAX: Final = 64
FILTER_MAX_VALUES: Final = 128

PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 500

SNAPSHOT_MAX_NODES: Final = 100_000
SNAPSHOT_MAX_BYTES: Final = 256 * 1024 * 1024

IMPORT_MAX_BYTES: Final = 2 * 1024 * 1024 * 1024
"""All records of one import together: they are verified as a whole before any is written, so they are held."""

IMPORT_MAX_EMPTY_CONTEXTS: Final = 1_000_000
"""How many more contexts the runs of one import may have than the import has records. A run says only how many it has
had, so a small file could claim any number; but who admitted anything into one brings a record of that."""

SESSION_MAX_BINDINGS: Final = 1_000
"""All of them are one record of an export, which has to fit into one message."""

NAMESPACE_MAX_ACTIVE_NODES: Final = 100_000
NAMESPACE_MAX_ACTIVE_BYTES: Final = 256 * 1024 * 1024
"""Content, surroundings and author of the ACTIVE nodes of one namespace: what a view has to hold."""

CLOCK_SKEW_MAX: Final = timedelta(minutes=5)
"""How far a caller's time may lie ahead of the server's."""

RUN_IDLE_MAX: Final = timedelta(hours=1)
"""A run without any call for this long counts as ended."""
