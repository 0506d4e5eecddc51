/** Events as a table, and the data of an event in words. */
import { Component, type JSX, h } from "preact";
import type { Event } from "../../client/luxhub.ts";
import type { EventKind } from "../../domain/event.ts";
import { now } from "./clock.ts";
import { NodeLink, Table, TaskId } from "./parts.tsx";
import { DAY_MS } from "../../lib/clock.ts";

/** Fields of events that the page shows elsewhere. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["title", "creator_node"]);

/** Formats the data of an event, without its kind, node and task. */
export function dataOf({ data }: Event): string {
  return Object.entries(data)
    .filter(([name, value]) => value !== null && value !== "" && !SHOWN_ELSEWHERE.has(name))
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
    .join(" · ");
}

export function EventTable({ events }: { events: readonly Event[] }): JSX.Element {
  return (
    <div class="log">
      <Table label="Events" head={["At", "Kind", "Node", "Task", "Data", "Id"]}>
        {events.map((event) => (
          <Row key={event.id} event={event} />
        ))}
      </Table>
    </div>
  );
}

/** The local time of day; with the day if it is another. A log of ages would change each second. */
function timeOf(at: string): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString(undefined, { hour12: false });
  return now.value - date.getTime() < DAY_MS
    ? time
    : `${date.toLocaleDateString(undefined, { day: "numeric", month: "short" })} ${time}`;
}

/** What failed stands out, and what has succeeded. */
function toneOf(kind: EventKind): string | undefined {
  if (/failed|timed_out|stuck|rejected|parked|offline|suspended|paused$/.test(kind)) return "s-failed";
  return /completed|passed|paid|resumed|online$/.test(kind) ? "s-completed" : undefined;
}

/** An event never changes: a row is drawn once. */
class Row extends Component<{ event: Event }> {
  override shouldComponentUpdate(): boolean {
    return false;
  }

  override render(): JSX.Element {
    const { event } = this.props;
    const { title } = event.data;
    return (
      <tr>
        <td>
          <time dateTime={event.at} title={new Date(event.at).toLocaleString()}>
            {timeOf(event.at)}
          </time>
        </td>
        <td>
          <span class={toneOf(event.kind)}>{event.kind}</span>
        </td>
        <td class="id">
          <NodeLink id={event.node_id} />
        </td>
        <td>
          <TaskId id={event.task_id} />
        </td>
        <td class="wide data">
          {typeof title === "string" && <b>{title}</b>} {dataOf(event)}
        </td>
        <td class="number">{event.id}</td>
      </tr>
    );
  }
}
