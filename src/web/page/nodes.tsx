/**
 * The nodes with their load, what they do now and how often they fail, to be drained one by one or together; and one
 * node: what runs there now, what failed, and whether it is safe to stop.
 */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import { useRef, useState } from "preact/hooks";
import { now, useNow } from "./clock.ts";
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
import { EventTable } from "./event-table.tsx";
import { Ledger } from "./ledger.tsx";
import {
  Age,
  Button,
  Delete,
  Empty,
  Fact,
  Fault,
  Field,
  Filters,
  Head,
  NotLoaded,
  Pager,
  Section,
  Select,
  SelectRow,
  type Sort,
  State,
  Table,
  TaskLink,
  runAction,
  useFilters,
  useList,
  useLoad,
} from "./parts.tsx";
import { go, here, route, to, useSubject } from "./route.ts";
import { type Ask, call, hasSecret, hub, isAdmin, mayAct } from "./session.ts";
import { TaskTable, typeOf } from "./tasks.tsx";

const PAGE = 50;

const STATES = ["online", "draining", "offline"] as const;

/** How the list can be sorted; empty: by load. */
const ORDERS = ["", "id", "lux", "fails"] as const;

/** The nodes that fail most are these. */
const FAILING = 20;
const HOUR_S = 3_600;

/** The nodes that failed most in the last hour, with what they do. */
async function failing(ids: readonly string[], ask: Ask) {
  // One that was deleted meanwhile is left out.
  const found = await Promise.all(ids.map((node_id) => ask("node/{node_id}", { node_id }).catch(() => null)));
  const nodes = found.flatMap((one) => one?.node ?? []);
  return { nodes, tasks: [], next_cursor: null, total: null };
}

export function Nodes(): VNode {
  const { query } = route.value;
  const { q, cursor } = query;
  const status = oneOf(STATES, query["status"]);
  const order = oneOf(ORDERS, query["order"]) || "busy";
  const known = { q: null, status: ["", ...STATES], order: ORDERS, cursor: null };
  const loaded = useList(
    known,
    async (ask) => {
      const [{ by_node }, { total }] = await Promise.all([
        ask("stats/failures", { last: HOUR_S }),
        ask("stats/nodes", {}),
      ]);
      const page =
        order === "fails"
          ? await failing(
              by_node.slice(0, FAILING).map(({ node_id }) => node_id),
              ask,
            )
          : await ask("node/list", { q, status, order, cursor, tasks: "1", per_page: PAGE });
      const doing = Map.groupBy(page.tasks ?? [], (task) => task.assigned_node);
      const { nodes, next_cursor: next, total: found } = page;
      const failed = new Map(by_node.map(({ node_id, count }) => [node_id, count]));
      return { nodes, next, total: found ?? null, all: total, doing, failed };
    },
    /^(?:node|task)\./,
  );
  const filter = useFilters();
  const { value, error } = loaded;
  const nodes = useSteady(JSON.stringify(query), value?.nodes ?? []);
  const isFiltered = Boolean(q || status);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const sort = (by: (typeof ORDERS)[number]): Sort => ({
    href: here({ order: by, cursor: undefined }),
    order: order !== (by || "busy") ? undefined : by === "id" ? "ascending" : "descending",
  });
  const failuresOf = ({ node_id }: AnyNode): ComponentChildren => {
    const count = value?.failed.get(node_id);
    return count && <a href={to("tasks", "", { failed_by: node_id, last: "3600" })}>{countOf(count)}</a>;
  };
  const selected = nodes.filter(({ node_id }) => chosen.has(node_id));
  const toggle = (nodeId: string): void => setChosen((old) => old.symmetricDifference(new Set([nodeId])));
  const drainAll = async (isOn: boolean): Promise<void> => {
    const requests = selected.map(({ node_id }) => ({
      path: "node/drain" as const,
      body: { node_id, drain: isOn },
    }));
    const isDone = await runAction(
      `${manyOf(selected.length, "node")} ${isOn ? "drain" : "take tasks again"}.`,
      async () => {
        const answers = await hub.value.batch(requests);
        for (const { body } of answers) if (!body.success) throw new Error(body.detail);
      },
    );
    if (isDone) setChosen(new Set());
  };
  return (
    <>
      <Head>
        Nodes{" "}
        {value && (
          <small>
            {isFiltered && value.total !== null
              ? `${countOf(value.total)} of ${countOf(value.all)}`
              : countOf(value.all)}
          </small>
        )}
      </Head>
      <Filters isFiltered={isFiltered}>
        <Field label="Id or name" type="search" {...filter("q")} />
        <Select label="State" options={[["", "any"], ...STATES]} {...filter("status")} value={status} />
      </Filters>
      <Fault text={error} />
      {value?.nodes.length === 0 && (
        <Empty
          text={isFiltered || cursor ? "No node matches." : "No nodes yet. Register one:"}
          {...(value.all === 0 && {
            line: curlOf("node/register", { node_id: "worker-1", name: "Worker 1" }),
          })}
        />
      )}
      {selected.length > 0 && (
        <p class="buttons act chosen">
          <span>{selected.length} selected:</span>
          <Button data-do="drain-selected" onClick={() => drainAll(true)}>
            Drain
          </Button>
          <Button data-do="undrain-selected" onClick={() => drainAll(false)}>
            End the drain
          </Button>
          <Button data-do="deselect" onClick={() => setChosen(new Set())}>
            Select none
          </Button>
        </p>
      )}
      {nodes.length > 0 && (
        <Table
          label="Nodes"
          rows={nodes}
          keyOf={({ node_id }) => node_id}
          columns={[
            [
              "State",
              (node) => (
                <>
                  {mayAct() && (
                    <SelectRow
                      name={node.name}
                      isOn={chosen.has(node.node_id)}
                      toggle={() => toggle(node.node_id)}
                    />
                  )}{" "}
                  <State word={stateOf(node)} />
                </>
              ),
            ],
            ["Node", nameOf, "name", sort("id")],
            ["Heartbeat", (node) => <Age at={node.last_heartbeat} />],
            ["Load", (node) => <Load node={node} />, "", sort("")],
            ["Doing", (node) => <Doing node={node} tasks={value?.doing.get(node.node_id) ?? []} />, "wide"],
            ["Failed/h", failuresOf, "number", sort("fails")],
            ["Done", (node) => countOf(node.tasks_completed), "number"],
            ["LUX", (node) => countOf(node.lux_balance), "number", sort("lux")],
            [
              "Capabilities",
              (node) => capabilitiesOf(node).join(", ") || <span class="quiet">{"any"}</span>,
              "names",
            ],
          ]}
        />
      )}
      <Pager
        back={cursor && ["First page", here({ cursor: undefined })]}
        next={value?.next && ["Next page", here({ cursor: value.next })]}
      />
    </>
  );
}

function stateOf({ draining, status }: AnyNode): string {
  return draining && status === "online" ? "draining" : status;
}

function nameOf({ node_id, name }: AnyNode): VNode {
  return (
    <>
      <a class="row" href={to("nodes", node_id)}>
        {name}
      </a>{" "}
      {name !== node_id && <small>{node_id}</small>}
    </>
  );
}

/** The first tasks that a node holds, and how many more it has. */
function Doing({ node, tasks }: { node: AnyNode; tasks: readonly Summary[] }): VNode {
  const [first] = tasks;
  const more = node.tasks_assigned - 1;
  if (!first)
    return <>{node.draining && node.tasks_assigned === 0 && <small>nothing: safe to stop</small>}</>;
  return (
    <>
      <TaskLink task={first} />{" "}
      {more > 0 && <a href={to("tasks", "", { node: node.node_id, status: "assigned" })}>and {more} more</a>}
      {first.progress !== null && (
        <div class="why" title={first.progress}>
          {first.progress}
        </div>
      )}
    </>
  );
}

/** What is read does not move: a node that comes to the page takes the place of one that left it. */
function useSteady(key: string, nodes: readonly AnyNode[]): readonly AnyNode[] {
  const shown = useRef<{ key: string; ids: readonly string[] }>({ key, ids: [] });
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const before = shown.current.key === key ? shown.current.ids : [];
  const known = new Set(before);
  const come = nodes.map(({ node_id }) => node_id).filter((nodeId) => !known.has(nodeId));
  const kept = before.flatMap((nodeId) => (byId.has(nodeId) ? nodeId : come.splice(0, 1)));
  shown.current = { key, ids: [...kept, ...come] };
  return shown.current.ids.flatMap((nodeId) => byId.get(nodeId) ?? []);
}

export function Load({ node }: { node: AnyNode }): VNode {
  const { tasks_assigned: has, max_tasks: most } = node;
  if (most === null) return <>{countOf(has)}</>;
  return (
    <span class="load">
      <meter
        aria-label="Load"
        class={has > most ? "over" : undefined}
        min={0}
        max={Math.max(1, most)}
        value={has}
      />{" "}
      {has} of {most}
    </span>
  );
}

/** Tasks of each of the lists of a node. */
const RUNNING = 50;
const ENDED = 10;
const EVENTS = 30;

export function NodePage({ id }: { id: string }): VNode {
  const loaded = useLoad(
    id,
    async (ask) => {
      const since = new Date(now.value - HOUR_S * 1_000).toISOString();
      const [{ node }, running, failed, failures, done, { events }] = await Promise.all([
        ask("node/{node_id}", { node_id: id }),
        ask("task/list?fields=summary", { status: "assigned", node_id: id, per_page: RUNNING }),
        ask("task/list?fields=summary", { failed_by: id, since, order: "updated", per_page: ENDED }),
        ask("task/count", { failed_by: id, since }),
        ask("task/list?fields=summary", { status: "completed", node_id: id, per_page: ENDED }),
        ask("events", { node_id: id, limit: EVENTS }),
      ]);
      return { node, running: running.tasks, failed: failed.tasks, failures, done: done.tasks, events };
    },
    (event) => event.node_id === id,
  );
  const { value, error } = loaded;
  useSubject(value?.node.name ?? "");
  if (value === null) return <NotLoaded title="Node" error={error} back={[to("nodes"), "All nodes"]} />;
  const { node, running, failed, failures, done, events } = value;
  const drain = (isOn: boolean): void =>
    void runAction(isOn ? "The node is draining: it gets no new tasks." : "The node takes tasks again.", () =>
      call("node/drain", { node_id: id, drain: isOn }),
    );
  return (
    <>
      <Head error={error}>
        <State word={stateOf(node)} /> {node.name}{" "}
        {node.name !== node.node_id && <small>{node.node_id}</small>}
      </Head>
      <p class="buttons">
        {mayAct() && (
          <Button data-do="drain" onClick={() => drain(!node.draining)}>
            {node.draining ? "End the drain" : "Drain"}
          </Button>
        )}
        {mayAct() && (
          <a class="button" href={to("messages", id)}>
            Messages
          </a>
        )}
        {isAdmin() && (
          <Delete
            data-do="delete"
            ask="Delete this registration? The unfinished tasks of the node will be open again."
            work={() => call("node/delete", { node_id: id })}
            onDone={() => go(to("nodes"))}
          />
        )}
      </p>
      {node.draining && (
        <p class={`say t-${node.tasks_assigned === 0 ? "good" : "wait"}`} role="status">
          {node.tasks_assigned === 0 ? (
            <>
              <b>Drained: nothing runs here.</b> It is safe to stop the node.
            </>
          ) : (
            <>
              <b>
                Drains: {manyOf(node.tasks_assigned, "task")} still{" "}
                {node.tasks_assigned === 1 ? "runs." : "run."}
              </b>{" "}
              The node gets no new ones.
            </>
          )}
        </p>
      )}
      <dl class="facts inline">
        <Fact name="Heartbeat">
          <Age at={node.last_heartbeat} />
        </Fact>
        <Fact name="Load">
          <Load node={node} />
        </Fact>
        <Fact name="Done">{countOf(node.tasks_completed)}</Fact>
        <Fact name="LUX">{countOf(node.lux_balance)}</Fact>
        <Fact name="Capabilities">{capabilitiesOf(node).join(", ") || "any"}</Fact>
        {Object.entries(node.resources ?? {}).map(([name, amount]) => (
          <Fact key={name} name={name}>
            {countOf(node.resources_used?.[name] ?? 0)} of {countOf(amount)} in use
          </Fact>
        ))}
        <Fact name="Automatic assignment">{node.auto_assign ? "on" : "off"}</Fact>
      </dl>
      <Section title="Runs now">
        {running.length === 0 ? <p class="quiet">Nothing.</p> : <Running tasks={running} />}
        {node.tasks_assigned > running.length && (
          <a href={to("tasks", "", { node: id, status: "assigned" })}>All {countOf(node.tasks_assigned)}</a>
        )}
      </Section>
      <Section title="Failed in the last hour">
        {failed.length === 0 ? (
          <p class="quiet">No task.</p>
        ) : (
          <>
            <TaskTable tasks={failed} isOfNode />
            <a href={to("tasks", "", { failed_by: id, last: "3600" })}>
              All {countOf(failures.count)}
              {!failures.exact && "+"}
            </a>
          </>
        )}
      </Section>
      <Section title="Completed last">
        {done.length === 0 ? <p class="quiet">No task.</p> : <TaskTable tasks={done} isOfNode />}
        <a href={to("tasks", "", { node: id })}>All its tasks</a>
      </Section>
      {hasSecret() && (
        <Section title="Ledger">
          <Ledger node={id} />
        </Section>
      )}
      <Section title="Events">
        <EventTable events={events.toReversed()} />
        <a href={to("events", "", { node: id })}>All its events</a>
      </Section>
    </>
  );
}

/** What a node does now, each task with its last note, how long it has run, and how long it has been silent. */
function Running({ tasks }: { tasks: readonly Summary[] }): VNode {
  return (
    <Table
      label="Runs now"
      rows={tasks}
      keyOf={(task) => task.task_id}
      columns={[
        [
          "Task",
          (task) => (
            <>
              <TaskLink task={task} isRow />
              <div class="why">{noteOf(task)}</div>
            </>
          ),
          "wide",
        ],
        ["Type", typeOf, "id"],
        [
          "Runs for",
          (task) =>
            task.started_at === null ? (
              <span class="quiet">not started</span>
            ) : (
              <RunsFor since={task.started_at} />
            ),
        ],
        ["Last change", (task) => <Age at={task.updated_at} />],
      ]}
    />
  );
}

function RunsFor({ since }: { since: string }): VNode {
  return <>{useNow((time) => durationOf(Math.max(0, Math.round((time - Date.parse(since)) / 1_000))))}</>;
}
