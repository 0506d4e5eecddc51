/** The event log live, newest first; and events as rows of a table. */
import { type VNode, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { EVENT_KINDS, type EventKind } from "../../domain/event.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { clock, now } from "./clock.ts";
import { nodeNames } from "./field.tsx";
import { commandOf, countOf, oneOf } from "./format.ts";
import { type FilterOf, ListPage } from "./list-page.tsx";
import type { ListOf } from "./list.tsx";
import { onEvent } from "./live.ts";
import { once } from "./load.ts";
import { Button, NodeLink, TaskId } from "./parts.tsx";
import { here, route } from "./route.ts";
import type { Ask } from "./session.ts";
import { isUtc, timeOf } from "./times.ts";

const PAGE = 100;
const SHOWN = 200;
/** However many events come, the list is drawn at most this often; what comes after a pause is drawn soon. */
const DRAW_MS = 2_000;
const SOON_MS = 50;
const STEPS = 10;
const STEP = 1_000;

const NONE_BEFORE = `None among the ${countOf(STEPS * STEP)} events before.`;

const FILTERS: readonly FilterOf[] = [
  { name: "kind", label: "Kind", options: [["", "all"], ...EVENT_KINDS] },
  { name: "node", label: "Node", suggest: nodeNames },
  { name: "task", label: "Task (its id)" },
];

type Filter = Readonly<Record<"node_id" | "task_id", string | undefined> & { kind: EventKind | undefined }>;

function suits(event: Event, { kind, node_id, task_id }: Filter): boolean {
  return (
    (kind === undefined || kind === event.kind) &&
    (node_id === undefined || node_id === event.node_id) &&
    (task_id === undefined || task_id === event.task_id)
  );
}

export function Events(): VNode {
  const { query } = route.value;
  const { node, task } = query;
  const kind = oneOf(EVENT_KINDS, query["kind"]);
  const before = Number(query["before"]) || 0;
  const wanted: Filter = { kind, node_id: node || undefined, task_id: task || undefined };
  const fresh = useFresh(before === 0, wanted);
  const [frozen, setFrozen] = useState<readonly Event[] | null>(null);
  useEffect(() => setFrozen(null), [route.value]);
  const shownOf = (events: readonly Event[]): readonly Event[] => {
    const seen = new Set(fresh.map(({ id }) => id));
    return [...fresh, ...events.toReversed().filter(({ id }) => !seen.has(id))].slice(0, SHOWN);
  };
  return (
    <ListPage
      title="Events"
      filters={FILTERS}
      known={{ before: null }}
      load={async (ask) =>
        before === 0
          ? { events: (await ask("events", { ...wanted, limit: PAGE })).events, to: 0, next_cursor: null }
          : eventsBefore(ask, before, wanted)
      }
      more={(page) =>
        before === 0 && (
          <Button
            label={frozen === null ? "Pause" : "Go on"}
            aria-pressed={frozen !== null}
            name="pause"
            onClick={() => setFrozen(frozen === null ? shownOf(page?.events ?? []) : null)}
          />
        )
      }
      concerns={null}
      rows={({ events }) => frozen ?? shownOf(events)}
      list={EVENTS}
      empty={
        before === 0
          ? ["No events yet. You can also follow them from a shell:", commandOf("events --follow")]
          : [NONE_BEFORE]
      }
      noMatch={before === 0 ? "No event matches." : NONE_BEFORE}
      turns={(page) => {
        const isWhole = page !== null && before !== 0 && page.to <= 1 && page.events.length < PAGE;
        const shown = frozen ?? shownOf(page?.events ?? []);
        const oldest = isWhole ? 0 : (shown.at(-1)?.id ?? page?.to ?? 0);
        return {
          back: before !== 0 && ["Newest", here({ before: undefined })],
          next: oldest > 1 && ["Older", here({ before: String(oldest) })],
        };
      }}
    />
  );
}

function useFresh(isOn: boolean, wanted: Filter): readonly Event[] {
  const [fresh, setFresh] = useState<readonly Event[]>([]);
  useEffect(() => {
    setFresh([]);
    if (!isOn) return;
    let come: readonly Event[] = [];
    let drawnAt = -DRAW_MS;
    const timer = once(() => {
      const drawn = come;
      [come, drawnAt] = [[], clock.timers()];
      setFresh((old) => [...drawn, ...old].slice(0, SHOWN));
    });
    const stop = onEvent((event) => {
      if (event === null || !suits(event, wanted)) return;
      come = [event, ...come].slice(0, SHOWN);
      timer.start(Math.max(SOON_MS, drawnAt + DRAW_MS - clock.timers()));
    });
    return () => {
      stop();
      timer.stop();
    };
  }, [route.value]);
  return fresh;
}

type Page = { readonly events: readonly Event[]; readonly to: number; readonly next_cursor: null };

async function eventsBefore(ask: Ask, before: number, filter: Filter): Promise<Page> {
  let events: readonly Event[] = [];
  let end = before;
  for (let steps = 0; steps < STEPS && end > 1 && events.length < PAGE; steps++) {
    const start = Math.max(1, end - STEP);
    const step = await ask("events", { ...filter, since: start - 1, limit: STEP });
    events = [...step.events.filter(({ id }) => id < end), ...events];
    end = start;
  }
  return { events: events.slice(-PAGE), to: end, next_cursor: null };
}

// ---- Events as rows

const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["title", "creator_node"]);

/** @param known what the page says besides */
export function dataOf({ data }: Event, known: ReadonlySet<string> = new Set()): string {
  return Object.entries(data)
    .filter(([name, value]) => value !== null && value !== "" && !SHOWN_ELSEWHERE.union(known).has(name))
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
    .join(" · ");
}

export const EVENTS: ListOf<Event> = {
  label: "Events",
  look: "log",
  keyOf: ({ id }) => id,
  columns: [
    [
      "At",
      ({ at }) => (
        <time dateTime={at} title={timeOf(at)}>
          {shortTimeOf(at)}
        </time>
      ),
    ],
    ["Kind", ({ kind }) => <span class={toneOf(kind)}>{kind}</span>],
    ["Node", ({ node_id }) => <NodeLink id={node_id} />, "id"],
    ["Task", ({ task_id }) => <TaskId id={task_id} />],
    ["Data", (event) => [titleOf(event), " ", dataOf(event)], "wide data"],
    ["Id", ({ id }) => id, "number"],
  ],
  // An event never changes: its row is made once.
  drawn: () => rows,
};

function titleOf({ data }: Event): VNode | false {
  return typeof data["title"] === "string" && <b>{data["title"]}</b>;
}

let rows = new WeakMap<Event, VNode>();
isUtc.follow(() => (rows = new WeakMap()));

/** The time of day; with the day if it is another. A log of ages would change each second. */
function shortTimeOf(at: string): string {
  const isOld = now.value - Date.parse(at) >= DAY_MS;
  return timeOf(at, { hourCycle: "h23", timeStyle: "medium", ...(isOld && { dateStyle: "medium" }) });
}

function toneOf(kind: EventKind): string | undefined {
  if (/failed|timed_out|stuck|rejected|parked|offline|suspended|paused$/.test(kind)) return "s-failed";
  return /completed|passed|paid|resumed|online$/.test(kind) ? "s-completed" : undefined;
}
