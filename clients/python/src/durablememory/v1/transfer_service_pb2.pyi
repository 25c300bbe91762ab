from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import transfer_pb2 as _transfer_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExportNamespaceRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ...) -> None: ...

class ExportNamespaceResponse(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[_transfer_pb2.ExportRecord]
    def __init__(self, records: _Optional[_Iterable[_Union[_transfer_pb2.ExportRecord, _Mapping]]] = ...) -> None: ...

class ImportNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "records")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    records: _containers.RepeatedCompositeFieldContainer[_transfer_pb2.ExportRecord]
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., records: _Optional[_Iterable[_Union[_transfer_pb2.ExportRecord, _Mapping]]] = ...) -> None: ...

class ImportNamespaceResponse(_message.Message):
    __slots__ = ("change_token", "counts")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    counts: _transfer_pb2.TransferCounts
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., counts: _Optional[_Union[_transfer_pb2.TransferCounts, _Mapping]] = ...) -> None: ...
