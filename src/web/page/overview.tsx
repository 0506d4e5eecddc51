/** The overview: what is wrong and what holds tasks back, with where to click; tasks by state, the activity, the fleet, and what failed. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import type { AnswerOf, TypeStats, Variant } from "../../client/luxhub.ts";
import { Counts, Medians, activityOf, useHistory, wrongSpan } from "./activity.tsx";
import { now } from "./clock.ts";
import { Failures } from "./failures.tsx";
import { Fleet } from "./fleet.tsx";
import { commandOf, countOf, curlOf, durationOf, manyOf } from "./format.ts";
import { useCopy } from "./copies.tsx";
import { type Facts, type Finding, findingsOf, toneOf } from "./health.ts";
import { SinceLooked } from "./looked.tsx";
import { List, type ListOf } from "./list.tsx";
import { useLoad } from "./load.ts";
import { Age, Empty, Head, Link, None, NotLoaded, Section, type Tile, Tiles } from "./parts.tsx";
import { pulse } from "./pulse.ts";
import { to } from "./route.ts";
import { type Ask, hasSecret, isAdmin, isOnline } from "./session.ts";

/** How long the hub keeps its counts by type (STATS_KEPT_MS of domain/limits.ts). */
const TYPES_KEPT_MS = 2_000;

async function load(ask: Ask) {
  const [status, stats, fleet, hour, byType, failures] = await Promise.all([
    ask("status", {}),
    ask("task/stats", {}),
    ask("stats/nodes", {}),
    ask("stats/minutes", {}),
    ask("stats/types", {}),
    ask("stats/failures", {}),
  ]);
  return { status, stats, fleet, hour, byType, failures };
}

type Loaded = Awaited<ReturnType<typeof load>>;

export function Overview(): VNode | null {
  const concerns = /^(?:task\.(?!progress)|node\.|hub\.|standby\.|budget\.|limit\.)/;
  const { value, error, reload } = useLoad("overview", load, concerns, TYPES_KEPT_MS);
  useCopy(value?.status.copy, reload);
  const history = useHistory();
  const wrong = wrongSpan();
  const fault = wrong ?? (error || history.error);
  if (wrong !== null || value === null)
    return <NotLoaded title="Overview" error={fault} back={[to("overview"), "The last hour"]} />;
  const { status, stats, fleet, byType, failures } = value;
  const activity = activityOf(value.hour, history.value, now.value - status.uptime * 1_000);
  return (
    <>
      <Head error={fault}>
        Overview{" "}
        <small>
          up {durationOf(status.uptime)} · {status.software}
          <SinceLooked counts={stats.by_status} />
        </small>
      </Head>
      <List list={FINDINGS} rows={findingsOf(factsOf(value))} />
      <Tiles tiles={tilesOf(value)} />
      {fleet.total === 0 && stats.total === 0 && <Start />}
      <div class="columns uneven">
        <Counts activity={activity} />
        <Fleet byNode={failures.by_node} />
        <Types byType={byType} />
        <div>
          <Failures stats={failures} />
          <Medians activity={activity} />
        </div>
      </div>
    </>
  );
}

// ---- What is wrong, and what holds tasks back

const OPENS: Readonly<Record<string, () => boolean>> = {
  control: isAdmin,
  cost: hasSecret,
  inbox: hasSecret,
};

function factsOf({ status, byType, hour, failures, ...loaded }: Loaded): Facts {
  return {
    isOnline: isOnline.value,
    canWrite: status.status === "ok",
    diskWarning: status.storage.warning,
    held: byType.held,
    free: byType.free.count,
    running: runningOf({ byType, ...loaded }),
    opens: (view) => OPENS[view]?.() ?? true,
    done: hour.total.tasks_completed,
    failed: failures.total,
    questions: pulse.value.questions ?? 0,
    reviews: pulse.value.reviews ?? 0,
    deadLetters: pulse.value.deadLetters ?? 0,
    webhooksSuspended: status.webhooks_suspended ?? 0,
    copy: status.copy,
  };
}

/** Variant B counts open and running tasks as one: the types have them apart. */
function runningOf({ stats, byType }: Pick<Loaded, "stats" | "byType">): number {
  const states: Readonly<Record<string, number>> = stats.by_status;
  return states["assigned"] ?? byType.types.reduce((sum, { assigned }) => sum + assigned, 0);
}

const FINDINGS: ListOf<Finding> = {
  look: "todo",
  keyOf: ({ what }) => what,
  classOf: ({ tone }) => `t-${tone}`,
  item: ({ count, what, why, since, link }) => (
    <>
      <b>{count && <a href={to(count.view, "", count.query)}>{count.words}</a>}</b>
      <span title={why}>
        <b>{what}</b> {why}
      </span>
      <span>{since !== null && <Age at={since} />}</span>
      {link && <a href={to(link.view, "", link.query)}>{link.words}</a>}
    </>
  ),
};

function Start(): VNode {
  return (
    <>
      <Empty
        text="The hub is empty. Put its secret into LUXHUB_SECRET in a shell, and register a node:"
        line={curlOf("node/register", { node_id: "worker-1", name: "Worker 1" })}
      />
      <Empty
        text="Then create a task:"
        line={commandOf("task add 'Say hello' --description 'To everyone'")}
      />
    </>
  );
}

// ---- Tasks by state, from left to right as they go

function tilesOf({ stats, fleet, hour, byType, failures }: Loaded): readonly Tile[] {
  const { held, free, types } = byType;
  const { tasks_completed: done, tasks_cancelled: cancelled, lux_paid } = hour.total;
  const states: Readonly<Record<string, number>> = stats.by_status;
  const [oldest] = types.flatMap(({ oldest_open_at }) => oldest_open_at ?? []).toSorted();
  const [most] = held;
  const tasks = held.reduce((sum, { count }) => sum + count, 0);
  const isExact = held.every(({ exact }) => exact);
  const { total: failed, exact } = failures;
  const part = failed === 0 ? "" : `${((100 * failed) / (done + failed)).toFixed(1)} %`;
  const apart = cancelled === 0 ? "" : `${countOf(cancelled)} more cancelled or expired`;
  const wordsOf = (count: number, isWhole: boolean): string => `${countOf(count)}${isWhole ? "" : "+"}`;
  return [
    [
      "wait",
      wordsOf(free.count, free.exact),
      "open, could run now",
      { status: "ready" },
      oldest !== undefined && ["oldest ", <Age at={oldest} />],
    ],
    [
      "quiet",
      wordsOf(tasks, isExact),
      "held back",
      { status: "held" },
      most && `most ${most.code.replaceAll("_", " ")}`,
    ],
    [
      "busy",
      countOf(runningOf({ stats, byType })),
      "running",
      { status: "assigned" },
      `at ${manyOf(fleet.by_status.online, "node")}`,
    ],
    [
      "good",
      countOf(states["completed"] ?? 0),
      "completed",
      { status: "completed" },
      `${countOf(done)} in the last hour · ${countOf(Math.round(lux_paid))} LUX paid`,
    ],
    [
      "bad",
      wordsOf(failed, exact),
      "failed in the last hour",
      { status: "failed", last: "3600" },
      [part, apart].filter(Boolean).join(" · "),
    ],
  ];
}

// ---- Types

const LONG_S = 600;

type TypeRow = TypeStats & { readonly oldestS: number | null };

const TYPES: ListOf<TypeRow> = {
  label: "Tasks by type",
  keyOf: ({ task_type }) => String(task_type),
  columns: [
    ["Type", typeOf, "names"],
    ["Depth", depthOf, "number"],
    ["Held by", heldOf],
    ["Oldest", waitOf, "number"],
    ["Nodes", takersOf, "number"],
    ["Running", ({ assigned }) => countOf(assigned), "number"],
    [
      "In · out/h",
      ({ created, completed, failed }) => `${countOf(created)} · ${countOf(completed + failed)}`,
      "number",
    ],
    ["Failed/h", ({ failed }) => failed > 0 && <span class="s-failed">{countOf(failed)}</span>, "number"],
    ["Wait p50 · p95", startedAfter, "number quiet"],
  ],
};

function Types({ byType }: { byType: AnswerOf<"stats/types", Variant> }): VNode {
  const { types, others, at } = byType;
  const ageS = (since: string): number => (Date.parse(at) - Date.parse(since)) / 1_000;
  const rows = types.map((type) => ({
    ...type,
    oldestS: (type.oldest_open_at && ageS(type.oldest_open_at)) || null,
  }));
  const note = `last hour${others > 0 ? `; ${countOf(others)} smaller types are not shown` : ""}`;
  return (
    <Section class="types" title="By type" note={note}>
      <List list={TYPES} rows={rows} empty="No tasks." />
    </Section>
  );
}

function typeOf({ task_type: type }: TypeRow): VNode {
  return type === null ? <i>no type</i> : <Link class="row" href={to("tasks", "", { type })} text={type} />;
}

/** As many as the hub counts of a type. */
const COUNTED_MAX = 50_000;

function depthOf({ task_type: type, open, waiting }: TypeRow): ComponentChildren {
  const depth = open + waiting;
  const words = `${countOf(depth)}${Math.max(open, waiting) >= COUNTED_MAX ? "+" : ""}`;
  return type === null ? words : <Link href={to("tasks", "", { type, status: "open" })} text={words} />;
}

function heldOf({ task_type: type, held, held_by: by }: TypeRow): VNode | false {
  if (by === null) return false;
  const href = to("tasks", "", { status: by, ...(type !== null && { type }) });
  return (
    <Link
      class={`state t-${toneOf(by)}`}
      href={href}
      title={`${countOf(held)} tasks are held back`}
      text={by.replaceAll("_", " ")}
    />
  );
}

function waitOf({ oldestS }: TypeRow): VNode {
  if (oldestS === null) return <None />;
  return <span class={oldestS > LONG_S ? "s-failed" : ""}>{durationOf(Math.floor(oldestS))}</span>;
}

function takersOf({ nodes_online: online, takers, open }: TypeRow): VNode {
  return (
    <span title={`${countOf(takers)} with room now, ${countOf(online)} online`}>
      {online === 0 ? <b class={open > 0 ? "s-failed" : "quiet"}>none</b> : countOf(online)}
    </span>
  );
}

function startedAfter({ time_to_start: { p50_s, p95_s } }: TypeRow): string {
  const [p50, p95] = [p50_s, p95_s].map((seconds) =>
    seconds !== null && seconds < 0.1 ? "< 0.1 s" : durationOf(seconds ?? 0),
  );
  if (p50_s === null) return "–";
  return p95_s === null || p95 === p50 ? `${p50}` : `${p50} · ${p95}`;
}
