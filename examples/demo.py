"""The whole story on a real server, told line by line and checked at every step: `make demo`.

A candidate with evidence, a refused and a granted activation, recall, admission, a correction, recall by meaning and
across languages, kill -9 and what is left after it. The server is a child process on a free loopback port, its data a
SQLite file in a temporary folder. Without a packaged model (`durable-memory[local]`) recall is by words, and says so.
"""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from durable_memory_client import (
    Decision,
    DegradationReason,
    Draft,
    Evidence,
    Hit,
    MemoryServiceError,
    MemoryUnavailableError,
    NodeStatus,
    Recall,
    RecallChannel,
    RecallMode,
    ServerInfo,
)
from durable_memory_client.errors import LeaseHeldError
from durable_memory_client.sync import MemoryClient, MemoryRun

DOCUMENT: Final = Path(__file__).resolve().parents[1] / "docs" / "concepts.md"
TURN: Final = "Fridays do not work for me any more. Let us hold the weekly review on Tuesdays at 14:00 from now on."
QUESTION: Final = "When is the weekly review?"
PEANUTS: Final = "用户对花生过敏，点餐时要提醒。"
KNOWN: Final = {
    "dog": "The customer's dog is afraid of thunder.",
    "shed-keys": "The keys to the bicycle shed hang behind the kitchen door.",
    "train-seat": "The user prefers a seat by the window on trains.",
}
BY_MEANING: Final = {"Is their pet scared of storms?": "dog", "自行车棚的钥匙放在哪里？": "shed-keys"}
"""Questions without a content word of the memory that answers them, and that memory."""

_START_SECONDS: Final = 30
_INDEX_SECONDS: Final = 30
_INDEX_POLL_SECONDS: Final = 0.1

console = Console(highlight=False, emoji=False, markup=False, soft_wrap=True)


class Server:
    """`durable-memory serve` as a child process; the same address and file after every restart."""

    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self._command = [sys.executable, "-m", "durable_memory", "serve"]
        self._command += ["--address", self.address, "--store", f"sqlite:///{folder / 'memory.db'}"]
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        return self._process.pid

    def wait_ready(self, memory: MemoryClient) -> ServerInfo:
        """Until it answers, and not for longer than it lives."""
        assert self._process is not None
        for _ in range(_START_SECONDS):
            with contextlib.suppress(MemoryUnavailableError):
                return memory.wait_until_ready(1)
            if self._process.poll() is not None:
                break
        sys.exit(f"the demo failed: the server did not start\n{self.log()}")

    def kill9(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace")


def main() -> None:
    started = time.monotonic()
    console.print(Text("Durable Memory: the whole story on a real server", style="bold"))
    with tempfile.TemporaryDirectory(prefix="durable-memory-demo-") as folder:
        server = Server(Path(folder))
        try:
            tell(server)
        except MemoryServiceError as error:
            sys.exit(f"the demo failed: {error!r}\n{server.log()}")
        finally:
            server.stop()
    console.print(Text(f"\nAll of it held, in {time.monotonic() - started:.1f} seconds.", style="bold green"))


def tell(server: Server) -> None:
    pid = server.start()
    with MemoryClient(server.address, tenant="acme", principal="user-1", scope="assistant") as memory:
        info = server.wait_ready(memory)
        chapter("A server")
        say(f"version {info.version}, process {pid}, {server.address}, one SQLite file")

        chapter("Something to search in: a real document")
        paragraphs = read_paragraphs()
        activated = remember_document(memory, paragraphs)
        say(f"{len(paragraphs)} paragraphs of docs/{DOCUMENT.name}, each proposed with its source")
        check(activated == len(paragraphs), "a rule compared each with the file and activated it: quotes-its-source@1")

        chapter("An agent hears something, and proposes it")
        quote(f"user-1: {TURN}")
        proposed = memory.propose(
            "The weekly review is on Tuesdays at 14:00.",
            node_id="weekly-review",
            evidence=[Evidence.session_turn("assistant", "turn-1", TURN)],
        )
        candidate = memory.get_node("weekly-review")
        say(f"evidence: {candidate.evidence[0].uri}, {str(candidate.evidence[0].digest)[:19]}…")
        check(candidate.status is NodeStatus.CANDIDATE, "it is a candidate")
        check("weekly-review" not in ids(memory.preview(QUESTION, max_results=10).hits), "recall does not know it")

        chapter("Nothing is believed for being confident")
        sure = Evidence.tool_result("model:confidence", "0.99")
        refusal = refused(lambda: memory.activate(proposed, None, evidence=[sure]))
        say(f"activation without a decision: {refusal.reason}")
        quote(refusal.message)
        check(refusal.reason == "EVIDENCE_REQUIRED" and refusal.definite, "refused, and certainly nothing happened")
        active = memory.activate(proposed, Decision.manual("reviewer-1", note="agreed in the team's calendar"))
        check(memory.get_node("weekly-review").status is NodeStatus.ACTIVE, "a person decided: it is active")

        chapter("A turn of the agent")
        session = memory.open_session("assistant", max_results=3)
        with session.run("turn-2") as run:
            recall = run.recall(QUESTION)
            first = recall.hits[0]
            quote(f"{QUESTION}  ->  {first.content}")
            say(str(first.citation))
            check(first.citation == active.citation, f"found first of {recall.searched_node_count}, with its citation")
            check(memory.usage().all() == [], "reading alone is recorded as neither admission nor use")
            check(run.admit([first]).hits == (first,), "admitted: this exact text entered the model's input")
            check(run.record_use([first])[0].recorded, "used: the answer cited it")

            chapter("A correction")
            revised = memory.revise(first, content="The weekly review is on Tuesdays at 15:00.")
            say(f"{short(first)} is replaced by revision {revised.citation.node_revision}")
            again = run.recall(QUESTION).hits[0]
            check(again.content.endswith("15:00."), f"recall answers at once with the new text: {again.content}")
            old = memory.get(first.citation)
            check(old.content == first.content and not old.is_current, f"the old citation still reads: {old.content}")
            stale = run.admit([first]).refused[0].error
            check(stale is not None and stale.reason == "REVISION_CONFLICT", "and can enter no model's input any more")

        chapter("中文, in a scope of its own")
        restaurants = memory.namespace(scope="restaurants")
        remembered = restaurants.remember(PEANUTS, node_id="allergy", request_id="remember-allergy")
        peanuts = restaurants.preview("花生", max_results=1).hits[0]
        check(peanuts.citation == remembered.citation, f"花生  ->  {peanuts.content}")

        chapter("By meaning: another wording, another language")
        for node_id, content in KNOWN.items():
            memory.remember(content, node_id=node_id)
        if info.semantic_generations:
            index(memory)
        with session.run("turn-3") as run:
            ask_by_meaning(memory, run, semantic=bool(info.semantic_generations))

        chapter("kill -9")
        before = everything(memory)
        server.kill9()
        say(f"process {pid} is gone; nothing was flushed, closed or said goodbye to")
        say(f"process {server.start()} starts on the same file")
        server.wait_ready(memory)
        after = everything(memory)
        check(after["recall"] == before["recall"], f"the same recall, the same citations: {short(again)} first")
        check(after["usage"] == before["usage"], "admissions and uses: counts unchanged")
        check(
            after["token"] == before["token"],
            f"the same history, at revision {memory.get_change_token().namespace_revision}",
        )
        check(memory.get(first.citation).content == first.content, "the old citation still reads")
        resumed = memory.resume_session("assistant", session.info.binding_digest)
        check(resumed.info == session.info, "the session goes on, bound to exactly what it was bound to")
        restaurants.retire(remembered)
        replayed = restaurants.remember(PEANUTS, node_id="allergy", request_id="remember-allergy")
        check(replayed == remembered, "a request of before the crash, repeated, gets its first answer: nothing twice")
        check(restaurants.get_node("allergy").status is NodeStatus.ARCHIVED, "and does not undo what was decided since")

        chapter("The same questions after the crash")
        if info.semantic_generations:
            status = memory.get_index_status()
            check(status.unindexed_active_count == 0, f"the vectors are still there: index is {status.state}")
        with resumed.run("turn-4") as run:
            ask_by_meaning(memory, run, semantic=bool(info.semantic_generations))


def read_paragraphs() -> list[str]:
    """The prose of the document, without its tables, headings and drawings."""
    blocks = (block.strip() for block in DOCUMENT.read_text("utf-8").split("\n\n"))
    return [block for block in blocks if block[:1].isalpha() or block.startswith("**")]


def remember_document(memory: MemoryClient, paragraphs: list[str]) -> int:
    """How many paragraphs the rule let in."""
    source = Evidence.artifact(f"file:docs/{DOCUMENT.name}", DOCUMENT.read_bytes())
    memory.propose_many([Draft(content=paragraph, evidence=[source]) for paragraph in paragraphs])
    text = DOCUMENT.read_text("utf-8")
    quoted = [candidate for candidate in memory.list_candidates() if candidate.content in text]
    results = memory.activate_many(quoted, Decision.by_rule("quotes-its-source", 1))
    return sum(result.outcome == "ACTIVATED" for result in results)


def index(memory: MemoryClient) -> None:
    """Cover every memory with vectors: now, or as soon as the refresh that the server began by itself is through."""
    try:
        steps = list(memory.refresh_semantic_recall("assistant"))
        say(f"the server makes vectors soon after a change; asked for them now: {len(steps)} steps to the receipt")
    except LeaseHeldError:
        say("the server makes vectors soon after a change, and is at it")
    ends_at = time.monotonic() + _INDEX_SECONDS
    while (status := memory.get_index_status()).unindexed_active_count and time.monotonic() < ends_at:
        time.sleep(_INDEX_POLL_SECONDS)
    covers = 0 if status.published is None else status.published.live_count
    model = f"{status.generation.model}, {status.generation.dimension} dimensions, on this machine"
    check(status.unindexed_active_count == 0, f"the index covers all {covers} active memories: {model}")


def ask_by_meaning(memory: MemoryClient, run: MemoryRun, *, semantic: bool) -> None:
    """Each question by words alone, and as an agent asks it, in mode AUTO; last, one that has the memory's words."""
    for question, answer in BY_MEANING.items():
        quote(question)
        words = memory.preview(question, mode=RecallMode.LEXICAL, max_results=3).hits
        check(answer not in ids(words), f"LEXICAL: {words[0].content[:60] + '…' if words else 'nothing'}")
        recall = run.recall(question)
        if semantic:
            first, *others = searched_by_meaning(recall)
            check((first.node_id, first.channel) == (answer, RecallChannel.SEMANTIC), f"AUTO: {found(first, others)}")
        else:
            reason = None if recall.degradation is None else recall.degradation.reason
            lexical = reason is DegradationReason.SEMANTIC_NOT_CONFIGURED and recall.mode_used is RecallMode.LEXICAL
            check(lexical, f"AUTO: DEGRADED, lexical only: {reason}")
    if not semantic:
        say("for recall by meaning: pip install 'durable-memory[local]'")
        return
    quote(QUESTION)
    first, *others = searched_by_meaning(run.recall(QUESTION))
    both = (first.node_id, first.channel) == ("weekly-review", RecallChannel.HYBRID)
    check(both, f"AUTO: {found(first, others)}, by words and by meaning")


def searched_by_meaning(recall: Recall) -> tuple[Hit, ...]:
    """The hits of a recall that went without nothing."""
    if recall.degradation is not None:
        sys.exit(f"the demo failed: {recall.degradation.message}")
    if not recall.hits:
        sys.exit("the demo failed: nothing was found by meaning")
    return recall.hits


def found(first: Hit, others: Sequence[Hit]) -> str:
    """The first hit, and which channel found it how clearly."""
    cosines = [f"{hit.semantic.score:.2f}" for hit in (first, *others) if hit.semantic is not None]
    return f"{first.content}  {first.channel}, cosine {', the next '.join(cosines[:2])}"


def everything(memory: MemoryClient) -> dict[str, object]:
    """What must be the same after the crash."""
    hits = memory.preview(QUESTION, max_results=10).hits
    return {
        "recall": [(hit.citation, hit.score, hit.content) for hit in hits],
        "usage": memory.usage().all(),
        "token": memory.get_change_token(),
    }


def refused(call: Callable[[], object]) -> MemoryServiceError:
    """The error of a call that has to be refused."""
    try:
        call()
    except MemoryServiceError as error:
        return error
    sys.exit("the demo failed: what had to be refused was not")


def ids(hits: tuple[Hit, ...]) -> set[str]:
    return {hit.node_id for hit in hits}


def short(hit: Hit) -> str:
    return f"{hit.citation.node_id}@{hit.citation.node_revision}"


def free_port() -> int:
    """Not one that the system gives to outgoing connections: it has to be free again after the restart."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    sys.exit("the demo needs a free port")


def chapter(title: str) -> None:
    console.print(Text(f"\n{title}", style="bold cyan"))


def say(text: str) -> None:
    console.print(Text(f"    {text}"))


def quote(text: str) -> None:
    console.print(Text(f"    “{text}”", style="italic"))


def check(held: bool, what: str) -> None:
    """Say what held; end the program if it did not."""
    if not held:
        sys.exit(f"the demo failed: not true: {what}")
    console.print(Text("  ✓ ", style="green").append(what, style="default"))


if __name__ == "__main__":
    main()
