import { create } from "@bufbuild/protobuf";
import type { CallOptions, WriteOptions } from "../calls.js";
import { IncompleteStreamError } from "../errors.js";
import {
  ExportNamespaceRequestSchema,
  ImportNamespaceRequestSchema,
  TransferService,
  type ImportNamespaceRequest,
} from "../gen/durablememory/v1/transfer_service_pb.js";
import { fromNamespace } from "../values/namespace.js";
import { lineOf, requestsOf, toImported, type Imported } from "../values/transfer.js";
import { SemanticCalls } from "./semantic_calls.js";

/** All of a namespace, out of a store and into another: one JSON record per line, header first, footer last. */
export class TransferCalls extends SemanticCalls {
  /**
   * Everything that the namespace has, as lines without line ends. Only one that ends without an error is one.
   *
   * Reasons: HISTORY_COMPACTED. Reading throws IncompleteStreamError for one without a footer.
   */
  async *exportNamespace(options: CallOptions = {}): AsyncGenerator<string, void, undefined> {
    const request = create(ExportNamespaceRequestSchema, { namespace: fromNamespace(this.ref) });
    let complete = false;
    for await (const { records } of this.calls.stream(TransferService.method.exportNamespace, request, options)) {
      for (const record of records) {
        complete = record.record.case === "footer";
        yield lineOf(record);
      }
    }
    if (!complete) {
      throw new IncompleteStreamError("the export ended before its footer");
    }
  }

  /**
   * Take an export into this namespace, which must be empty and the exported one: all or nothing, verified.
   *
   * It is sent once, because `lines` can be read only once: after a lost connection, call again with the same lines and
   * the error's `requestId`.
   *
   * Reasons: REVISION_CONFLICT (the namespace is not empty), INVALID_FIELD (the export is of another one),
   * DATA_CORRUPTED, NAMESPACE_TOO_LARGE. @throws SyntaxError for a line that is no record.
   */
  async importNamespace(
    lines: Iterable<string> | AsyncIterable<string>,
    options: WriteOptions = {},
  ): Promise<Imported> {
    const first = create(ImportNamespaceRequestSchema, {
      namespace: fromNamespace(this.ref),
      requestId: options.requestId ?? "",
    });
    async function* others(): AsyncGenerator<ImportNamespaceRequest> {
      for await (const request of requestsOf(lines)) {
        yield create(ImportNamespaceRequestSchema, request);
      }
    }
    return toImported(await this.calls.upload(TransferService.method.importNamespace, first, others(), options));
  }
}
