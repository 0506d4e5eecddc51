/** `luxhub lease …`: advisory leases on names and paths. */
import type { Environment } from "../config.ts";
import type { AnswerOf } from "../client/luxhub.ts";
import { printable, printableJson } from "../lib/printable.ts";
import { EXIT } from "./exit-codes.ts";
import { PAGE, type Remote, type Run, collect, forEach, limitOf, recordOf, runGroup } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { printJsonLine, printJsonList, printTable, timeText } from "./table.ts";

export function leaseCommand(argv: readonly string[], env: Environment): Promise<number> {
  return runGroup("lease", RUNS, argv, env);
}

const RUNS: Readonly<Record<string, Run>> = {
  "lease acquire": async (remote) => {
    const { hub, values, words } = remote;
    const { lease } = await hub.leases.acquire({
      name: words[0] ?? "",
      node_id: values.needed("node"),
      ttl_s: values.seconds("ttl"),
      shared: values.has("shared"),
      task_id: values.text("task"),
      epoch: values.whole("epoch"),
    });
    return printLease(remote, lease);
  },
  "lease renew": async (remote) => {
    const { hub, values, words } = remote;
    const { lease } = await hub.leases.renew({
      name: words[0] ?? "",
      ...holderOf(remote),
      ttl_s: values.seconds("ttl"),
    });
    return printLease(remote, lease);
  },
  "lease release": (remote) =>
    forEach(remote.words, async (name) => {
      const answer = recordOf(await remote.hub.leases.release({ name, ...holderOf(remote) }));
      if (remote.json) printJsonLine(answer);
      else writeLine(`${printable(name)}  ${answer.released > 0 ? "released" : "was not held"}`);
    }),
  "lease list": list,
};

type Lease = AnswerOf<"lease/list">["leases"][number];

function holderOf({ values }: Remote) {
  return {
    node_id: values.needed("node"),
    task_id: values.text("task"),
    fencing: values.whole("fencing", 1),
  };
}

function printLease({ json }: Remote, lease: Lease): number {
  return writeLine(json ? printableJson(lease, 2) : `fencing ${lease.fencing}, until ${lease.until}`);
}

async function list(remote: Remote): Promise<number> {
  const leases = leasesOf(remote);
  if (remote.json) await printJsonList(leases);
  else
    printTable(
      ["NAME", "NODE", "TASK", "SHARED", "FENCING", "UNTIL"],
      (await collect(leases)).map(({ name, node_id, task_id, shared, fencing, until }) => [
        name,
        node_id,
        task_id,
        shared ? "yes" : "no",
        fencing,
        timeText(until),
      ]),
    );
  return EXIT.OK;
}

async function* leasesOf(remote: Remote): AsyncGenerator<Lease, void, undefined> {
  const { hub, values } = remote;
  const filter = { node_id: values.text("node"), task_id: values.text("task") };
  let left = limitOf(remote);
  for (let cursor: string | null | undefined; cursor !== null && left > 0;) {
    const page = await hub.leases.list({ ...filter, cursor, per_page: Math.min(left, PAGE) });
    yield* page.leases;
    left -= page.leases.length;
    cursor = page.next_cursor;
  }
}
