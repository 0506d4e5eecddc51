/** Events as a table, and the data of an event in words. */
import { Fragment, type VNode, h } from "preact";
import type { Event } from "../../client/luxhub.ts";
import type { EventKind } from "../../domain/event.ts";
import { now } from "./clock.ts";
import { type Column, NodeLink, Table, TaskId } from "./parts.tsx";
import { DAY_MS } from "../../lib/clock.ts";
import { isUtc, timeOf } from "./times.ts";

/** Fields of events that the page shows elsewhere. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["title", "creator_node"]);

/** Formats the data of an event, without its kind, node and task. */
export function dataOf({ data }: Event): string {
  return Object.entries(data)
    .filter(([name, value]) => value !== null && value !== "" && !SHOWN_ELSEWHERE.has(name))
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
    .join(" · ");
}

const COLUMNS: readonly Column<Event>[] = [
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
  [
    "Data",
    (event) => (
      <>
        {typeof event.data["title"] === "string" && <b>{event.data["title"]}</b>} {dataOf(event)}
      </>
    ),
    "wide data",
  ],
  ["Id", ({ id }) => id, "number"],
];

/** An event never changes: its row is made once. */
let rows = new WeakMap<Event, VNode>();
isUtc.follow(() => (rows = new WeakMap()));

export function EventTable({ events }: { events: readonly Event[] }): VNode {
  return (
    <div class="log">
      <Table label="Events" rows={events} keyOf={({ id }) => id} columns={COLUMNS} made={rows} />
    </div>
  );
}

/** The time of day; with the day if it is another. A log of ages would change each second. */
function shortTimeOf(at: string): string {
  const isOld = now.value - Date.parse(at) >= DAY_MS;
  return timeOf(at, { hourCycle: "h23", timeStyle: "medium", ...(isOld && { dateStyle: "medium" }) });
}

/** What failed stands out, and what has succeeded. */
function toneOf(kind: EventKind): string | undefined {
  if (/failed|timed_out|stuck|rejected|parked|offline|suspended|paused$/.test(kind)) return "s-failed";
  return /completed|passed|paid|resumed|online$/.test(kind) ? "s-completed" : undefined;
}
