import type { Citation as CitationMessage, NodeRevisionRef } from "../gen/durablememory/v1/citation_pb.js";

const FORM = /^dm1:([0-9]{1,19}):([^:@#\s]+)@([1-9][0-9]{0,18})#([0-9a-f]{64})$/;

/**
 * One committed revision of one node, and the digest of its content.
 *
 * `String(citation)` is its one form, `dm1:<namespace revision>:<node id, percent-encoded>@<revision>#<digest>`. Every
 * method that takes a citation takes that string as well.
 */
export class Citation {
  readonly namespaceRevision: bigint;
  readonly nodeId: string;
  readonly nodeRevision: bigint;
  readonly contentDigest: string;

  constructor(fields: {
    readonly namespaceRevision: bigint;
    readonly nodeId: string;
    readonly nodeRevision: bigint;
    readonly contentDigest: string;
  }) {
    this.namespaceRevision = fields.namespaceRevision;
    this.nodeId = fields.nodeId;
    this.nodeRevision = fields.nodeRevision;
    this.contentDigest = fields.contentDigest;
  }

  /** The inverse of `String`. @throws SyntaxError. */
  static parse(text: string): Citation {
    const [, namespaceRevision, node, nodeRevision, contentDigest] = FORM.exec(text) ?? [];
    const nodeId = node === undefined ? undefined : decoded(node);
    if (
      namespaceRevision === undefined ||
      nodeId === undefined ||
      nodeRevision === undefined ||
      contentDigest === undefined
    ) {
      throw new SyntaxError("not a citation (dm1:<namespace revision>:<node id>@<revision>#<digest>)");
    }
    return new Citation({
      namespaceRevision: BigInt(namespaceRevision),
      nodeId,
      nodeRevision: BigInt(nodeRevision),
      contentDigest,
    });
  }

  toString(): string {
    return `dm1:${this.namespaceRevision}:${percentEncoded(this.nodeId)}@${this.nodeRevision}#${this.contentDigest}`;
  }

  /** In JSON it is its string. */
  toJSON(): string {
    return this.toString();
  }
}

/** Anything that has a citation: a hit, a node, the result of a write. */
export interface Cited {
  readonly citation: Citation;
}

/** A citation, its canonical string, or anything that has one. */
export type Citable = Citation | Cited | string;

/** One revision of one node, where no digest is needed. */
export interface NodeRevision {
  readonly nodeId: string;
  readonly revision: bigint;
}

/** The citation that is meant. @throws SyntaxError for a string that is none. */
export function citationOf(cited: Citable): Citation {
  if (typeof cited === "string") {
    return Citation.parse(cited);
  }
  // Not by class: a citation may come from another copy of this package.
  return "citation" in cited ? cited.citation : cited;
}

/** The citation that is meant, for a request. */
export function fromCitable(cited: Citable): {
  namespaceRevision: bigint;
  nodeId: string;
  nodeRevision: bigint;
  contentDigest: string;
} {
  const { namespaceRevision, nodeId, nodeRevision, contentDigest } = citationOf(cited);
  return { namespaceRevision, nodeId, nodeRevision, contentDigest };
}

/** The node revision that is meant, where no digest is needed. */
export function revisionRef(cited: Citable): { nodeId: string; revision: bigint } {
  const citation = citationOf(cited);
  return { nodeId: citation.nodeId, revision: citation.nodeRevision };
}

export function toCitation(message: CitationMessage | undefined): Citation {
  return new Citation({
    namespaceRevision: message?.namespaceRevision ?? 0n,
    nodeId: message?.nodeId ?? "",
    nodeRevision: message?.nodeRevision ?? 0n,
    contentDigest: message?.contentDigest ?? "",
  });
}

export function toCitationIf(message: CitationMessage | undefined): Citation | undefined {
  return message === undefined ? undefined : toCitation(message);
}

export function toNodeRevision(message: NodeRevisionRef | undefined): NodeRevision {
  return { nodeId: message?.nodeId ?? "", revision: message?.revision ?? 0n };
}

/** Everything but letters, digits and `_.-~` percent-encoded, as citations and evidence uris have it. */
export function percentEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
