"""What several commands take: text, decisions, sources, labels, and names of memories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from durable_memory.cli.grouped import OptionGroup
from durable_memory_client import Citation, Decision, Evidence, EvidenceKind, MemoryNamespace, NodeKind, NodeRevision

if TYPE_CHECKING:
    from durable_memory.cli.connected import Invocation

STDIN: Final = "-"

Text = Annotated[str | None, typer.Argument(metavar="TEXT", help="The text; - reads it from stdin", show_default=False)]
TextFile = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Read the text from a file", show_default=False)
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Give it a label; repeatable", show_default=False),
]
FilterLabels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Only with this label; repeatable", show_default=False),
]
FilterKinds = Annotated[
    list[NodeKind] | None,
    typer.Option("--kind", case_sensitive=False, help="Only this kind; repeatable", show_default=False),
]
RequestId = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        show_default=False,
        help="Identifies the change, so that the same command again cannot make it twice [default: a new id]",
    ),
]
Exact = Annotated[
    str, typer.Argument(metavar="ID@REVISION", help="The revision that you have read, or its whole citation")
]
Exacts = Annotated[
    list[str],
    typer.Argument(metavar="ID@REVISION", help="The revisions that you have read, or their whole citations"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOptions(OptionGroup):
    """Who decides, and why."""

    by: Annotated[
        str,
        typer.Option(metavar="NAME", show_default=False, help="The person who decides [default: the caller]"),
    ] = ""
    rule: Annotated[
        str | None,
        typer.Option(metavar="NAME@VERSION", show_default=False, help="The rule that decides, instead of a person"),
    ] = None
    note: Annotated[
        str, typer.Option(metavar="TEXT", show_default=False, help="Why, for whoever reads the history later")
    ] = ""

    def decision(self) -> Decision:
        """Raises: ValueError."""
        if self.rule is None:
            return Decision.manual(self.by, note=self.note)
        if self.by:
            raise ValueError("a person decides or a rule does: give --by or --rule")
        name, at, version = self.rule.removeprefix("rule:").rpartition("@")
        if not (at and name and version):
            raise ValueError("--rule: a rule is named as NAME@VERSION")
        return Decision.by_rule(name, version, note=self.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(OptionGroup):
    """Where a memory comes from: the service keeps the name of the source and the digest of what it says."""

    source: Annotated[
        str | None,
        typer.Option(metavar="URI", show_default=False, help="Where it comes from, such as a URL"),
    ] = None
    source_kind: Annotated[
        EvidenceKind | None,
        typer.Option(
            case_sensitive=False,
            show_default=False,
            help="What kind of source that is [default: ARTIFACT for a file, else USER_STATEMENT]",
        ),
    ] = None
    source_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="The source as a file: hashed, not kept"),
    ] = None
    source_text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", show_default=False, help="What the source says: hashed, not kept"),
    ] = None
    source_digest: Annotated[
        str | None,
        typer.Option(metavar="sha256:HEX", show_default=False, help="The digest of what the source says"),
    ] = None

    def evidence(self) -> tuple[Evidence, ...]:
        """None or one. Raises: ValueError."""
        bodies = [part for part in (self.source_file, self.source_text, self.source_digest) if part is not None]
        if not bodies:
            if self.source is not None or self.source_kind is not None:
                raise ValueError("say what the source says: --source-file, --source-text or --source-digest")
            return ()
        if len(bodies) > 1:
            raise ValueError("give one of --source-file, --source-text and --source-digest")
        uri, body = self.source, None
        if self.source_file is not None:
            body = _read(self.source_file)
            uri = uri or self.source_file.resolve().as_uri()
        elif self.source_text is not None:
            body = self.source_text.encode()
        if uri is None:
            raise ValueError("name the source with --source URI")
        default = EvidenceKind.USER_STATEMENT if self.source_file is None else EvidenceKind.ARTIFACT
        return (Evidence(uri=uri, kind=self.source_kind or default, body=body, digest=self.source_digest),)


@dataclass(frozen=True, slots=True)
class Name:
    """A memory as a person names it; `revision` None means the current one."""

    node_id: str
    revision: int | None
    citation: Citation | None = None

    @classmethod
    def parse(cls, text: str) -> Name:
        """`ID`, `ID@REVISION`, or a citation. An id that itself ends in @ and digits needs the citation.

        Raises: ValueError.
        """
        if text.startswith("dm1:"):
            try:
                citation = Citation.parse(text)
            except ValueError as error:
                raise ValueError(f"{text}: {error}") from error
            return cls(citation.node_id, citation.node_revision, citation)
        node_id, _, revision = text.rpartition("@")
        if node_id and revision.isascii() and revision.isdigit() and 0 < int(revision) < 2**63:
            return cls(node_id, int(revision))
        return cls(text, None)


def short(citation: Citation) -> str:
    """How tables name a revision, and how the next command may."""
    return f"{citation.node_id}@{citation.node_revision}"


async def exact(memory: MemoryNamespace, text: str) -> Citation:
    """The citation of a revision that was named exactly: changes go to what somebody has read, or nowhere.

    Raises: ValueError for a bare id; NodeNotFoundError, RevisionNotFoundError.
    """
    name = Name.parse(text)
    if name.citation is not None:
        return name.citation
    if name.revision is None:
        current = (await memory.get_node(name.node_id)).citation
        raise ValueError(
            f"say which revision you have read. `durable-memory show {name.node_id}` shows the current one, "
            f"{short(current)}."
        )
    return (await memory.get_revision(NodeRevision(name.node_id, name.revision))).citation


def read_text(invocation: Invocation, text: str | None, file: Path | None) -> str | None:
    """The text that was given in one of three ways, without the end of its last line; None if in none.

    Raises: ValueError.
    """
    if text is not None and file is not None:
        raise ValueError("give the text or --file, not both")
    if file is None and text != STDIN:
        return text
    if file is not None:
        raw = _read(file)
    else:  # it can be read once, and a command may have to be repeated
        raw = invocation.kept["stdin"] = invocation.kept.get("stdin") or sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ValueError("the text is not UTF-8") from error


def required_text(invocation: Invocation, text: str | None, file: Path | None) -> str:
    """As `read_text`, and none is a mistake."""
    content = read_text(invocation, text, file)
    if content is None:
        raise ValueError("give the text, - to read it from stdin, or --file FILE")
    return content


def labels(given: Sequence[str] | None) -> dict[str, str]:
    """Raises: ValueError."""
    pairs: dict[str, str] = {}
    for text in given or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ValueError(f"--label: {text!r} is not KEY=VALUE")
        pairs[key] = value
    return pairs


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
