import {
  clone,
  create,
  isMessage,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { CallOptions, Calls } from "../calls.js";
import { fromNamespace, type Namespace } from "../values/namespace.js";
import { NamespaceRefSchema } from "../gen/durablememory/v1/namespace_pb.js";

/**
 * The contract as it is: any RPC with its own messages, under the same request ids, deadlines, retries and errors; for
 * what the other methods do not offer, and for code that has messages of the contract already.
 */
export class ContractCalls {
  protected readonly calls: Calls;

  /** Which namespace it is, as far as it was stated. */
  readonly ref: Namespace;

  constructor(calls: Calls, ref: Namespace) {
    this.calls = calls;
    this.ref = ref;
  }

  /**
   * Make a unary RPC. A request without a namespace is for this one.
   *
   *     import { RepositoryService } from "@durable-memory/client/v1";
   *     const { node } = await memory.call(RepositoryService.method.getNode, { nodeId: "prefers-tea" });
   */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    return this.calls.unary(method, this.#addressed(method.input, request), options);
  }

  /** The messages of a server-streaming RPC. It is not taken up again when it is lost. */
  callStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<O>, void, undefined> {
    return this.calls.stream(method, this.#addressed(method.input, request), options);
  }

  /** A message of its own, in this namespace unless it names one. */
  #addressed<I extends DescMessage>(schema: I, request: MessageInitShape<I>): MessageShape<I> {
    const message = isMessage(request, schema) ? clone(schema, request) : create(schema, request);
    if ("namespace" in schema.field) {
      const addressed = message as { namespace?: unknown };
      addressed.namespace ??= create(NamespaceRefSchema, fromNamespace(this.ref));
    }
    return message;
  }
}
