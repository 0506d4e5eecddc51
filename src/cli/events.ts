/** `luxhub events`: prints the event log; with --follow also new events as they arrive. */
import type { Event } from "../client/luxhub.ts";
import { EVENT_KINDS } from "../domain/event.ts";
import { EVENTS_MAX } from "../domain/limits.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, limitOf } from "./remote.ts";
import { plain, print, printJsonLine, printJsonList, printTable, timeText } from "./table.ts";

export const RUNS: ClientRuns = {
  events: (remote) => (remote.values.has("follow") ? follow(remote) : list(remote)),
};

async function list(remote: Remote): Promise<number> {
  const { json } = remote;
  const events = logOf(remote);
  if (json) await printJsonList(events);
  else printTable(HEAD, (await Array.fromAsync(events)).map(rowOf));
  return EXIT.OK;
}

async function follow({ hub, values, json }: Remote): Promise<number> {
  const limit = values.whole("limit", 1) ?? Number.POSITIVE_INFINITY;
  // This first call fails if the hub cannot be reached; the iterator below would wait for it.
  const { cursor } = await hub.call("events", { limit: 1 });
  const kinds = values.choices("kind", EVENT_KINDS);
  const where = {
    taskId: values.text("task"),
    nodeId: values.text("node"),
    group: values.text("group"),
    tag: values.text("tag"),
  };
  let count = 0;
  for await (const event of hub.events({ since: values.whole("since") ?? cursor, kinds, ...where })) {
    if (json) printJsonLine(event);
    else
      print(
        rowOf(event)
          .map((cell) => plain(String(cell ?? "-")))
          .join("  "),
      );
    if (++count >= limit) break;
  }
  return EXIT.OK;
}

const HEAD = ["ID", "TIME", "KIND", "NODE", "TASK", "DATA"];

function rowOf({ id, at, kind, node_id, task_id, data }: Event) {
  const words = Object.entries(data).map(([name, value]) => `${name}=${value}`);
  return [id, timeText(at), kind, node_id, task_id, words.join(" ")] as const;
}

async function* logOf(remote: Remote): AsyncGenerator<Event, void, undefined> {
  const { hub, values } = remote;
  const given = values.whole("since");
  const most = values.whole("limit", 1);
  const limit = most ?? (given === undefined ? limitOf(remote) : Number.POSITIVE_INFINITY);
  const kinds = values.choices("kind", EVENT_KINDS);
  const where = {
    kind: kinds.length === 1 ? kinds[0] : undefined,
    task_id: values.text("task"),
    node_id: values.text("node"),
    group: values.text("group"),
    tag: values.text("tag"),
  };
  const isWanted = ({ kind }: Event): boolean => kinds.length === 0 || kinds.includes(kind);
  if (given === undefined && limit <= EVENTS_MAX) {
    const { events } = await hub.call("events", { limit: kinds.length > 1 ? EVENTS_MAX : limit, ...where });
    yield* events.filter(isWanted).slice(-limit);
    return;
  }
  let count = 0;
  for (let since = given ?? 0; ;) {
    const { events, cursor } = await hub.call("events", { since, limit: EVENTS_MAX, ...where });
    for (const event of events) {
      if (!isWanted(event)) continue;
      yield event;
      if (++count >= limit) return;
    }
    if (cursor === since) return;
    since = cursor;
  }
}
