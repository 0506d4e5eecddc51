/** The event log live, newest first, filtered by kind, node and task. */
import { Fragment, type VNode, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event } from "../../client/luxhub.ts";
import { EVENT_KINDS, type EventKind } from "../../domain/event.ts";
import { clock } from "./clock.ts";
import { commandOf, countOf, oneOf } from "./format.ts";
import { onEvent } from "./live.ts";
import { EventTable } from "./event-table.tsx";
import { NodeField } from "./suggest-field.tsx";
import { Button, Empty, Fault, Field, Filters, Head, Pager, Select, useFilters, useList } from "./parts.tsx";
import { here, route, wrongQuery } from "./route.ts";
import type { Ask } from "./session.ts";

const PAGE = 100;
/** The oldest ones leave the page. */
const SHOWN = 200;
/** However many events come, the list is drawn at most this often; what comes after a pause is drawn soon. */
const DRAW_MS = 2_000;
const SOON_MS = 50;
/** The steps back through the log for older events of one kind, and the events of each. */
const STEPS = 10;
const STEP = 1_000;

const KNOWN = { kind: EVENT_KINDS, node: null, task: null, before: null };

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
  const isFiltered = Boolean(query["kind"] || node || task);
  const loaded = useList(
    KNOWN,
    async (ask) => {
      if (before === 0) return { events: (await ask("events", { ...wanted, limit: PAGE })).events, to: 0 };
      return eventsBefore(ask, before, wanted);
    },
    null,
  );
  const filter = useFilters();
  const [frozen, setFrozen] = useState<readonly Event[] | null>(null);
  const [more, setMore] = useState<readonly Event[]>([]);
  useEffect(() => {
    setMore([]);
    setFrozen(null);
    if (before !== 0 || wrongQuery(KNOWN) !== null) return;
    let fresh: readonly Event[] = [];
    let timer: ReturnType<typeof setTimeout> | null = null;
    let drawnAt = -DRAW_MS;
    const stop = onEvent((event) => {
      if (event === null || !suits(event, wanted)) return;
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
  }, [route.value]);
  const { value } = loaded;
  const seen = new Set(more.map(({ id }) => id));
  const all = [...more, ...(value?.events ?? []).toReversed().filter(({ id }) => !seen.has(id))].slice(
    0,
    SHOWN,
  );
  const shown = frozen ?? all;
  const isWhole = value !== null && before !== 0 && value.to <= 1 && value.events.length < PAGE;
  const oldest = isWhole ? 0 : (shown.at(-1)?.id ?? value?.to ?? 0);
  return (
    <>
      <Head
        more={
          before === 0 && (
            <Button
              aria-pressed={frozen !== null}
              data-do="pause"
              onClick={() => setFrozen(frozen === null ? all : null)}
            >
              {frozen === null ? "Pause" : "Go on"}
            </Button>
          )
        }
      >
        Events
      </Head>
      <Filters isFiltered={isFiltered}>
        <Select label="Kind" options={[["", "all"], ...EVENT_KINDS]} {...filter("kind")} />
        <NodeField label="Node" {...filter("node")} />
        <Field label="Task (its id)" {...filter("task")} />
      </Filters>
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
          {...(before === 0 && !isFiltered && { line: commandOf("events --follow") })}
        />
      )}
      {all.length > 0 && <EventTable events={shown} />}
      <Pager
        back={before !== 0 && ["Newest", here({ before: undefined })]}
        next={oldest > 1 && ["Older", here({ before: String(oldest) })]}
      />
    </>
  );
}

/** The newest events before one, oldest first. `to`: the log was searched back to this id. */
async function eventsBefore(
  ask: Ask,
  before: number,
  filter: Filter,
): Promise<{ readonly events: readonly Event[]; readonly to: number }> {
  let found: readonly Event[] = [];
  let end = before;
  for (let step = 0; step < STEPS && end > 1 && found.length < PAGE; step++) {
    const start = Math.max(1, end - STEP);
    const { events } = await ask("events", { ...filter, since: start - 1, limit: STEP });
    const within = events.filter(({ id }) => id < end);
    found = [...within, ...found];
    end = start;
  }
  return { events: found.slice(-PAGE), to: end };
}
