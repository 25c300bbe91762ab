"""From headers to a caller."""

import contextvars

import pytest

from durable_memory.domain.caller import Caller, Role
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.rpc.authentication import (
    BearerAuthenticator,
    DevelopmentAuthenticator,
    current_caller,
    set_caller,
)

_ALICE = Caller(name="alice", roles=frozenset({Role.READER}))


class _OneToken:
    def verify(self, token: str) -> Caller | None:
        return _ALICE if token == "good" else None


@pytest.mark.parametrize("value", ["Bearer good", "bearer good", "BEARER good"])
def test_a_known_bearer_token_names_its_caller(value):
    headers = (("user-agent", "test"), ("authorization", value))
    assert BearerAuthenticator(_OneToken()).authenticate(headers) == _ALICE


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("authorization", "good"),),
        (("authorization", "Bearer "),),
        (("authorization", "Bearer bad"),),
        (("authorization", "Bearer  good"),),
        (("authorization", "Basic good"),),
        (("authorization", b"Bearer good"),),
        (("authorization", "Bearer good"), ("authorization", "Bearer good")),
        (("x-authorization", "Bearer good"),),
    ],
)
def test_anything_else_is_one_and_the_same_refusal(headers):
    with pytest.raises(DomainError) as refused:
        BearerAuthenticator(_OneToken()).authenticate(headers)
    assert refused.value.reason is Reason.CREDENTIALS_INVALID
    assert refused.value.message == "the call carries no valid credential"


def test_the_development_identity_may_do_everything_everywhere():
    caller = DevelopmentAuthenticator().authenticate(())
    assert caller.name == "development"
    assert caller.roles == frozenset(Role)
    assert (caller.tenants, caller.principals, caller.scopes) == (None, None, None)


def test_outside_a_call_there_is_no_caller():
    with pytest.raises(LookupError):
        contextvars.Context().run(current_caller)


def test_the_caller_is_that_of_the_task():
    def call() -> Caller:
        set_caller(_ALICE)
        return current_caller()

    assert contextvars.copy_context().run(call) == _ALICE
