from durablememory.v1 import change_token_pb2 as _change_token_pb2
from durablememory.v1 import citation_pb2 as _citation_pb2
from durablememory.v1 import decision_pb2 as _decision_pb2
from durablememory.v1 import item_error_pb2 as _item_error_pb2
from durablememory.v1 import namespace_pb2 as _namespace_pb2
from durablememory.v1 import node_pb2 as _node_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProposalOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROPOSAL_OUTCOME_UNSPECIFIED: _ClassVar[ProposalOutcome]
    PROPOSAL_OUTCOME_CREATED: _ClassVar[ProposalOutcome]
    PROPOSAL_OUTCOME_CORROBORATED: _ClassVar[ProposalOutcome]
    PROPOSAL_OUTCOME_UNCHANGED: _ClassVar[ProposalOutcome]
    PROPOSAL_OUTCOME_ALREADY_ACTIVE: _ClassVar[ProposalOutcome]
    PROPOSAL_OUTCOME_PREVIOUSLY_REJECTED: _ClassVar[ProposalOutcome]

class ActivationOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTIVATION_OUTCOME_UNSPECIFIED: _ClassVar[ActivationOutcome]
    ACTIVATION_OUTCOME_ACTIVATED: _ClassVar[ActivationOutcome]
    ACTIVATION_OUTCOME_ALREADY_ACTIVE: _ClassVar[ActivationOutcome]
    ACTIVATION_OUTCOME_REFUSED: _ClassVar[ActivationOutcome]

class RejectionOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REJECTION_OUTCOME_UNSPECIFIED: _ClassVar[RejectionOutcome]
    REJECTION_OUTCOME_REJECTED: _ClassVar[RejectionOutcome]
    REJECTION_OUTCOME_ALREADY_REJECTED: _ClassVar[RejectionOutcome]
    REJECTION_OUTCOME_REFUSED: _ClassVar[RejectionOutcome]
PROPOSAL_OUTCOME_UNSPECIFIED: ProposalOutcome
PROPOSAL_OUTCOME_CREATED: ProposalOutcome
PROPOSAL_OUTCOME_CORROBORATED: ProposalOutcome
PROPOSAL_OUTCOME_UNCHANGED: ProposalOutcome
PROPOSAL_OUTCOME_ALREADY_ACTIVE: ProposalOutcome
PROPOSAL_OUTCOME_PREVIOUSLY_REJECTED: ProposalOutcome
ACTIVATION_OUTCOME_UNSPECIFIED: ActivationOutcome
ACTIVATION_OUTCOME_ACTIVATED: ActivationOutcome
ACTIVATION_OUTCOME_ALREADY_ACTIVE: ActivationOutcome
ACTIVATION_OUTCOME_REFUSED: ActivationOutcome
REJECTION_OUTCOME_UNSPECIFIED: RejectionOutcome
REJECTION_OUTCOME_REJECTED: RejectionOutcome
REJECTION_OUTCOME_ALREADY_REJECTED: RejectionOutcome
REJECTION_OUTCOME_REFUSED: RejectionOutcome

class ProposeCandidatesRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "proposals", "repropose")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PROPOSALS_FIELD_NUMBER: _ClassVar[int]
    REPROPOSE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    proposals: _containers.RepeatedCompositeFieldContainer[CandidateProposal]
    repropose: bool
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., proposals: _Optional[_Iterable[_Union[CandidateProposal, _Mapping]]] = ..., repropose: _Optional[bool] = ...) -> None: ...

class CandidateProposal(_message.Message):
    __slots__ = ("node_id", "memory")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    node_id: str
    memory: _node_pb2.MemoryDraft
    def __init__(self, node_id: _Optional[str] = ..., memory: _Optional[_Union[_node_pb2.MemoryDraft, _Mapping]] = ...) -> None: ...

class ProposeCandidatesResponse(_message.Message):
    __slots__ = ("change_token", "results")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    results: _containers.RepeatedCompositeFieldContainer[ProposalResult]
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., results: _Optional[_Iterable[_Union[ProposalResult, _Mapping]]] = ...) -> None: ...

class ProposalResult(_message.Message):
    __slots__ = ("outcome", "citation")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    outcome: ProposalOutcome
    citation: _citation_pb2.Citation
    def __init__(self, outcome: _Optional[_Union[ProposalOutcome, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ...) -> None: ...

class ListCandidatesRequest(_message.Message):
    __slots__ = ("namespace", "kinds", "labels", "include_surroundings", "page_size", "page_token")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SURROUNDINGS_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    kinds: _containers.RepeatedScalarFieldContainer[_node_pb2.NodeKind]
    labels: _containers.ScalarMap[str, str]
    include_surroundings: bool
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., kinds: _Optional[_Iterable[_Union[_node_pb2.NodeKind, str]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., include_surroundings: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListCandidatesResponse(_message.Message):
    __slots__ = ("change_token", "candidates", "next_page_token")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    candidates: _containers.RepeatedCompositeFieldContainer[_node_pb2.Node]
    next_page_token: str
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., candidates: _Optional[_Iterable[_Union[_node_pb2.Node, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ActivateCandidatesRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "items", "decision", "evidence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    items: _containers.RepeatedCompositeFieldContainer[_citation_pb2.NodeRevisionRef]
    decision: _decision_pb2.Decision
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_citation_pb2.NodeRevisionRef, _Mapping]]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ...) -> None: ...

class ActivateCandidatesResponse(_message.Message):
    __slots__ = ("change_token", "results")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    results: _containers.RepeatedCompositeFieldContainer[ActivationResult]
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., results: _Optional[_Iterable[_Union[ActivationResult, _Mapping]]] = ...) -> None: ...

class ActivationResult(_message.Message):
    __slots__ = ("outcome", "citation", "error")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    outcome: ActivationOutcome
    citation: _citation_pb2.Citation
    error: _item_error_pb2.ItemError
    def __init__(self, outcome: _Optional[_Union[ActivationOutcome, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., error: _Optional[_Union[_item_error_pb2.ItemError, _Mapping]] = ...) -> None: ...

class RejectCandidatesRequest(_message.Message):
    __slots__ = ("namespace", "request_id", "items", "decision", "evidence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: _namespace_pb2.NamespaceRef
    request_id: str
    items: _containers.RepeatedCompositeFieldContainer[_citation_pb2.NodeRevisionRef]
    decision: _decision_pb2.Decision
    evidence: _containers.RepeatedCompositeFieldContainer[_node_pb2.Evidence]
    def __init__(self, namespace: _Optional[_Union[_namespace_pb2.NamespaceRef, _Mapping]] = ..., request_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_citation_pb2.NodeRevisionRef, _Mapping]]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., evidence: _Optional[_Iterable[_Union[_node_pb2.Evidence, _Mapping]]] = ...) -> None: ...

class RejectCandidatesResponse(_message.Message):
    __slots__ = ("change_token", "results")
    CHANGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    change_token: _change_token_pb2.ChangeToken
    results: _containers.RepeatedCompositeFieldContainer[RejectionResult]
    def __init__(self, change_token: _Optional[_Union[_change_token_pb2.ChangeToken, _Mapping]] = ..., results: _Optional[_Iterable[_Union[RejectionResult, _Mapping]]] = ...) -> None: ...

class RejectionResult(_message.Message):
    __slots__ = ("outcome", "citation", "error")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    outcome: RejectionOutcome
    citation: _citation_pb2.Citation
    error: _item_error_pb2.ItemError
    def __init__(self, outcome: _Optional[_Union[RejectionOutcome, str]] = ..., citation: _Optional[_Union[_citation_pb2.Citation, _Mapping]] = ..., error: _Optional[_Union[_item_error_pb2.ItemError, _Mapping]] = ...) -> None: ...
