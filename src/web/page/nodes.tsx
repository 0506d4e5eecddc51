/** The nodes with their load and current tasks; one node with its tasks, ledger and events. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { type AnyNode, capabilitiesOf, countOf, curlOf } from "./format.ts";
import { EventTable } from "./events.tsx";
import { Ledger } from "./lux.tsx";
import {
  Age,
  Empty,
  Fault,
  Field,
  Select,
  State,
  Table,
  askToConfirm,
  runAction,
  useEvents,
  useLoad,
  useTyped,
} from "./parts.tsx";
import { go, route, setQuery, to, wrongQuery } from "./route.ts";
import { hasSecret, hub, isAdmin, mayAct } from "./session.ts";
import { TaskTable } from "./tasks.tsx";

const PAGE = 50;

const STATES = [
  ["", "any"],
  ["online", "online"],
  ["draining", "draining"],
  ["offline", "offline"],
] as const;

const ORDERS = [
  ["", "by load"],
  ["id", "by id"],
  ["lux", "by LUX"],
] as const;

export function Nodes(): JSX.Element {
  const { query } = route.value;
  const { q, cursor } = query;
  const status = (["online", "draining", "offline"] as const).find((one) => one === query["status"]);
  const order = (["id", "lux"] as const).find((one) => one === query["order"]) ?? "busy";
  const wrong = wrongQuery({
    q: null,
    status: STATES.map(([word]) => word),
    order: ORDERS.map(([word]) => word),
    cursor: null,
  });
  const key = JSON.stringify([q, status, order, cursor, wrong]);
  const loaded = useLoad(key, async (from, signal) => {
    if (wrong !== null) throw new Error(wrong);
    const [page, { total }, { tasks }] = await Promise.all([
      from.nodes.list({ q, status, order, cursor, per_page: PAGE }, { signal }),
      from.nodes.stats({}, { signal }),
      from.tasks.list({ status: "assigned", per_page: 50 }, { signal }),
    ]);
    const doing = new Map(tasks.map((task) => [task.assigned_node, task]));
    return { nodes: page.nodes, next: page.next_cursor, total: page.total ?? null, all: total, doing };
  });
  useEvents(({ kind }) => /^(?:node|task)\./.test(kind), loaded);
  const set = useTyped((changed) => setQuery({ ...changed, cursor: undefined }));
  const { error } = loaded;
  const value = wrong === null ? loaded.value : null;
  const nodes = useSteady(key, value?.nodes ?? []);
  const isFiltered = Boolean(q || status);
  return (
    <>
      <header class="head">
        <h1>
          Nodes{" "}
          {value && (
            <small>
              {isFiltered && value.total !== null
                ? `${countOf(value.total)} of ${countOf(value.all)}`
                : countOf(value.all)}
            </small>
          )}
        </h1>
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Field label="Id or name" name="q" type="search" value={q} onInput={set("q")} />
        <Select label="State" name="status" value={status} options={STATES} onInput={set("status")} />
        <Select label="Order" name="order" value={query["order"]} options={ORDERS} onInput={set("order")} />
        {isFiltered && (
          <a class="button" href={to("nodes")}>
            Clear
          </a>
        )}
      </form>
      <Fault text={error} />
      {value?.nodes.length === 0 && (
        <Empty
          text={isFiltered || cursor ? "No node matches." : "No nodes yet. Register one:"}
          {...(value.all === 0 && {
            line: curlOf("node/register", { node_id: "worker-1", name: "Worker 1" }),
          })}
        />
      )}
      {nodes.length > 0 && (
        <Table
          label="Nodes"
          head={["State", "Node", "Heartbeat", "Load", "Doing", "Done", "LUX", "Capabilities"]}
        >
          {nodes.map((node) => {
            const task = value?.doing.get(node.node_id);
            return (
              <tr key={node.node_id}>
                <td>
                  <State word={node.draining && node.status === "online" ? "draining" : node.status} />
                </td>
                <td class="name">
                  <a class="row" href={to("nodes", node.node_id)}>
                    {node.name}
                  </a>{" "}
                  {node.name !== node.node_id && <small>{node.node_id}</small>}
                </td>
                <td>
                  <Age at={node.last_heartbeat} />
                </td>
                <td>
                  <Load node={node} />
                </td>
                <td class="wide">{task && <a href={to("tasks", task.task_id)}>{task.title}</a>}</td>
                <td class="number">{countOf(node.tasks_completed)}</td>
                <td class="number">{countOf(node.lux_balance)}</td>
                <td class="names">{capabilitiesOf(node).join(", ") || <span class="quiet">{"any"}</span>}</td>
              </tr>
            );
          })}
        </Table>
      )}
      <nav class="pager" aria-label="Pages">
        {cursor && <a href={to("nodes", "", { ...query, cursor: undefined })}>First page</a>}
        {value?.next && (
          <a rel="next" href={to("nodes", "", { ...query, cursor: value.next })}>
            Next page
          </a>
        )}
      </nav>
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

export function Load({ node }: { node: AnyNode }): JSX.Element {
  const { tasks_assigned: has, max_tasks: most } = node;
  if (most === null) return <>{countOf(has)}</>;
  return (
    <span class="load">
      <meter aria-label="Load" min={0} max={Math.max(1, most)} value={has} /> {has} of {most}
    </span>
  );
}

export function NodePage({ id }: { id: string }): JSX.Element {
  const loaded = useLoad(id, async (from, signal) => {
    const [{ node }, { tasks }, { events }] = await Promise.all([
      from.nodes.get({ node_id: id }, { signal }),
      from.tasks.list({ node_id: id, per_page: 20 }, { signal }),
      from.call("events", { node_id: id, limit: 30 }, { signal }),
    ]);
    return { node, tasks, events };
  });
  useEvents((event) => event.node_id === id, loaded);
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  const { node, tasks, events } = value;
  const drain = (isOn: boolean): void =>
    void runAction(isOn ? "The node is draining: it gets no new tasks." : "The node takes tasks again.", () =>
      hub.value.nodes.drain({ node_id: id, drain: isOn }),
    );
  const remove = async (): Promise<void> => {
    if (
      !(await askToConfirm(
        "Delete this registration? The unfinished tasks of the node will be open again.",
        "Delete",
      ))
    )
      return;
    if (await runAction("Deleted.", () => hub.value.nodes.delete({ node_id: id }))) go(to("nodes"));
  };
  return (
    <>
      <header class="head">
        <h1>
          <State word={node.draining && node.status === "online" ? "draining" : node.status} /> {node.name}{" "}
          <small>{node.node_id}</small>
        </h1>
      </header>
      <Fault text={error} />
      <p class="buttons">
        {mayAct.value && (
          <button type="button" data-do="drain" onClick={() => drain(!node.draining)}>
            {node.draining ? "End the drain" : "Drain"}
          </button>
        )}
        {mayAct.value && (
          <a class="button" href={to("messages", id)}>
            Messages
          </a>
        )}
        {isAdmin.value && (
          <button type="button" class="danger" data-do="delete" onClick={() => void remove()}>
            Delete
          </button>
        )}
      </p>
      <dl class="facts inline">
        <dt>Heartbeat</dt>
        <dd>
          <Age at={node.last_heartbeat} />
        </dd>
        <dt>Load</dt>
        <dd>
          <Load node={node} />
        </dd>
        <dt>Done</dt>
        <dd>{countOf(node.tasks_completed)}</dd>
        <dt>LUX</dt>
        <dd>{countOf(node.lux_balance)}</dd>
        <dt>Capabilities</dt>
        <dd>{capabilitiesOf(node).join(", ") || "any"}</dd>
        <dt>Automatic assignment</dt>
        <dd>{node.auto_assign ? "on" : "off"}</dd>
      </dl>
      <section>
        <h2>Tasks</h2>
        {tasks.length === 0 ? <p class="quiet">The node has no tasks.</p> : <TaskTable tasks={tasks} />}
      </section>
      {hasSecret.value && (
        <section>
          <h2>Ledger</h2>
          <Ledger node={id} />
        </section>
      )}
      <section>
        <h2>Events</h2>
        <EventTable events={events.toReversed()} />
      </section>
    </>
  );
}
