/** The nodes: who is there, how loaded, and what each does now; one node with its tasks, ledger and events. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type AnyNode, capabilitiesOf, countOf, curlOf } from "./format.ts";
import { EventTable } from "./events.tsx";
import { Ledger } from "./lux.tsx";
import { Age, Empty, Fault, Field, State, Table, ask, attempt, useEvents, useLoad } from "./parts.tsx";
import { go, route, setQuery, to } from "./route.ts";
import { hasSecret, hub, isAdmin, mayAct } from "./session.ts";
import { TaskTable } from "./tasks.tsx";

/** A row costs the browser more than the hub. */
const ROWS = 200;

export function Nodes(): JSX.Element {
  const loaded = useLoad("nodes", async (from, signal) => {
    const [{ nodes }, { tasks }] = await Promise.all([
      from.nodes.list({}, { signal }),
      from.tasks.list({ status: "assigned", per_page: 50 }, { signal }),
    ]);
    return { nodes: nodes.toSorted(byNeed), doing: new Map(tasks.map((task) => [task.assigned_node, task])) };
  });
  useEvents(({ kind }) => /^(?:node|task)\./.test(kind), loaded);
  const [limit, setLimit] = useState(ROWS);
  const { value, error } = loaded;
  const word = (route.value.query["q"] ?? "").toLowerCase();
  const matching = (value?.nodes ?? []).filter(
    (node) =>
      word === "" || `${node.node_id} ${node.name} ${String(node.capabilities)}`.toLowerCase().includes(word),
  );
  return (
    <>
      <header class="head">
        <h1>Nodes {value && <small>{countOf(value.nodes.length)}</small>}</h1>
      </header>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Field
          label="Name, id or capability"
          name="q"
          type="search"
          value={word}
          onInput={(q) => setQuery({ q })}
        />
      </form>
      <Fault text={error} />
      {value && matching.length === 0 && (
        <Empty
          text={word === "" ? "No nodes yet. Register one:" : "No node matches."}
          {...(word === "" && { line: curlOf("node/register", { node_id: "worker-1", name: "Worker 1" }) })}
        />
      )}
      {matching.length > 0 && (
        <Table
          label="Nodes"
          head={["State", "Node", "Heartbeat", "Load", "Doing", "Done", "LUX", "Capabilities"]}
        >
          {matching.slice(0, limit).map((node) => {
            const task = value?.doing.get(node.node_id);
            return (
              <tr key={node.node_id}>
                <td>
                  <State word={node.draining && node.status === "online" ? "draining" : node.status} />
                </td>
                <td>
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
                <td>{capabilitiesOf(node).join(", ") || <span class="quiet">{"any"}</span>}</td>
              </tr>
            );
          })}
        </Table>
      )}
      {matching.length > limit && (
        <p class="pager">
          <button type="button" onClick={() => setLimit(limit * 5)}>
            More of {countOf(matching.length)}
          </button>
        </p>
      )}
    </>
  );
}

/** Online first, the busiest first. */
function byNeed(a: AnyNode, b: AnyNode): number {
  return (
    Number(b.status === "online") - Number(a.status === "online") ||
    b.tasks_assigned - a.tasks_assigned ||
    (a.node_id < b.node_id ? -1 : 1)
  );
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
    void attempt(isOn ? "It drains." : "It takes tasks again.", () =>
      hub.value.nodes.drain({ node_id: id, drain: isOn }),
    );
  const remove = async (): Promise<void> => {
    if (!(await ask("Delete this registration? Its tasks go back to the pool.", "Delete"))) return;
    if (await attempt("Deleted.", () => hub.value.nodes.delete({ node_id: id }))) go(to("nodes"));
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
            {node.draining ? "Let it take tasks" : "Drain"}
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
        <dt>Balancer</dt>
        <dd>{node.auto_assign ? "may give it tasks" : "gives it none"}</dd>
      </dl>
      <section>
        <h2>Its tasks</h2>
        {tasks.length === 0 ? <p class="quiet">It has had none.</p> : <TaskTable tasks={tasks} />}
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
