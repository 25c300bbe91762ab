"""Row 7: a real provider with a real model: who it is, what it costs, and that what was found stays found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from durable_memory_client import MemoryNamespace, MemorySession, RecallMode
from tests.qualification.checks.meaning import lost, misunderstood, several_identities, worse_ranks
from tests.qualification.faults.processes import EmbeddingKilled, EveryServerKilled
from tests.qualification.recorder.operations import Tally
from tests.qualification.report.results import distribution
from tests.qualification.report.timeline import Lane, Series
from tests.qualification.scenarios.meanings import Meanings, indexed, inflict
from tests.qualification.scenarios.stage import Stage

_SESSION: Final = "assistant"
_MOST_MISSED: Final = 3


class EmbeddingProvider:
    row = 7
    name = "embedding_provider"
    promise = (
        "an OpenAI-compatible server with a real model: identity recorded, latency and token distributions kept, "
        "recall rank of paraphrases kept"
    )

    async def run(self, stage: Stage) -> None:
        cluster, result = stage.cluster, stage.result
        seen: dict[str, list[str]] = {}
        calls_before = len(cluster.embedding.tokens)
        async with cluster.client(f"{stage.prefix}provider") as client:
            session = await client.open_session(_SESSION, max_results=5)
            meanings = Meanings(client, Tally(result.operations, stage.timeline))
            await meanings.remember()
            await indexed(client)
            await _identify(stage, client, session, seen, "at first")
            before, seconds = await _timed(stage, meanings, session)
            missed = misunderstood(before, meanings.right, most=_MOST_MISSED)
            stage.found("the model understands", len(before), missed)
            result.figures["right_answer_first"] = len(meanings.right) - len(
                misunderstood(before, meanings.right, most=0)
            )
            result.figures["questions"] = len(meanings.right)

            await ask_while_away(stage, meanings, session, before)
            await inflict(stage, EveryServerKilled())
            await _identify(stage, client, session, seen, "after restarts")
            after, again = await _timed(stage, meanings, session)
            stage.found("paraphrases keep their rank", len(after), worse_ranks(before, after, meanings.right))
        tokens = cluster.embedding.tokens[calls_before:]
        stage.found("there is one identity", sum(map(len, seen.values())), several_identities(seen))
        for name, values, unit in (("question", seconds + again, "seconds"), ("tokens_per_call", tokens, "tokens")):
            measured = distribution(values, unit)
            if measured is not None:
                result.distributions[name] = measured
        result.figures["questions_asked_again"] = meanings.asked_again.total()
        for reason, times in meanings.asked_again.items():
            result.figures[f"questions_asked_again: {reason}"] = times
        stage.found("tokens are counted", len(tokens), [] if sum(tokens) else ["no call said what it cost"])
        result.caveats.append("One model on this machine's processor; latencies of a remote provider are its own.")


async def ask_while_away(
    stage: Stage, meanings: Meanings, session: MemorySession, before: Mapping[str, list[str]]
) -> None:
    """Kill the provider, ask each server what it was asked before, and start it again.

    Each server remembers its own vectors of questions. Which of them the front door chose before, and would choose now,
    is chance: each is asked everything by a line of its own, with the provider there first.
    """
    cluster = stage.cluster
    sessions = {}
    for server, wire in zip(cluster.servers, cluster.wires, strict=True):
        direct = cluster.client(f"{stage.prefix}provider", address=f"127.0.0.1:{wire.port}")
        sessions[server.name] = await direct.resume_session(session.session_id, session.info.binding)
        await meanings.ask(sessions[server.name], RecallMode.SEMANTIC)
    known = {question: answer[0] for question, answer in before.items() if answer}
    asked, problems = 0, []
    with stage.timeline.span(Lane.FAULT, EmbeddingKilled.name, key="embedding"):
        try:
            await cluster.embedding.kill9()
            stage.result.faults[EmbeddingKilled.name] += 1
            for name, direct_session in sessions.items():
                away = await meanings.ask(direct_session, RecallMode.AUTO)
                asked += len(away)
                problems += lost(away, known, f"provider away, {name}")
        finally:
            await cluster.embedding.start()
    stage.found("with the provider away questions that were asked before are answered as before", asked, problems)


async def _identify(
    stage: Stage, memory: MemoryNamespace, session: MemorySession, seen: dict[str, list[str]], when: str
) -> None:
    """Who makes the vectors, as everybody says who knows."""
    for server in stage.cluster.servers:
        async with stage.cluster.client(f"{stage.prefix}provider", address=server.address) as direct:
            generations = (await direct.server_info()).semantic_generations
            seen[f"server {server.index}, {when}"] = [one.authority_digest for one in generations]
    status = await memory.get_index_status()
    assert status.last_receipt is not None
    seen[f"status, {when}"] = [status.generation.authority_digest]
    seen[f"receipt, {when}"] = [status.last_receipt.authority_digest]
    bound = session.info.binding.semantic_generation
    seen[f"session, {when}"] = [] if bound is None else [bound.authority_digest]
    stage.result.figures["model"] = status.generation.model
    stage.result.figures["dimension"] = status.generation.dimension


async def _timed(stage: Stage, meanings: Meanings, session: MemorySession) -> tuple[dict[str, list[str]], list[float]]:
    """What each question finds, and how many seconds the recall took that found it."""
    answers: dict[str, list[str]] = {}
    seconds = []
    for number in meanings.numbers:
        answers |= await meanings.ask(session, RecallMode.SEMANTIC, [number])
        seconds.append(meanings.seconds[f"q{number}"])
        stage.timeline.sample(Series.EMBEDDING_SECONDS, seconds[-1], key="question")
    return answers, seconds


SCENARIO: Final = EmbeddingProvider()
