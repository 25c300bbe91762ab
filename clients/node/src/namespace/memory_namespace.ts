import { TransferCalls } from "./transfer_calls.js";

/**
 * A view of one namespace: all calls are made in it. Views share the connection of their client.
 *
 * Each class that it is built on adds the calls of one service of the contract.
 */
export class MemoryNamespace extends TransferCalls {}
