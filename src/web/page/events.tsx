/** The event log live, newest first, filtered by kind, node and task. */
import { Fragment, type JSX, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { EVENT_KINDS, type EventKind } from "../../domain/event.ts";
import { clock } from "./clock.ts";
import { commandOf, countOf } from "./format.ts";
import { onEvent } from "./live.ts";
import { EventTable } from "./event-table.tsx";
import { NodeField } from "./node-field.tsx";
import { Empty, Fault, Field, Select, useLoad, useTyped } from "./parts.tsx";
import { route, setQuery, to, wrongQuery } from "./route.ts";
import type { Hub } from "./session.ts";

const PAGE = 100;
/** The oldest ones leave the page. */
const SHOWN = 200;
/** However many events come, the list is drawn at most this often; what comes after a pause is drawn soon. */
const DRAW_MS = 2_000;
const SOON_MS = 50;
/** The steps back through the log for older events of one kind, and the events of each. */
const STEPS = 10;
const STEP = 1_000;

type Filter = Readonly<Record<"node_id" | "task_id", string | undefined> & { kind: EventKind | undefined }>;

function suits(event: Event, { kind, node_id, task_id }: Filter): boolean {
  return (
    (kind === undefined || kind === event.kind) &&
    (node_id === undefined || node_id === event.node_id) &&
    (task_id === undefined || task_id === event.task_id)
  );
}

export function Events(): JSX.Element {
  const given = route.value.query["kind"];
  const kind = EVENT_KINDS.find((one) => one === given);
  const { node, task } = route.value.query;
  const before = Number(route.value.query["before"]) || 0;
  const wrong = wrongQuery({ kind: EVENT_KINDS, node: null, task: null, before: null });
  const filter: Filter = { kind, node_id: node || undefined, task_id: task || undefined };
  const key = JSON.stringify([filter, before, wrong]);
  const isFiltered = Boolean(given || node || task);
  const loaded = useLoad(key, async (from, signal) => {
    if (wrong !== null) throw new Error(wrong);
    if (before === 0)
      return { events: (await from.call("events", { ...filter, limit: PAGE }, { signal })).events, to: 0 };
    return eventsBefore(from, before, filter, signal);
  });
  const set = useTyped((changed) => setQuery({ ...changed, before: undefined }));
  const [frozen, setFrozen] = useState<readonly Event[] | null>(null);
  const [more, setMore] = useState<readonly Event[]>([]);
  useEffect(() => {
    setMore([]);
    setFrozen(null);
    if (before !== 0 || wrong !== null) return;
    let fresh: readonly Event[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    let drawnAt = -DRAW_MS;
    const stop = onEvent((event) => {
      if (event === null || !suits(event, filter)) return;
      fresh = [event, ...fresh].slice(0, SHOWN);
      timer ??= setTimeout(
        () => {
          const come = fresh;
          [fresh, timer, drawnAt] = [[], null, clock.timers()];
          setMore((old) => [...come, ...old].slice(0, SHOWN));
        },
        Math.max(SOON_MS, drawnAt + DRAW_MS - clock.timers()),
      );
    });
    return () => {
      stop();
      if (timer !== null) clearTimeout(timer);
    };
  }, [key]);
  const value = wrong === null ? loaded.value : null;
  const seen = new Set(more.map(({ id }) => id));
  const all = [...more, ...(value?.events ?? []).toReversed().filter(({ id }) => !seen.has(id))].slice(
    0,
    SHOWN,
  );
  const shown = frozen ?? all;
  const isWhole = value !== null && before !== 0 && value.to <= 1 && value.events.length < PAGE;
  const oldest = isWhole ? 0 : (shown.at(-1)?.id ?? value?.to ?? 0);
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
        <NodeField label="Node" name="node" value={node} onInput={set("node")} />
        <Field label="Task (its id)" name="task" value={task} onInput={set("task")} />
        {isFiltered && (
          <a class="button" href={to("events")}>
            Clear
          </a>
        )}
      </form>
      <Fault text={loaded.error} />
      {value && all.length === 0 && (
        <Empty
          text={
            isFiltered && before === 0
              ? "No event matches."
              : before === 0
                ? "No events yet. You can also follow them from a shell:"
                : `None among the ${countOf(STEPS * STEP)} events before.`
          }
          {...(before === 0 && !isFiltered && { line: commandOf("events", "--follow") })}
        />
      )}
      {all.length > 0 && <EventTable events={shown} />}
      <nav class="pager" aria-label="Pages">
        {before !== 0 && <a href={to("events", "", { kind, node, task })}>Newest</a>}
        {oldest > 1 && (
          <a rel="next" href={to("events", "", { kind, node, task, before: String(oldest) })}>
            Older
          </a>
        )}
      </nav>
    </>
  );
}

/** The newest events before one, oldest first. `to`: the log was searched back to this id. */
async function eventsBefore(
  from: Hub,
  before: number,
  filter: Filter,
  signal: AbortSignal,
): Promise<{ readonly events: readonly Event[]; readonly to: number }> {
  let found: readonly Event[] = [];
  let end = before;
  for (let step = 0; step < STEPS && end > 1 && found.length < PAGE; step++) {
    const start = Math.max(1, end - STEP);
    const { events } = await from.call("events", { ...filter, since: start - 1, limit: STEP }, { signal });
    const within = events.filter(({ id }) => id < end);
    found = [...within, ...found];
    end = start;
  }
  return { events: found.slice(-PAGE), to: end };
}
