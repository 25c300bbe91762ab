import assert from "node:assert/strict";
import { test } from "node:test";
import { context, propagation, type Context, type ContextManager } from "@opentelemetry/api";
import { ScriptedService } from "./scripted_service.js";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("the trace of the caller is passed on, by the propagator of the application", async () => {
  await using service = await ScriptedService.start();
  await using memory = service.client();
  const active = context.active().setValue(Symbol.for("trace"), TRACE);
  const manager = {
    active: (): Context => active,
    with: (_context: Context, work: () => unknown): unknown => work(),
    bind: (_context: Context, target: unknown): unknown => target,
    enable: (): unknown => manager,
    disable: (): unknown => manager,
  } as unknown as ContextManager;
  context.setGlobalContextManager(manager);
  propagation.setGlobalPropagator({
    inject: (from, carrier, setter) => {
      setter.set(carrier, "traceparent", String(from.getValue(Symbol.for("trace"))));
    },
    extract: (from) => from,
    fields: () => ["traceparent"],
  });
  try {
    await memory.getChangeToken();
  } finally {
    propagation.disable();
    context.disable();
  }
  await memory.getChangeToken();
  const sent = service.calls("RepositoryService.GetChangeToken").map((asked) => asked.headers["traceparent"]);
  assert.deepEqual(sent, [TRACE, undefined]);
});
