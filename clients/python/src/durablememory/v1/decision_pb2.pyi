from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecisionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_KIND_UNSPECIFIED: _ClassVar[DecisionKind]
    DECISION_KIND_MANUAL: _ClassVar[DecisionKind]
    DECISION_KIND_VERIFICATION: _ClassVar[DecisionKind]
DECISION_KIND_UNSPECIFIED: DecisionKind
DECISION_KIND_MANUAL: DecisionKind
DECISION_KIND_VERIFICATION: DecisionKind

class Decision(_message.Message):
    __slots__ = ("kind", "decider", "note")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DECIDER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    kind: DecisionKind
    decider: str
    note: str
    def __init__(self, kind: _Optional[_Union[DecisionKind, str]] = ..., decider: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...
