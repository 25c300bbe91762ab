"""What a request's fingerprint covers."""

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.fingerprint import fingerprint
from durablememory.v1 import memory_service_pb2, session_service_pb2

_METHOD = "/durablememory.v1.SessionService/BeginRun"


def _begin_run(**fields):
    return session_service_pb2.BeginRunRequest(**{"session_id": "session-1", "host_instance": "host-1", **fields})


def test_a_fingerprint_names_its_version_and_is_a_sha256():
    version, digest = fingerprint(_METHOD, _begin_run()).split(":")
    assert version == "v1"
    assert len(bytes.fromhex(digest)) == 32


def test_the_form_is_frozen_because_stored_requests_outlive_a_version():
    expected = "v1:2bc5026f"
    assert fingerprint(_METHOD, _begin_run(run_id="run-1"))[: len(expected)] == expected


def test_request_id_and_namespace_are_not_covered():
    bare = fingerprint(_METHOD, _begin_run())
    assert fingerprint(_METHOD, _begin_run(request_id="request-1")) == bare
    assert fingerprint(_METHOD, _begin_run(namespace={"tenant_id": "acme"})) == bare


def test_every_other_field_is_covered():
    bare = fingerprint(_METHOD, _begin_run())
    assert fingerprint(_METHOD, _begin_run(session_id="session-2")) != bare
    assert fingerprint(_METHOD, _begin_run(run_id="run-1")) != bare
    assert fingerprint("/durablememory.v1.SessionService/EndRun", _begin_run()) != bare


def test_a_stated_default_differs_from_an_absent_value_only_where_the_contract_tells_them_apart():
    bare = fingerprint(_METHOD, _begin_run())
    assert fingerprint(_METHOD, _begin_run(run_id="")) != bare  # optional: presence means something
    assert fingerprint(_METHOD, _begin_run(request_id="")) == bare


def test_a_field_that_this_server_does_not_know_changes_nothing():
    known = _begin_run()
    unknown = session_service_pb2.BeginRunRequest.FromString(known.SerializeToString() + b"\xfa\x7f\x03new")
    assert fingerprint(_METHOD, unknown) == fingerprint(_METHOD, known)


def test_maps_do_not_depend_on_the_order_of_their_entries():
    first, second = struct_pb2.Struct(), struct_pb2.Struct()
    for name in ("a", "b", "c"):
        first[name] = 1
    for name in ("c", "b", "a"):
        second[name] = 1
    assert fingerprint("m", first) == fingerprint("m", second)


@pytest.mark.parametrize("number", [0.1, 1e300, float("inf"), float("nan"), 5e-324])
def test_any_floating_point_number_has_a_fingerprint(number):
    value = descriptor_pb2.UninterpretedOption(double_value=number)
    assert fingerprint("m", value) == fingerprint("m", value)


def test_integers_beyond_the_exact_range_of_json_numbers_are_told_apart():
    first = descriptor_pb2.UninterpretedOption(positive_int_value=2**64 - 1)
    second = descriptor_pb2.UninterpretedOption(positive_int_value=2**64 - 2)
    assert fingerprint("m", first) != fingerprint("m", second)


def test_an_enum_value_of_a_later_contract_is_covered_as_its_number():
    # Field 2 is an open enum: 99 is none of its names.
    message = session_service_pb2.BeginRunResponse.FromString(b"\x10\x63")
    assert fingerprint("m", message) != fingerprint("m", session_service_pb2.BeginRunResponse())


def test_a_time_without_a_json_form_is_an_invalid_field():
    request = memory_service_pb2.RememberRequest()
    request.memory.occurred_at.CopyFrom(timestamp_pb2.Timestamp(seconds=10**15))
    with pytest.raises(DomainError) as refused:
        fingerprint("m", request)
    assert refused.value.reason is Reason.INVALID_FIELD
