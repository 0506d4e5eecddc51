/** The event log live, newest first, filtered by kind. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { EVENT_KINDS } from "../../domain/event.ts";
import { commandOf } from "./format.ts";
import { onEvent } from "./live.ts";
import { Age, Empty, Fault, Select, Table, useLoad } from "./parts.tsx";
import { route, setQuery, to, wrongQuery } from "./route.ts";
import { dataOf } from "./task.tsx";

const PAGE = 100;
/** The oldest ones leave the page. */
const KEPT = 500;

export function Events(): JSX.Element {
  const given = route.value.query["kind"];
  const kind = EVENT_KINDS.find((one) => one === given);
  const before = Number(route.value.query["before"]) || 0;
  const wrong = wrongQuery({ kind: EVENT_KINDS, before: null });
  const loaded = useLoad(`${kind} ${before} ${wrong}`, async (from, signal) => {
    if (wrong !== null) throw new Error(wrong);
    const since = before === 0 ? undefined : Math.max(0, before - PAGE - 1);
    return (await from.call("events", { kind, since, limit: PAGE }, { signal })).events;
  });
  const [frozen, setFrozen] = useState<readonly Event[] | null>(null);
  const [more, setMore] = useState<readonly Event[]>([]);
  useEffect(() => {
    setMore([]);
    setFrozen(null);
    if (before !== 0 || wrong !== null) return;
    return onEvent((event) => {
      if (event !== null && (kind === undefined || event.kind === kind))
        setMore((old) => [event, ...old].slice(0, KEPT));
    });
  }, [kind, before, wrong]);
  const seen = new Set(more.map(({ id }) => id));
  const all = [
    ...more,
    ...((wrong === null ? loaded.value : null) ?? []).toReversed().filter(({ id }) => !seen.has(id)),
  ];
  const shown = frozen ?? all;
  const oldest = shown.at(-1)?.id ?? 0;
  const kinds = [["", "all"] as const, ...EVENT_KINDS.map((one) => [one, one] as const)];
  return (
    <>
      <header class="head">
        <h1>Events</h1>
        {before === 0 && (
          <button
            type="button"
            aria-pressed={frozen !== null}
            data-do="pause"
            onClick={() => setFrozen(frozen === null ? all : null)}
          >
            {frozen === null ? "Pause" : "Go on"}
          </button>
        )}
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Select
          label="Kind"
          name="kind"
          value={kind}
          options={kinds}
          onInput={(value) => setQuery({ kind: value, before: undefined })}
        />
      </form>
      <Fault text={loaded.error} />
      {loaded.value && all.length === 0 && (
        <Empty
          text="No events yet. You can also follow them from a shell:"
          line={commandOf("events", "--follow")}
        />
      )}
      {all.length > 0 && <EventTable events={shown} />}
      <nav class="pager" aria-label="Pages">
        {before !== 0 && <a href={to("events", "", { kind })}>Newest</a>}
        {kind === undefined && oldest > 1 && <a href={to("events", "", { before: String(oldest) })}>Older</a>}
      </nav>
    </>
  );
}

export function EventTable({ events }: { events: readonly Event[] }): JSX.Element {
  return (
    <Table label="Events" head={["Id", "When", "Kind", "Node", "Task", "Data"]}>
      {events.map((event) => (
        <tr key={event.id}>
          <td class="number">{event.id}</td>
          <td>
            <Age at={event.at} />
          </td>
          <td>
            <span class={`kind k-${event.kind.replace(".", "-")}`}>{event.kind}</span>
          </td>
          <td>{event.node_id !== null && <a href={to("nodes", event.node_id)}>{event.node_id}</a>}</td>
          <td>
            {event.task_id !== null && (
              <a href={to("tasks", event.task_id)} title={event.task_id}>
                <code>…{event.task_id.slice(-8)}</code>
              </a>
            )}
          </td>
          <td class="wide data">{dataOf(event)}</td>
        </tr>
      ))}
    </Table>
  );
}
