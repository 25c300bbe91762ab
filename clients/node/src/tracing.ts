/** W3C trace context, passed on if the application has OpenTelemetry. */

type Inject = (headers: Record<string, string>) => void;

let injector: Promise<Inject | undefined> | undefined;

/** The headers that the application's propagator sets for the current span; none without OpenTelemetry. */
export async function traceHeaders(): Promise<Record<string, string>> {
  injector ??= findInjector();
  const headers: Record<string, string> = {};
  (await injector)?.(headers);
  return headers;
}

async function findInjector(): Promise<Inject | undefined> {
  try {
    const { context, propagation } = await import("@opentelemetry/api");
    return (headers) => {
      propagation.inject(context.active(), headers);
    };
  } catch (error) {
    // A loader of a test runner or a bundler has errors of its own.
    const code = (error as { readonly code?: unknown } | undefined)?.code;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") {
      return undefined;
    }
    throw error;
  }
}
