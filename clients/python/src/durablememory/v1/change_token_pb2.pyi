from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ChangeToken(_message.Message):
    __slots__ = ("history_id", "namespace_revision")
    HISTORY_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_REVISION_FIELD_NUMBER: _ClassVar[int]
    history_id: str
    namespace_revision: int
    def __init__(self, history_id: _Optional[str] = ..., namespace_revision: _Optional[int] = ...) -> None: ...
