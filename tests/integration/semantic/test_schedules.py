"""Scheduled refreshes: whichever server is there runs them, one at a time, and a namespace may say when, or never."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from durable_memory_client import IndexState, MaintenancePhase, MaintenanceRunOutcome
from tests.integration.semantic.deployment import (
    ABOUT_MONEY,
    ABOUT_RAIN,
    ABOUT_TEA,
    BRIEF_LEASE_SECONDS,
    MONEY,
    RAIN,
    TEA,
    Deployment,
    Replica,
    assistant,
    by_hand,
    covered,
    refresh,
    remember,
    understands,
    understood,
)
from tests.processes.embedding_provider import says
from tests.processes.polling import wait_until

SECOND = timedelta(seconds=1)


def running(replicas: list[Replica], scope: str) -> list[Replica]:
    """Those that are at a refresh, in whatever namespace."""
    return [replica for replica in replicas if replica.at(scope).get_maintenance_health().running_count]


def test_a_change_is_indexed_by_the_other_server_when_the_one_that_is_at_it_is_killed(
    deployment: Deployment, scope: str
):
    replicas = [deployment.start(vectors_lease_ttl_seconds=BRIEF_LEASE_SECONDS) for _ in range(2)]
    provider = deployment.provider
    session = assistant(replicas[0].at(scope))
    provider.hold()
    remember(replicas[0].at(scope), TEA)
    wait_until(lambda: TEA in provider.texts, what="a server has come to the provider")
    # The other one is at it too for a moment, while it asks for the lease and is refused.
    (at_it,) = wait_until(lambda: alone if len(alone := running(replicas, scope)) == 1 else [], what="one is at it")
    (other,) = set(replicas) - {at_it}
    at_it.server.kill9()
    provider.let_go()

    memory = other.at(scope)
    wait_until(lambda: covered(memory), 60.0, what="the other server has indexed it")
    there = memory.resume_session("assistant", session.info.binding_digest)
    assert understood(there)
    receipts = list(memory.list_receipts())
    assert [receipt.fence > 1 for receipt in receipts] == [True], f"the first was the killed server's: {receipts}"

    at_it.server.start()
    remember(memory, RAIN)
    wait_until(lambda: covered(memory), what="goes on with both")
    assert understood(there, ABOUT_RAIN, "umbrellas")


def test_runs_never_overlap_and_ticks_that_were_missed_are_skipped(deployment: Deployment, scope: str):
    # The provider is silent for as long as it takes until the lease was asked for often enough.
    replicas = [deployment.start(embedding_call_timeout_seconds=600) for _ in range(2)]
    one, other = (replica.at(scope) for replica in replicas)
    provider = deployment.provider
    assistant(one)
    one.set_schedule(interval=SECOND, on_change_delay=SECOND)
    provider.hold()
    remember(one, TEA)
    wait_until(lambda: TEA in provider.texts, what="a server has come to the provider")
    held_since = _grants(deployment)
    # Many ticks of both servers, and more than one interval: the lease is asked for and not granted.
    wait_until(lambda: _grants(deployment) >= held_since + 5, 60.0, what="the other server keeps asking")
    # It counts as one that is at it too for as long as it asks, and is refused.
    wait_until(lambda: len(running(replicas, scope)) == 1, what="one is at it")
    assert provider.provider.most_at_once == 1
    provider.let_go()

    wait_until(lambda: len(one.get_maintenance_health().runs) >= 5, what="five runs")
    runs = one.get_maintenance_health().runs[::-1]
    assert runs[0].outcome is MaintenanceRunOutcome.PUBLISHED
    assert {run.outcome for run in runs[1:]} == {MaintenanceRunOutcome.UNCHANGED}
    run_fences = [run.fence for run in runs]
    assert run_fences == sorted(set(run_fences)), "each had a lease of its own"
    # Each server looks for itself, and each tick is run by one of them. Those that passed while the first run was held
    # are not made up for.
    pauses = [later.started_at - earlier.started_at for earlier, later in pairwise(runs)]
    assert min(pauses) >= SECOND
    fences = [receipt.fence for receipt in other.list_receipts()]
    assert fences == sorted(set(fences), reverse=True)
    for content in (RAIN, MONEY):
        remember(other, content)
    wait_until(lambda: covered(one), what="what came later is indexed as well")
    assert sorted(provider.texts) == sorted(["dimension"] * 2 + [TEA, RAIN, MONEY]), "nothing was embedded twice"
    assert provider.provider.most_at_once == 1, "never by two at a time"
    health = [replica.at(scope).get_maintenance_health() for replica in replicas]
    assert {each.failure_count for each in health} == {0}


def test_a_namespace_that_disabled_its_schedule_moves_only_when_it_is_told_to(deployment: Deployment, scope: str):
    replica = deployment.start()
    quiet, lively = replica.at(scope), replica.at("lively")
    told = by_hand(quiet)
    session = assistant(lively)
    remember(quiet, TEA)
    # Whoever looks for due refreshes has looked many times when changes that came later are indexed.
    for content in (TEA, RAIN, MONEY):
        remember(lively, content)
        wait_until(lambda: covered(lively), what="the other namespace follows its changes")
    assert understood(session, ABOUT_MONEY, "invoices")
    status = quiet.get_index_status()
    assert (status.state, status.last_receipt, status.unindexed_active_count) == (IndexState.NOT_BUILT, None, 1)
    assert quiet.get_maintenance_health().runs == ()

    assert refresh(quiet).indexed_count == 1
    assert understood(told, ABOUT_TEA)
    quiet.set_schedule(on_change_delay=SECOND)
    remember(quiet, RAIN)
    wait_until(lambda: covered(quiet), what="it follows its changes again")


def test_a_namespace_without_an_open_session_costs_nothing(deployment: Deployment, scope: str):
    replica = deployment.start()
    unused, lively = replica.at(scope), replica.at("lively")
    remember(unused, TEA)
    assistant(lively)
    remember(lively, RAIN)
    wait_until(lambda: covered(lively))
    assert TEA not in deployment.provider.texts
    assistant(unused)
    wait_until(lambda: covered(unused), what="its first session is a reason")


def test_a_scheduled_refresh_that_fails_says_why_and_is_tried_again(deployment: Deployment, scope: str):
    memory = deployment.start(embedding_attempts=1).at(scope)
    session = assistant(memory)
    deployment.provider.provider.usually = says(500)
    remember(memory, TEA)
    failure = "SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:UNREACHABLE:status=500"
    wait_until(lambda: memory.get_index_status().last_failure == failure, what="the failure is on record")
    health = memory.get_maintenance_health()
    assert (health.phase, health.last_error) == (MaintenancePhase.FAILING, failure)
    assert (health.runs[0].outcome, health.runs[0].error) == (MaintenanceRunOutcome.FAILED, failure)
    assert memory.get_index_status().state is IndexState.NOT_BUILT

    deployment.provider.provider.usually = understands()
    wait_until(lambda: covered(memory), what="it is tried again by itself")
    assert understood(session)
    assert memory.get_index_status().last_failure == ""


def test_a_restart_does_not_repeat_what_is_done(deployment: Deployment, scope: str):
    replica = deployment.start()
    by_change, by_time = replica.at(scope), replica.at("by time")
    assistant(by_change)
    assistant(by_time)
    by_time.set_schedule(interval=timedelta(hours=1))
    done = []
    for memory in (by_change, by_time):
        remember(memory, TEA)
        wait_until(lambda: covered(memory), what="it is indexed")  # noqa: B023
        done.append(memory.list_receipts().all())

    assert replica.server.terminate() == 0
    replica.server.start()
    replica.wait_ready()
    lively = replica.at("lively")
    assistant(lively)
    remember(lively, RAIN)
    wait_until(lambda: covered(lively), what="the new process runs what is due")
    assert [memory.list_receipts().all() for memory in (by_change, by_time)] == done


def _grants(deployment: Deployment) -> int:
    """How many scripts were run by now: renewals, publications, and attempts at a lease."""
    with deployment.redis.client() as client:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])
