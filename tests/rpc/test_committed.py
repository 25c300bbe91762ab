"""What is committed is never denied: whatever becomes of the store between the commit and the answer."""

import pytest

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.memory.partition import Partition
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import DomainError, Reason, dependency_unavailable, not_serving
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.store import Outcome, Plan
from tests.rpc.every_rpc import populate, requests
from tests.rpc.messages import namespace
from tests.rpc.reflected import reflected_rpcs
from tests.rpc.refusals import answer_or_error, error_info

LOSSES = [
    dependency_unavailable("the database cannot be reached"),
    DomainError(Reason.OVERLOADED, "no database connection is free", dependency="store"),
    not_serving("closed", "the store is closed"),
]
READ_NOTHING = {
    "SessionService.OpenSession",
    "SessionService.RebindSession",
    "SessionService.CloseSession",
    "SessionService.BeginRun",
    "SessionService.EndRun",
    "TransferService.ImportNamespace",
}
"""Their requests keep all that they answer."""
NO_COMMIT = {"SemanticService.RefreshSemanticRecall", "SemanticService.ClearPartition", "SemanticService.SetSchedule"}
"""Not in this store; theirs is asked for in the tests of their use cases."""


class LostAfterCommit(MemoryStore):
    """When it has a `loss`, it is lost with that as soon as something is committed."""

    def __init__(self) -> None:
        super().__init__(SystemIds())
        self.loss: DomainError | None = None
        self.committed = False

    async def transact(self, namespace: Namespace, plan: Plan) -> Outcome:
        outcome = await super().transact(namespace, plan)
        self.committed = True
        return outcome

    def _partition(self, namespace: Namespace) -> Partition:
        if self.loss is not None and self.committed:
            raise self.loss
        return super()._partition(namespace)

    def lose(self, loss: DomainError) -> None:
        """From the next commit on."""
        self.loss, self.committed = loss, False

    def mend(self) -> None:
        self.loss = None


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.reason.value)
async def test_neither_an_attempt_nor_its_repeat_denies_a_change_when_the_store_is_lost_after_the_commit(
    serve_application, loss
):
    store = LostAfterCommit()
    stubs = await (await serve_application(store_object=store)).stubs()
    for rpc in await reflected_rpcs(stubs.channel):
        if "request_id" not in rpc.request_class.DESCRIPTOR.fields_by_name or rpc.name in NO_COMMIT:
            continue
        where = namespace(scope=rpc.name)
        known = await populate(stubs, where)
        request = requests(where, known)[rpc.name]
        if rpc.name == "SessionService.OpenSession":
            request.session_id = "another"
        if rpc.name == "RecallService.ActiveRecall":
            request.MergeFrom(rpc.request_class(request_id="admits", admit=True, context_id=known.context_id))
        if rpc.name == "TransferService.ImportNamespace":
            store._partitions.clear()
            (_,) = await rpc.call(stubs.channel, request)
        answers = []
        for _ in range(2):
            store.lose(loss)
            answers.append(await answer_or_error(rpc.call(stubs.channel, request)))
            assert store.committed, rpc.name
            store.mend()
        told = {_reason(answer) for answer in answers}
        assert told == ({None} if rpc.name in READ_NOTHING else {"ERROR_REASON_OUTCOME_UNKNOWN"}), rpc.name
        # And it is answered with what it did.
        assert len(await rpc.call(stubs.channel, request)) == 1


def _reason(answer):
    return None if isinstance(answer, list) else error_info(answer).reason
