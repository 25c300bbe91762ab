from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Citation(_message.Message):
    __slots__ = ("namespace_revision", "node_id", "node_revision", "content_digest", "canonical")
    NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_REVISION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CANONICAL_FIELD_NUMBER: _ClassVar[int]
    namespace_revision: int
    node_id: str
    node_revision: int
    content_digest: str
    canonical: str
    def __init__(self, namespace_revision: _Optional[int] = ..., node_id: _Optional[str] = ..., node_revision: _Optional[int] = ..., content_digest: _Optional[str] = ..., canonical: _Optional[str] = ...) -> None: ...

class NodeRevisionRef(_message.Message):
    __slots__ = ("node_id", "revision")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    revision: int
    def __init__(self, node_id: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...
