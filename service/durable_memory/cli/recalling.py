"""Commands that find memories: recall, explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.grouped import OptionGroup
from durable_memory.cli.output import Output, Row
from durable_memory.cli.own_session import OWN_SESSION, own_session
from durable_memory.cli.times import Times, age
from durable_memory_client import (
    Degradation,
    Explanation,
    Hit,
    NodeKind,
    Recall,
    RecallFilter,
    RecallMode,
    SemanticPolicy,
)

_REFRESH: Final = "durable-memory index refresh"

Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions(OptionGroup):
    """What narrows a recall."""

    kind: given.FilterKinds = None
    label: given.FilterLabels = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", show_default=False, help="Only what happened at or after: 2030-01-31, or 7d ago"),
    ] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", show_default=False, help="Only what happened before")] = (
        None
    )
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="ID", show_default=False, help="Never this memory; repeatable")
    ] = None

    def filter(self, times: Times) -> RecallFilter:
        """Raises: ValueError."""
        kinds: list[NodeKind] = self.kind or []
        return RecallFilter(
            kinds=kinds,
            labels=given.labels(self.label),
            occurred_from=None if self.since is None else times.given("--since", self.since),
            occurred_until=None if self.until is None else times.given("--until", self.until),
            excluded_node_ids=self.exclude or (),
        )


async def recall(
    invocation: Invocation,
    query: Query,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, metavar="1..100", help="The most hits")] = 5,
    mode: Annotated[
        RecallMode | None,
        typer.Option(
            case_sensitive=False,
            show_default=False,
            help="By words, by meaning, by both, or AUTO: by both where that is possible [default: AUTO]",
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            metavar="0..1",
            show_default=False,
            help="The least part of the query that a hit by words must match; hits by meaning stay",
        ),
    ] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            metavar="-1..1",
            show_default=False,
            help="The least cosine of a hit by meaning; hits by words stay [default: the server's]",
        ),
    ] = None,
    related: Annotated[
        int, typer.Option(min=0, max=64, metavar="0..64", help="How many related memories to read too")
    ] = 0,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="The lexical profile; `info` lists them"),
    ] = None,
    narrowed: FilterOptions,
    surroundings: Annotated[bool, typer.Option("--surroundings", help="Show what stood around each, too")] = False,
) -> None:
    """Find active memories.

    Nothing is recorded, so this is for looking, and not for a model's input.
    """
    if min_similarity is not None and mode is RecallMode.LEXICAL:
        raise ValueError("--min-similarity: nothing is found by meaning in mode lexical")
    found = await invocation.memory.preview(
        query,
        filter=narrowed.filter(invocation.times),
        mode=mode,
        semantic=None if min_similarity is None else SemanticPolicy(min_similarity=min_similarity),
        include_surroundings=surroundings,
        max_results=limit,
        min_score=min_score,
        related_lookups=related,
        lexical_profile=profile,
    )
    output = invocation.output
    if output.as_json:
        output.json(found)
        _say_what_was_missing(output, found, asked_for=mode)
        return
    rows = [
        Row(
            reference=given.short(hit.citation),
            cells=(
                str(hit.rank),
                f"{hit.score:.2f}" if hit.related_to is None else "-",
                hit.channel.lower(),
                "-" if hit.semantic is None else f"{hit.semantic.score:.3f}",
            ),
            text=hit.content,
            details=_details(hit, invocation.times),
        )
        for hit in found.hits
    ]
    output.rows(("#", "score", "channel", "cosine"), rows, empty=f"Nothing found ({invocation.where}).")
    searched = found.searched_node_count
    if found.hits:
        output.note(f"{len(found)} of {searched} active {'memory' if searched == 1 else 'memories'}")
    _say_what_was_missing(output, found, asked_for=mode)


def _say_what_was_missing(output: Output, found: Recall, *, asked_for: RecallMode | None) -> None:
    """That recall had to do without vectors, to whoever reads it, and to a person what is not indexed yet.

    A server that makes no vectors lacks nothing, unless somebody has asked for more.
    """
    degradation, semantic = found.degradation, found.semantic
    if degradation is not None:
        if asked_for is not None or degradation.reason != "SEMANTIC_NOT_CONFIGURED":
            output.warn(degradation.reason, _in_words(degradation))
    elif semantic is not None and semantic.unindexed_active_count:
        output.note(f"{semantic.unindexed_active_count} of them searched by words only: {_REFRESH}")


def _in_words(degradation: Degradation) -> str:
    if degradation.reason == "INDEX_NOT_BUILT":
        return f"searched by words; to search by meaning too: {_REFRESH}"
    return degradation.message


async def explain(
    invocation: Invocation,
    query: Query,
    name: Annotated[str, typer.Argument(metavar="ID", help="The memory that you expected, or wonder about")],
    *,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            show_default=False,
            help=f"The session whose policy counts [default: `{OWN_SESSION}`, bound to the server's defaults]",
        ),
    ] = None,
    narrowed: FilterOptions,
) -> None:
    """Say why a query finds a memory, or does not.

    Its status, the terms that match, its score against the floors, its rank, and the filter or bound that cut it.
    """
    if session is None:
        bound = await own_session(invocation)
    else:
        known = await invocation.memory.get_session(session)
        bound = await invocation.memory.resume_session(session, known.binding_digest)
    node_id = given.Name.parse(name).node_id
    why = await bound.explain(node_id, query, filter=narrowed.filter(invocation.times))
    output = invocation.output
    if output.as_json:
        output.json(why)
        return
    verdict = f"found, at place {why.rank}" if why.recalled else f"not found: {why.exclusion}"
    output.line(f"{given.short(why.citation)}  {why.status}  {verdict}", style="bold")
    lexical = "no term matched" if why.lexical is None else f"{why.lexical.score:.3f}, rank {why.lexical.rank}"
    output.facts(
        [
            ("mode", why.mode_used),
            ("by words", lexical),
            ("matched", f"{why.matched_share:.2f} of the query"),
            ("floor", f"{why.lexical_floor:.3f}"),
            ("by meaning", _by_meaning(why)),
        ]
    )
    rows = [
        Row(
            reference=term.term,
            cells=(
                f"{term.weight:.2f}",
                str(term.document_count),
                "yes" if term.in_own_text else "around it" if term.in_surroundings else "no",
                f"{term.contribution:.3f}",
            ),
            text=term.term,
        )
        for term in why.terms
    ]
    output.rows(
        ("weight", "memories with it", "in this one", "adds"), rows, text="term", empty="The query has no term."
    )


def _by_meaning(why: Explanation) -> str:
    """The state of its vector, with its cosine and rank; or why nothing is known of it."""
    if why.degradation is not None:
        return f"{why.vector_state}, {why.degradation.reason}: {_in_words(why.degradation)}"
    if why.semantic is None:
        return why.vector_state
    return f"{why.vector_state}, cosine {why.semantic.score:.3f}, rank {why.semantic.rank}"


def _details(hit: Hit, times: Times) -> str:
    words = [hit.author]
    if hit.occurred_at is not None and hit.occurred_at.date() != hit.updated_at.date():
        words.append(f"happened {times.show_day(hit.occurred_at)}")
    words.append(f"changed {age(hit.age)}")
    if hit.disputed:
        words.append("disputed")
    if hit.related_to is not None:
        words.append(f"related to {hit.related_to}")
    words += [f"around it: {text}" for text in hit.surroundings]
    return " · ".join(word for word in words if word)
