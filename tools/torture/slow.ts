/** Slow callers among quick ones: whether the hub cuts them off, and the latency of the quick ones. */
import { join } from "node:path";
import { type Hub, objectOf } from "../../test/e2e/program.ts";
import type { DripReport } from "./drip.ts";
import { type Latency, probe } from "./probe.ts";

export const SLOW_KINDS = ["head", "body", "chunks", "upload"] as const;
export type SlowKind = (typeof SLOW_KINDS)[number];

export type SlowReport = {
  readonly before: Latency;
  readonly meanwhile: Latency;
  /** When all of them have gone. */
  readonly after: Latency;
  readonly cut: Readonly<Partial<Record<SlowKind, DripReport>>>;
};

/** Opens so many slow callers of each kind and asks for `probeMs` before, beside and after them. */
export async function measureSlow(
  hub: Hub,
  counts: Readonly<Partial<Record<SlowKind, number>>>,
  probeMs: number,
): Promise<SlowReport> {
  await hub.register("probe");
  await probe(hub, probeMs / 2); // what is slow only the first time
  const before = await probe(hub, probeMs);
  const drips = Object.entries(counts).map(([kind, count]) => ({ kind, drip: startDrip(hub, count, kind) }));
  await Promise.all(drips.map(({ drip }) => drip.open));
  const meanwhile = await probe(hub, probeMs);
  const reports = await Promise.all(drips.map(async ({ kind, drip }) => [kind, await drip.report] as const));
  const after = await probe(hub, probeMs);
  return { before, meanwhile, after, cut: Object.fromEntries(reports) };
}

type Drip = { readonly open: Promise<void>; readonly report: Promise<DripReport> };

function startDrip({ port }: Hub, count: number, kind: string): Drip {
  const command = [process.execPath, join(import.meta.dir, "drip.ts"), String(port), String(count), kind];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const open = Promise.withResolvers<void>();
  const report = readReport(child, open.resolve);
  report.catch(open.reject);
  return { open: open.promise, report };
}

async function readReport(child: Bun.Subprocess<"ignore", "pipe">, onOpen: () => void): Promise<DripReport> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true });
    if (text.startsWith("open\n")) onOpen();
  }
  const { cut, slowestMs, statuses } = objectOf(text.split("\n")[1] ?? "");
  if (typeof cut !== "number" || typeof slowestMs !== "number" || !Array.isArray(statuses))
    throw new Error(`the slow callers ended with ${await child.exited}: ${text}`);
  return { cut, slowestMs, statuses };
}
