/** The event log live, newest first; and events as rows of a table. */
import { type VNode, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { EVENT_KINDS, type EventKind } from "../../domain/event.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { clock, now } from "./clock.ts";
import { nodeNames } from "./field.tsx";
import { commandOf, countOf } from "./format.ts";
import { type FilterOf, ListPage } from "./list-page.tsx";
import type { TableOf } from "./list.tsx";
import { onEvent } from "./live.ts";
import { once } from "./load.ts";
import { Button, NodeLink, TaskId } from "./parts.tsx";
import { here, route } from "./route.ts";
import type { Ask } from "./session.ts";
import { LASTS, isUtc, isoOf, sinceOf, timeOf } from "./times.ts";

const PAGE = 100;
const SHOWN = 200;
/** However many events come, the list is drawn at most this often; what comes after a pause is drawn soon. */
const DRAW_MS = 2_000;
const SOON_MS = 50;
const STEPS = 10;
const STEP = 1_000;

const NONE_BEFORE = `None among the ${countOf(STEPS * STEP)} events before.`;

export const FAILED_ATTEMPTS = "attempts";
const ATTEMPT_KINDS = "task.attempt_failed,task.timed_out,task.requeued,task.review_rejected";

const FILTERS: readonly FilterOf[] = [
  {
    name: "kind",
    label: "Kind",
    options: [["", "all"], [FAILED_ATTEMPTS, "failed attempts"], ...EVENT_KINDS],
  },
  { name: "node", label: "Node", suggest: nodeNames },
  { name: "task", label: "Task id" },
  { name: "last", label: "At", options: LASTS },
  { name: "since", label: "Since", type: "time", place: "more" },
  { name: "until", label: "Before", type: "time", place: "more" },
];

type Filter = Readonly<Record<"kind" | "node_id" | "task_id", string | undefined>>;

function suits(event: Event, { kind, node_id, task_id }: Filter): boolean {
  return (
    (kind === undefined || kind.split(",").includes(event.kind)) &&
    (node_id === undefined || node_id === event.node_id) &&
    (task_id === undefined || task_id === event.task_id)
  );
}

export function Events(): VNode {
  const { query } = route.value;
  const { kind, node, task, until } = query;
  const before = Number(query["before"]) || 0;
  const isLive = before === 0 && !until;
  const wanted: Filter = {
    kind: kind === FAILED_ATTEMPTS ? ATTEMPT_KINDS : kind || undefined,
    node_id: node || undefined,
    task_id: task || undefined,
  };
  const fresh = useFresh(isLive, wanted);
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
      load={async (ask): Promise<Page> => {
        const [after, end] = await Promise.all([
          idBefore(ask, sinceOf(query), 0),
          idBefore(ask, isoOf(until), Infinity),
        ]);
        if (!isLive) return eventsBefore(ask, { after, end: Math.min(before || Infinity, end + 1) }, wanted);
        const { events } = await ask("events", { ...wanted, limit: PAGE });
        const kept = events.filter(({ id }) => id > after);
        return { events: kept, after, to: kept.length < events.length ? after : -1, next_cursor: null };
      }}
      more={(page) =>
        isLive && (
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
        isLive
          ? ["No events yet. You can also follow them from a shell:", commandOf("events --follow")]
          : [NONE_BEFORE]
      }
      noMatch={isLive ? "No event matches." : NONE_BEFORE}
      turns={(page) => {
        const isWhole = page !== null && page.to === page.after && page.events.length < PAGE;
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

/** The id of the last event before a time; without a time, the other. */
async function idBefore(ask: Ask, time: string | undefined, otherwise: number): Promise<number> {
  if (!time) return otherwise;
  const { events, cursor } = await ask("events", { since_time: time, limit: 1 });
  return events[0] === undefined ? cursor : events[0].id - 1;
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

/** `after`: the events of the list come after this id; `to`: what was looked at does, -1 if that is not known. */
type Page = {
  readonly events: readonly Event[];
  readonly after: number;
  readonly to: number;
  readonly next_cursor: null;
};

async function eventsBefore(
  ask: Ask,
  { after, end: last }: { readonly after: number; readonly end: number },
  filter: Filter,
): Promise<Page> {
  let events: readonly Event[] = [];
  let end = last;
  for (let steps = 0; steps < STEPS && end > after + 1 && events.length < PAGE; steps++) {
    const start = Math.max(after, end - 1 - STEP);
    const step = await ask("events", { ...filter, since: start, limit: STEP });
    events = [...step.events.filter(({ id }) => id < end), ...events];
    end = start + 1;
  }
  return { events: events.slice(-PAGE), after, to: end - 1, next_cursor: null };
}

// ---- Events as rows

const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["title", "creator_node"]);

/** @param known what the page says besides */
export function dataOf({ by, data }: Event, known: ReadonlySet<string> = new Set()): string {
  const fields = Object.entries(data)
    .filter(([name, value]) => value !== null && value !== "" && !SHOWN_ELSEWHERE.union(known).has(name))
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`);
  return [...fields, ...(by === null ? [] : [`by ${by}`])].join(" · ");
}

const COLUMNS: TableOf<Event>["columns"] = [
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
];

const EVENTS: TableOf<Event> = {
  label: "Events",
  look: "log",
  keyOf: ({ id }) => id,
  columns: COLUMNS,
  // An event never changes: its row is made once.
  drawn: () => rows,
};

export const EVENTS_OF_NODE: TableOf<Event> = {
  label: "Events",
  keyOf: ({ id }) => id,
  columns: COLUMNS.filter(([head]) => head !== "Node" && head !== "Id"),
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
  if (/failed|timed_out|stuck|rejected|parked|offline|suspended|paused$|lost$/.test(kind)) return "s-failed";
  return /completed|passed|paid|resumed|online$|following$/.test(kind) ? "s-completed" : undefined;
}
