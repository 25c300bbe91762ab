"""What a request asks for, as a digest: a repeated request id must come with the same one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message

from durable_memory.domain.canonical import JsonObject, digest_json
from durable_memory.domain.errors import invalid_field

_VERSION: Final = "v1"
_IDENTITY: Final = frozenset({"namespace", "request_id"})


def fingerprint(method: str, request: Message) -> str:
    """`v1:` and the digest of the method and of every field that the caller set.

    The request id is what the fingerprint is compared under, and the namespace is part of the stored key, where it
    is resolved: the same command with its namespace spelled out is the same command. Fields that the caller left
    alone are not covered, so a server with more fields computes the same value; nor are fields this server does
    not know.

    Raises: INVALID_FIELD for a time or duration that has no JSON form.
    """
    covered: JsonObject = {"method": method, "request": stated_fields(request, omit=_IDENTITY)}
    return f"{_VERSION}:{digest_json('request-fingerprint/v1', covered)}"


def stated_fields(request: Message, *, omit: Collection[str] = ()) -> JsonObject:
    """The fields that the caller set, under their names in the proto, without the top-level ones in `omit`.

    64-bit integers and enum values are text, maps have text keys, and NaN and the infinities are named.
    """
    try:
        fields = MessageToDict(request, preserving_proto_field_name=True)
    except (SerializeToJsonError, ValueError, OverflowError) as error:
        # Only the well-known types refuse a value: the validation of the field says the same with its name.
        raise invalid_field("request", "holds a time or duration out of range") from error
    return {name: value for name, value in fields.items() if name not in omit}
