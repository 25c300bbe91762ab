"""What the server has to be, and what callers are told when it is not, or is not there."""

import asyncio
import re

import pytest

from durable_memory.adapters.redis import RedisConnection, RedisSettings, scripts
from durable_memory.adapters.redis.keys import lease_key, manifest_key, segment_key, segment_pattern
from durable_memory.adapters.redis.server import new_client
from durable_memory.domain.errors import DomainError, Reason
from tests.conformance.index_samples import (
    LONG_SECONDS,
    encoded_segment,
    fresh,
    grant,
    publication,
    publish,
    stage,
)
from tests.integration.redis.conftest import NEVER_SECONDS, OpenIndex, left_by_all, made
from tests.processes.free_port import free_port
from tests.processes.polling import wait_until_async
from tests.processes.proxy import Fate, TcpProxy, Way, always, when
from tests.processes.redis import RedisProcess
from tests.processes.redis_binaries import system_redis


async def refusal(call) -> DomainError:
    with pytest.raises(DomainError) as refused:
        await call
    return refused.value


async def test_a_server_that_would_evict_what_was_published_is_refused(redis_server):
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            error = await refusal(made(redis_server.url).index.open())
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert error.reason is Reason.NOT_SERVING
    assert error.metadata == {"state": "index", "policy": "allkeys-lru"}


async def test_a_policy_that_is_changed_later_is_noticed(redis_server, open_index: OpenIndex):
    opened = await open_index(redis_server.url)
    await opened.index.check()
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", "volatile-ttl")
        try:
            assert (await refusal(opened.index.check())).reason is Reason.NOT_SERVING
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    await opened.index.check()


async def test_a_replica_is_no_place_for_an_index(redis_server, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    with redis_server.client() as client:
        client.replicaof("127.0.0.1", str(free_port()))
        try:
            for call in (opened.index.check(), grant(opened.leases, partition)):
                error = await refusal(call)
                assert (error.reason, error.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "index"})
        finally:
            client.replicaof("NO", "ONE")


async def test_errors_name_no_host_port_or_key(partition):
    port = free_port()
    opened = made(f"redis://user:hunter2@127.0.0.1:{port}/0")
    error = await refusal(opened.index.open())
    assert error.reason is Reason.DEPENDENCY_UNAVAILABLE
    text = f"{error.message} {error.metadata}"
    assert not any(secret in text for secret in ("127.0.0.1", str(port), "hunter2", "user"))


async def test_a_closed_index_serves_nothing_and_may_be_opened_again(redis_server, partition):
    opened = made(redis_server.url)
    for _ in range(2):
        assert (await refusal(opened.index.manifest(partition))).metadata == {"state": "closed"}
        await opened.index.open()
        await opened.index.open()
        assert await opened.index.manifest(partition) is None
        await opened.index.close()
        await opened.index.close()


async def test_an_opening_that_fails_leaves_nothing_open(redis_server):
    opened = made(redis_server.url)
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            await refusal(opened.index.open())
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    await left_by_all(redis_server)
    assert (await refusal(opened.index.check())).metadata == {"state": "closed"}


async def test_a_server_that_does_not_answer_is_given_up_by_every_call_after_its_own_time(
    redis_server, open_index: OpenIndex, partition
):
    """It is silent for as long as they ask, and with the time of the other sort they would wait for ever."""
    own = {"attempts": 2, "call_timeout_seconds": NEVER_SECONDS, "transfer_timeout_seconds": NEVER_SECONDS}
    calls = await open_index(redis_server.url, **{**own, "call_timeout_seconds": 2.0})
    transfers = await open_index(redis_server.url, **{**own, "transfer_timeout_seconds": 2.0})
    lease = await grant(calls.leases, partition)
    entry = await stage(calls.index, partition)
    redis_server.stop_answering()
    try:
        # All at once: side by side they count as one, so that each is tried as if it were alone.
        refusals = await asyncio.gather(
            *map(
                refusal,
                (
                    calls.index.check(),
                    calls.index.manifest(partition),
                    calls.index.keep_staged(partition, ["s"], ttl_seconds=LONG_SECONDS),
                    calls.leases.inspect(partition.name),
                    calls.leases.renew(lease),
                    calls.leases.release(lease),
                    grant(calls.leases, partition),
                    calls.index.publish(publication(partition, lease, entry)),
                    transfers.index.segments(partition, ["s"]),
                    transfers.index.stage(partition, "s", encoded_segment(["n"]), ttl_seconds=LONG_SECONDS),
                ),
            )
        )
    finally:
        redis_server.answer_again()
    assert {error.reason for error in refusals} == {Reason.DEPENDENCY_UNAVAILABLE}
    await calls.index.check()


async def test_a_cancelled_call_ends_at_once_and_spoils_no_connection(redis_server, open_index: OpenIndex, partition):
    async with TcpProxy(redis_server.port) as proxy:
        opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0", max_connections=1)
        assert await opened.index.manifest(partition) is None
        proxy.rule = lambda way, _: Fate.HOLD if way is Way.TO_CLIENT else Fate.PASS
        asking = asyncio.create_task(opened.index.manifest(partition))
        await wait_until_async(lambda: proxy.held, what="the answer is on its way")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert proxy.held, "it did not wait for its answer"
        proxy.mend()
        manifest = await publish(opened.index, partition, await grant(opened.leases, partition))
        assert await opened.index.manifest(partition) == manifest
        await opened.index.close()


async def test_a_lost_answer_to_a_grant_is_asked_for_again_and_is_the_first_grant(
    redis_server, open_index: OpenIndex, partition
):
    async with TcpProxy(redis_server.port) as proxy:
        opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
        fates = iter([Fate.CUT_AFTER, Fate.CUT_AFTER])
        nonce = fresh("nonce")

        def rule(way: Way, chunk: bytes) -> Fate:
            return next(fates, Fate.PASS) if way is Way.TO_SERVER and nonce.encode() in chunk else Fate.PASS

        proxy.rule = rule
        lease = await opened.leases.acquire(partition.name, "owner", ttl_seconds=LONG_SECONDS, floor=0, nonce=nonce)
        assert proxy.struck == 2
        assert lease.fence == 1
        assert (await opened.leases.inspect(partition.name)).fence == 1


async def test_a_lost_answer_to_a_publication_is_asked_for_again_and_is_the_first_result(
    redis_server, open_index: OpenIndex, partition
):
    async with TcpProxy(redis_server.port) as proxy:
        opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
        lease = await grant(opened.leases, partition)
        wanted = publication(partition, lease, await stage(opened.index, partition))
        fates = iter([Fate.CUT_AFTER])

        def rule(way: Way, chunk: bytes) -> Fate:
            return next(fates, Fate.PASS) if way is Way.TO_SERVER and wanted.nonce.encode() in chunk else Fate.PASS

        proxy.rule = rule
        manifest = await opened.index.publish(wanted)
        assert proxy.struck == 1
        assert manifest.index_revision == 1
        assert await opened.index.manifest(partition) == manifest


async def test_a_publication_that_is_never_answered_is_unknown_and_a_repeat_settles_it(
    redis_server, open_index: OpenIndex, partition
):
    async with TcpProxy(redis_server.port) as proxy:
        opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
        lease = await grant(opened.leases, partition)
        wanted = publication(partition, lease, await stage(opened.index, partition))
        proxy.rule = when(Way.TO_SERVER, wanted.nonce.encode(), Fate.CUT_AFTER)
        assert (await refusal(opened.index.publish(wanted))).reason is Reason.OUTCOME_UNKNOWN
        proxy.rule = always
        await opened.leases.release(lease)
        assert (await opened.index.publish(wanted)).index_revision == 1


async def test_a_publication_that_never_arrived_is_unknown_and_the_repeat_is_the_first(
    redis_server, open_index: OpenIndex, partition
):
    async with TcpProxy(redis_server.port) as proxy:
        opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
        lease = await grant(opened.leases, partition)
        wanted = publication(partition, lease, await stage(opened.index, partition))
        proxy.rule = when(Way.TO_SERVER, wanted.nonce.encode(), Fate.CUT_BEFORE)
        assert (await refusal(opened.index.publish(wanted))).reason is Reason.OUTCOME_UNKNOWN
        proxy.rule = always
        assert await opened.index.manifest(partition) is None
        assert (await opened.index.publish(wanted)).index_revision == 1


async def test_a_lost_answer_to_a_staging_is_asked_for_again(redis_server, open_index: OpenIndex, partition):
    async with TcpProxy(redis_server.port) as proxy:
        opened = await open_index(f"redis://127.0.0.1:{proxy.port}/0")
        fates = iter([Fate.CUT_AFTER])
        proxy.rule = lambda way, chunk: (
            next(fates, Fate.PASS) if way is Way.TO_SERVER and b"DMS1" in chunk else Fate.PASS
        )
        entry = await stage(opened.index, partition)
        assert proxy.struck == 1
        assert len(await opened.index.segments(partition, [entry.segment_id])) == 1


async def test_a_server_that_forgot_the_scripts_is_given_them_again(redis_server, open_index: OpenIndex, partition):
    opened = await open_index(redis_server.url)
    with redis_server.client() as client:
        for _ in range(2):
            client.script_flush()
            lease = await grant(opened.leases, partition)
            manifest = await opened.index.manifest(partition)
            client.script_flush()
            await publish(opened.index, partition, lease, after=manifest)
            client.script_flush()
            await opened.leases.release(lease)
            assert client.script_exists(scripts.RELEASE.sha1) == [True]


async def test_a_full_server_refuses_to_stage_and_keeps_what_it_has(open_index: OpenIndex, redis_server, partition):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    with redis_server.client() as client:
        client.config_set("maxmemory", "1")
        try:
            error = await refusal(stage(opened.index, partition))
        finally:
            client.config_set("maxmemory", "0")
    assert error.reason is Reason.DEPENDENCY_UNAVAILABLE
    assert error.message == "the index server has no memory left"
    assert await opened.index.manifest(partition) == manifest


async def test_a_manifest_that_cannot_be_read_is_damage_and_a_clearing_mends_it(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    key = manifest_key(partition.name)
    for field, value in (("segments", "[["), ("format", "2"), ("descriptor", "{}"), ("index_revision", "x")):
        manifest = await publish(opened.index, partition, lease)
        with redis_server.client() as client:
            client.hset(key, field, value)
        error = await refusal(opened.index.manifest(partition))
        assert (error.reason, error.metadata) == (Reason.DATA_CORRUPTED, {"what": "manifest"})
        await opened.index.clear(partition, lease)
        with redis_server.client() as client:
            assert client.hkeys(key) == [b"highest_fence"]
            assert not client.exists(segment_key(partition.name, manifest.segments[0].segment_id))


async def test_what_an_unreadable_manifest_listed_is_found_among_more_than_can_be_looked_at_in_one_call(
    redis_server, open_index: OpenIndex, partition, monkeypatch
):
    calls: list[str] = []
    call = RedisConnection.call

    def noted(connection, key, *arguments, **named):
        calls.append(key)
        return call(connection, key, *arguments, **named)

    others = [fresh("other") for _ in range(6_000)]
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    with redis_server.client() as client:
        client.hset(manifest_key(partition.name), "segments", "[")
        client.mset(dict.fromkeys(others, ""))
        monkeypatch.setattr(RedisConnection, "call", noted)
        try:
            await opened.index.clear(partition, lease)
            assert not client.exists(segment_key(partition.name, manifest.segments[0].segment_id))
        finally:
            client.delete(*others)
    assert calls.count(segment_pattern(partition.name)) > 5, "each page has a call of its own, and so the time of one"


async def test_a_published_segment_that_was_taken_away_is_missed_by_the_next_publication(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    with redis_server.client() as client:
        client.delete(segment_key(partition.name, manifest.segments[0].segment_id))
    assert await opened.index.segments(partition, [manifest.segments[0].segment_id]) == {}
    error = await refusal(publish(opened.index, partition, lease, after=manifest))
    assert (error.reason, error.metadata) == (Reason.DATA_CORRUPTED, {"what": "segment", "staged": "false"})
    assert await opened.index.manifest(partition) == manifest


async def test_all_keys_of_a_partition_share_a_hash_tag_and_only_the_published_ones_stay(
    redis_server, open_index: OpenIndex, partition
):
    opened = await open_index(redis_server.url)
    lease = await grant(opened.leases, partition)
    manifest = await publish(opened.index, partition, lease)
    staged = await stage(opened.index, partition)
    with redis_server.client() as client:
        keys = {key.decode(): client.pttl(key) for key in client.keys(f"*{partition.name}*")}
    (published,) = manifest.segments
    assert {key for key, ttl in keys.items() if ttl == -1} == {
        manifest_key(partition.name),
        segment_key(partition.name, published.segment_id),
    }
    assert {key for key, ttl in keys.items() if ttl > 0} == {
        lease_key(partition.name),
        segment_key(partition.name, staged.segment_id),
    }
    assert all(key.startswith(f"dm:{{{partition.name}}}:") for key in keys)


def test_names_that_could_break_the_hash_tag_are_digested_in_keys():
    name = "a" * 64
    assert manifest_key(name) == f"dm:{{{name}}}:manifest"
    for other in ("", "a", "A" * 64, "a" * 65, "}:manifest", f"{name}}}:lease", f"{{{name}}}", "x\n"):
        keys = {lease_key(other), manifest_key(other), segment_key(other, "s")}
        tags = {re.fullmatch(r"dm:\{([0-9a-f]{64})\}:(lease|manifest|seg:s)", key)[1] for key in keys}  # type: ignore[index]
        assert len(tags) == 1
        assert name not in tags


async def test_credentials_are_used_and_a_wrong_one_is_not_retried(redis_server, partition):
    with redis_server.client() as client:
        client.acl_setuser("index", enabled=True, passwords=["+hunter2"], keys=["dm:*"], commands=["+@all"])
        try:
            good = made(f"redis://index:hunter2@127.0.0.1:{redis_server.port}/0")
            await good.index.open()
            await publish(good.index, partition, await grant(good.leases, partition))
            await good.index.close()
            wrong = made(f"redis://index:wrong@127.0.0.1:{redis_server.port}/0", retry_pause_seconds=NEVER_SECONDS)
            error = await refusal(wrong.index.open())
            assert error.message == "the index server refuses calls now"
        finally:
            client.acl_deluser("index")


async def test_a_database_number_of_the_url_is_a_place_of_its_own(redis_server, open_index: OpenIndex, partition):
    first = await open_index(redis_server.url)
    second = await open_index(redis_server.url.removesuffix("/0") + "/1")
    await publish(first.index, partition, await grant(first.leases, partition))
    assert await second.index.manifest(partition) is None


def test_every_bound_is_positive():
    for name in ("max_connections", "attempts", "call_timeout_seconds", "replaced_grace_seconds"):
        with pytest.raises(ValueError, match=name):
            RedisSettings(**{name: 0})


def test_every_script_says_what_it_takes_and_answers():
    for script in scripts.ALL:
        header = script.text.split("\n\n")[0]
        assert "-- KEYS" in header
        assert "-- ARGV" in header
        assert "-- Returns {1" in header
        answers = {int(number) for number in _answers(script.text)}
        assert answers <= {int(answer) for answer in scripts.Answer}
        for number in answers:
            assert f"{{{number}" in header, (script.name, number)


def _answers(text: str) -> list[str]:
    return [line.split("return {")[1][0] for line in text.splitlines() if "return {" in line]


async def test_a_server_that_restarts_empty_is_used_again_without_opening_anew(open_index: OpenIndex, partition):
    with RedisProcess(system_redis()) as server:
        opened = await open_index(server.url)
        first = await grant(opened.leases, partition)
        await publish(opened.index, partition, first)
        server.kill9()
        assert (await refusal(opened.index.check())).reason is Reason.DEPENDENCY_UNAVAILABLE
        server.restart_empty()
        await opened.index.check()
        assert await opened.index.manifest(partition) is None
        assert (await refusal(opened.leases.renew(first))).reason is Reason.LEASE_FENCED
        again = await grant(opened.leases, partition, floor=first.fence)
        assert again.fence == first.fence + 1
        assert (await publish(opened.index, partition, again)).index_revision == 1
        await opened.index.close()


async def test_a_durable_server_that_is_killed_comes_back_with_all_that_was_acknowledged(
    open_index: OpenIndex, partition
):
    with RedisProcess(system_redis(), durable=True) as server:
        opened = await open_index(server.url)
        lease = await grant(opened.leases, partition)
        manifest = None
        for _ in range(5):
            manifest = await publish(opened.index, partition, lease, after=manifest)
        assert manifest is not None
        server.kill9()
        server.start()
        assert await opened.index.manifest(partition) == manifest
        assert len(await opened.index.segments(partition, [item.segment_id for item in manifest.segments])) == 5
        await opened.leases.renew(lease)
        assert (await publish(opened.index, partition, lease, after=manifest)).index_revision == 6
        await opened.index.close()


def test_the_driver_has_no_retries_of_its_own():
    client = new_client("redis://localhost", RedisSettings())
    assert client.connection_pool.connection_kwargs["retry"].get_retries() == 0
