/** The nodes with what they do now; and one node: what runs, what failed, and whether it is safe to stop. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import { type Action, type ActionItem, act, deletion } from "./action.tsx";
import { now, useNow } from "./clock.ts";
import { DetailPage } from "./detail.tsx";
import { EVENTS_OF_NODE, FAILED_ATTEMPTS } from "./events.tsx";
import {
  type AnyNode,
  type Summary,
  capabilitiesOf,
  countOf,
  curlOf,
  durationOf,
  manyOf,
  noteOf,
  oneOf,
} from "./format.ts";
import { Ledger } from "./lux.tsx";
import { ListPage } from "./list-page.tsx";
import { List, type ListOf } from "./list.tsx";
import { Age, type FactOf, Link, Say, Section, State, TaskLink, Why } from "./parts.tsx";
import { go, route, to } from "./route.ts";
import { useKeptPlaces } from "./rows.ts";
import { type Ask, call, hasSecret, hub, isAdmin, mayActFor } from "./session.ts";
import { FAILED, typeOf, tasksOf } from "./tasks.tsx";

const PAGE = 50;

const STATES = ["online", "draining", "offline"] as const;

/** How the list can be sorted; empty: by load. */
const ORDERS = ["", "id", "lux", "fails"] as const;

const FAILING = 20;
const HOUR_S = 3_600;

type Row = AnyNode & {
  readonly tasks: readonly Summary[];
  /** Attempts. */
  readonly failed: number;
};

const NODES: ListOf<Row> = {
  label: "Nodes",
  keyOf: ({ node_id }) => node_id,
  columns: [
    ["State", (node) => <State word={stateOf(node)} />],
    ["Node", nameOf, "name", { order: "id", isAscending: true }],
    ["Heartbeat", (node) => <Age at={node.last_heartbeat} />],
    ["Load", (node) => <Load node={node} />, "", { order: "" }],
    ["Doing", doingOf, "wide"],
    [
      "Failed/h",
      ({ node_id, failed }) =>
        failed > 0 && (
          <a
            href={to("events", "", { node: node_id, kind: FAILED_ATTEMPTS, last: String(HOUR_S) })}
            title="Failed attempts, also of tasks that another node has completed"
          >
            {countOf(failed)}
          </a>
        ),
      "number",
      { order: "fails" },
    ],
    ["Done", (node) => countOf(node.tasks_completed), "number"],
    ["LUX", (node) => countOf(node.lux_balance), "number", { order: "lux" }],
    [
      "Capabilities",
      (node) => capabilitiesOf(node).join(", ") || <span class="quiet">{"any"}</span>,
      "names",
    ],
  ],
};

export function Nodes(): VNode {
  const order = oneOf(ORDERS, route.value.query["order"]) || "busy";
  return (
    <ListPage
      title="Nodes"
      filters={[
        { name: "q", label: "Name or host", type: "search" },
        { name: "status", label: "State", options: [["", "any"], ...STATES] },
      ]}
      known={{ order: ORDERS }}
      load={async (ask, { q, status, cursor }) => {
        const [{ by_node }, { total: all }] = await Promise.all([
          ask("stats/failures", { last: HOUR_S }),
          ask("stats/nodes", {}),
        ]);
        const page =
          order === "fails"
            ? await failing(by_node.slice(0, FAILING), ask)
            : await ask("node/list", {
                q,
                status: oneOf(STATES, status),
                order,
                cursor,
                tasks: "1",
                per_page: PAGE,
              });
        const held = Map.groupBy(page.tasks ?? [], (task) => task.assigned_node);
        const failures = new Map(by_node.map(({ node_id, attempts }) => [node_id, attempts]));
        const nodes = page.nodes.map((node) => ({
          ...node,
          tasks: held.get(node.node_id) ?? [],
          failed: failures.get(node.node_id) ?? 0,
        }));
        return {
          nodes,
          next_cursor: page.next_cursor,
          total: page.total ?? null,
          all,
          isFiltered: Boolean(q || status),
        };
      }}
      count={({ total, all, isFiltered }) =>
        isFiltered && total !== null ? `${countOf(total)} of ${countOf(all)}` : countOf(all)
      }
      concerns={/^(?:node|task)\./}
      rows={({ nodes }) => nodes}
      list={NODES}
      useRows={(rows, key) => useKeptPlaces(rows, key, ({ node_id }) => node_id)}
      bulk={mayActFor(null) && { nameOf: ({ name }) => name, selected: drains }}
      empty={[
        "No nodes yet. Register one:",
        curlOf("node/register", { node_id: "worker-1", name: "Worker 1" }),
      ]}
      noMatch="No node matches."
    />
  );
}

type Failures = readonly { readonly node_id: string; readonly count: number }[];

/** The nodes that failed most in the last hour. */
async function failing(failures: Failures, ask: Ask) {
  // A node that was deleted meanwhile is left out.
  const answers = await Promise.all(
    failures.map(({ node_id }) => ask("node/{node_id}", { node_id }).catch(() => null)),
  );
  return {
    nodes: answers.flatMap((answer) => answer?.node ?? []),
    tasks: [],
    next_cursor: null,
    total: null,
  };
}

function drains(nodes: readonly AnyNode[]): readonly Action[] {
  const drain = (isOn: boolean) => async (): Promise<string> => {
    const requests = nodes.map(({ node_id }) => ({
      path: "node/drain" as const,
      body: { node_id, drain: isOn },
    }));
    const answers = await hub.value.batch(requests);
    for (const { body } of answers) if (!body.success) throw new Error(body.detail);
    return `${manyOf(nodes.length, "node")} ${isOn ? "drain" : "take tasks again"}.`;
  };
  return [
    act("drain-selected", "Drain", drain(true), undefined, { undo: drain(false) }),
    act("undrain-selected", "End the drain", drain(false), undefined, { undo: drain(true) }),
  ];
}

function stateOf({ draining, status }: AnyNode): string {
  return draining && status === "online" ? "draining" : status;
}

function nameOf({ node_id, name, host }: AnyNode): ComponentChildren {
  return [
    <Link class="row" href={to("nodes", node_id)} text={name} />,
    " ",
    name !== node_id && <small>{node_id}</small>,
    host !== null && <small> on {host}</small>,
  ];
}

function doingOf({ node_id, draining, tasks_assigned: held, tasks: [first] }: Row): ComponentChildren {
  if (!first) return draining && held === 0 && <small>nothing: safe to stop</small>;
  const others = to("tasks", "", { node: node_id, status: "assigned" });
  return [
    <TaskLink task={first} />,
    " ",
    held > 1 && <a href={others}>and {held - 1} more</a>,
    <Why text={first.progress} />,
  ];
}

function Load({ node }: { node: AnyNode }): VNode {
  const { tasks_assigned: held, max_tasks: most } = node;
  if (most === null) return <>{countOf(held)}</>;
  return (
    <>
      <meter
        aria-label="Load"
        class={held > most ? "over" : undefined}
        min={0}
        max={Math.max(1, most)}
        value={held}
      />{" "}
      {held} of {most}
    </>
  );
}

// ---- A node

const RUNNING = 50;
const ENDED = 10;
const LATEST = 30;

async function loadNode(ask: Ask, id: string) {
  const since = new Date(now.value - HOUR_S * 1_000).toISOString();
  const failed = { failed_by: id, since, failure_kind: FAILED };
  const [{ node }, running, failures, { count, exact }, done, { events }] = await Promise.all([
    ask("node/{node_id}", { node_id: id }),
    ask("task/list?fields=summary", { status: "assigned", node_id: id, per_page: RUNNING }),
    ask("task/list?fields=summary", { ...failed, order: "updated", per_page: ENDED }),
    ask("task/count", failed),
    ask("task/list?fields=summary", { status: "completed", node_id: id, per_page: ENDED }),
    ask("events", { node_id: id, limit: LATEST }),
  ]);
  return { node, running: running.tasks, failed: failures.tasks, count, exact, done: done.tasks, events };
}

export function NodePage({ id }: { id: string }): VNode {
  return (
    <DetailPage
      what="Node"
      id={id}
      back={[to("nodes"), "All nodes"]}
      load={(ask) => loadNode(ask, id)}
      concerns={(event) => event.node_id === id}
      draw={(loaded) => ({
        subject: loaded.node.name,
        state: stateOf(loaded.node),
        title: [loaded.node.name, " ", loaded.node.name !== id && <small>{id}</small>],
        actions: actionsOf(loaded.node),
        menu: menuOf(loaded.node),
        above: loaded.node.draining && <Draining held={loaded.node.tasks_assigned} />,
        facts: factsOf(loaded.node),
        body: <Lists id={id} {...loaded} />,
      })}
    />
  );
}

function actionsOf({ node_id, draining }: AnyNode): readonly ActionItem[] {
  return [
    mayActFor(node_id) &&
      act(
        "drain",
        draining ? "End the drain" : "Drain",
        () => call("node/drain", { node_id, drain: !draining }),
        draining ? "The node takes tasks again." : "The node is draining: it gets no new tasks.",
        { undo: () => call("node/drain", { node_id, drain: draining }) },
      ),
    mayActFor(node_id) && <Link class="button" href={to("messages", node_id)} text="Messages" />,
  ];
}

function menuOf({ node_id }: AnyNode): readonly ActionItem[] {
  return [
    isAdmin() &&
      deletion(
        "delete",
        "Delete this registration? The unfinished tasks of the node will be open again.",
        () => call("node/delete", { node_id }),
        { then: () => go(to("nodes")) },
      ),
  ];
}

function Draining({ held }: { held: number }): VNode {
  if (held > 0)
    return (
      <Say tone="wait">
        <b>{`Drains: ${manyOf(held, "task")} still ${held === 1 ? "runs" : "run"}.`}</b> The node gets no new
        ones.
      </Say>
    );
  return (
    <Say tone="good">
      <b>Drained: nothing runs here.</b> It is safe to stop the node.
    </Say>
  );
}

function factsOf(node: AnyNode): readonly FactOf[] {
  const resources = Object.entries(node.resources ?? {}).map(([name, amount]): FactOf => [
    name,
    `${countOf(node.resources_used?.[name] ?? 0)} of ${countOf(amount)} in use`,
  ]);
  return [
    ["Heartbeat", <Age at={node.last_heartbeat} />],
    ["Host", node.host && (node.port === null ? node.host : `${node.host}:${node.port}`)],
    ["Load", <Load node={node} />],
    ["Done", countOf(node.tasks_completed)],
    ["LUX", countOf(node.lux_balance)],
    ["Capabilities", capabilitiesOf(node).join(", ") || "any"],
    ...resources,
    ["Automatic assignment", node.auto_assign ? "on" : "off"],
  ];
}

const RUNS: ListOf<Summary> = {
  label: "Runs now",
  keyOf: ({ task_id }) => task_id,
  columns: [
    ["Task", (task) => <TaskLink task={task} isRow why={noteOf(task)} />, "wide"],
    ["Type", typeOf, "id"],
    [
      "Runs for",
      ({ started_at: at }) => (at === null ? <span class="quiet">not started</span> : <RunsFor since={at} />),
    ],
    ["Last change", (task) => <Age at={task.updated_at} />],
  ],
};

function RunsFor({ since }: { since: string }): VNode {
  return <>{useNow((time) => durationOf(Math.max(0, Math.round((time - Date.parse(since)) / 1_000))))}</>;
}

const TASKS_OF_NODE = tasksOf(["Node"]);

function Lists(props: Awaited<ReturnType<typeof loadNode>> & { id: string }): VNode {
  const { id, node, running, failed, count, exact, done, events } = props;
  return (
    <>
      <Section title="Runs now">
        <List list={RUNS} rows={running} empty="Nothing." />
        {node.tasks_assigned > running.length && (
          <a href={to("tasks", "", { node: id, status: "assigned" })}>All {countOf(node.tasks_assigned)}</a>
        )}
      </Section>
      <Section title="Failed in the last hour">
        <List list={TASKS_OF_NODE} rows={failed} empty="No task." />
        {failed.length > 0 && (
          <a href={to("tasks", "", { status: "failed", failed_by: id, last: String(HOUR_S) })}>
            All {countOf(count)}
            {exact ? "" : "+"}
          </a>
        )}
      </Section>
      <Section title="Completed last">
        <List list={TASKS_OF_NODE} rows={done} empty="No task." />
        <a href={to("tasks", "", { node: id })}>All its tasks</a>
      </Section>
      {hasSecret() && (
        <Section title="Ledger">
          <Ledger node={id} />
        </Section>
      )}
      <Section title="Events">
        <List list={EVENTS_OF_NODE} rows={events.toReversed()} />
        <a href={to("events", "", { node: id })}>All its events</a>
      </Section>
    </>
  );
}
