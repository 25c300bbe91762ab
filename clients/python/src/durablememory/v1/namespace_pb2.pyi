from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class NamespaceRef(_message.Message):
    __slots__ = ("tenant_id", "principal_id", "scope_id")
    TENANT_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_ID_FIELD_NUMBER: _ClassVar[int]
    tenant_id: str
    principal_id: str
    scope_id: str
    def __init__(self, tenant_id: _Optional[str] = ..., principal_id: _Optional[str] = ..., scope_id: _Optional[str] = ...) -> None: ...
