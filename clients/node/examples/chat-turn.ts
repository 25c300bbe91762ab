/**
 * One chat turn with memory. Run it beside `durable-memory serve`:
 *
 *     npm run build:tests && node build/examples/chat-turn.js "I'd rather have tea."
 *
 * What it heard becomes a candidate; once somebody activates that, later turns recall it.
 */
import { pathToFileURL } from "node:url";
import { MemoryClient, MemoryUnavailableError, render, type MemoryNamespace } from "@durable-memory/client";

/** Call your model here. This stand-in repeats what it was shown, and cites it. */
function askTheModel(memories: string, said: string): string {
  return memories === "" ? `You said: ${said}` : `You said: ${said}\nI remember [m1]:\n${memories}`;
}

export async function chatTurn(memory: MemoryNamespace, said: string): Promise<string> {
  const session = await memory.openSession("assistant", { maxResults: 5, onUnavailable: "empty" });
  await using run = await session.beginRun();
  // There is nothing to look for in a lone thumbs-up.
  const recalled = /[\p{L}\p{N}]/u.test(said) ? await run.recall(said) : [];
  const found = render(recalled, { maxBytes: 4_000 });
  const admission = await run.admit(found.hits);
  const shown = render(admission.hits, { maxBytes: 4_000 });
  const answer = askTheModel(shown.text, said);
  try {
    await run.recordUse(shown.cited(answer));
    await memory.propose(said, { evidence: [run.evidence(said)] });
  } catch (error) {
    if (!(error instanceof MemoryUnavailableError)) {
      throw error;
    }
    console.error(`this turn may not have been kept: ${error.message}`);
  }
  return answer;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await using memory = new MemoryClient({ tenant: "demo", principal: "user-1", scope: "chat" });
  const said = process.argv.slice(2).join(" ") || "I'd rather have tea.";
  console.log(await chatTurn(memory, said.toWellFormed().replaceAll("\0", " ")));
}
