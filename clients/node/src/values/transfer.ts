/** Exports as text, and what an import took in. */
import { create, fromJson, toJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { ExportRecordSchema, TransferCountsSchema, type ExportRecord } from "../gen/durablememory/v1/transfer_pb.js";
import type {
  ImportNamespaceRequestSchema,
  ImportNamespaceResponse,
} from "../gen/durablememory/v1/transfer_service_pb.js";
import { toChangeToken, type ChangeToken } from "./namespace.js";

const CHUNK_RECORDS = 256;
const CHUNK_BYTES = 1024 * 1024;

/** What was imported, and where the namespace stands in its new history. */
export interface Imported {
  readonly changeToken: ChangeToken;
  readonly nodes: number;
  readonly nodeRevisions: number;
  readonly changeSets: number;
  readonly requests: number;
  readonly sessions: number;
  readonly runs: number;
  readonly accessEvents: number;
}

/** The record in the JSON mapping of Protocol Buffers, with the proto's field names, on one line. */
export function lineOf(record: ExportRecord): string {
  return JSON.stringify(toJson(ExportRecordSchema, record, { useProtoFieldName: true }));
}

/** The inverse. @throws SyntaxError, which never quotes the line. */
export function recordOf(line: string): ExportRecord {
  let record: ExportRecord | undefined;
  try {
    record = fromJson(ExportRecordSchema, JSON.parse(line) as JsonValue);
  } catch {
    // What the parser says quotes the line, which is memory text.
  }
  if (record?.record.case === undefined) {
    throw new SyntaxError("a line of the export is not a record");
  }
  return record;
}

/** Packs records into requests of a bounded number and size. */
export async function* requestsOf(
  lines: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<MessageInitShape<typeof ImportNamespaceRequestSchema>> {
  let records: ExportRecord[] = [];
  let bytes = 0;
  for await (const line of lines) {
    // A record is never larger on the wire than as text.
    const size = Buffer.byteLength(line);
    if (records.length === CHUNK_RECORDS || (records.length > 0 && bytes + size > CHUNK_BYTES)) {
      yield { records };
      records = [];
      bytes = 0;
    }
    records.push(recordOf(line));
    bytes += size;
  }
  if (records.length > 0) {
    yield { records };
  }
}

export function toImported(message: ImportNamespaceResponse): Imported {
  const counts = message.counts ?? create(TransferCountsSchema);
  return {
    changeToken: toChangeToken(message.changeToken),
    nodes: Number(counts.nodes),
    nodeRevisions: Number(counts.nodeRevisions),
    changeSets: Number(counts.changeSets),
    requests: Number(counts.requests),
    sessions: Number(counts.sessions),
    runs: Number(counts.runs),
    accessEvents: Number(counts.accessEvents),
  };
}
