/** LUX: the leaderboard, and the ledger of a node. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { countOf, curlOf } from "./format.ts";
import { Age, Empty, Fault, Table, useEvents, useLoad } from "./parts.tsx";
import { route, to } from "./route.ts";

const PAGE = 50;

export function Lux(): JSX.Element {
  const { cursor, place = "1", most } = route.value.query;
  const first = Number(place);
  const loaded = useLoad(`lux ${cursor}`, async (from, signal) => {
    const [{ lux_balance }, { nodes, next_cursor }] = await Promise.all([
      from.nodes.stats({}, { signal }),
      from.nodes.list({ order: "lux", per_page: PAGE, cursor }, { signal }),
    ]);
    const leaders = nodes.filter((node) => node.lux_balance > 0);
    return { sum: lux_balance, leaders, next: leaders.length < PAGE ? null : next_cursor };
  });
  useEvents(({ kind }) => kind.startsWith("lux."), loaded);
  const { value, error } = loaded;
  const highest = Number(most ?? value?.leaders[0]?.lux_balance ?? 1);
  const next = { place: String(first + PAGE), most: String(highest) };
  return (
    <>
      <header class="head">
        <h1>LUX {value && <small>{countOf(value.sum)}</small>}</h1>
      </header>
      <Fault text={error} />
      {value?.sum === 0 && (
        <Empty
          text="No node has earned LUX yet. A completed task pays its reward, and the daily bonus (signin) is 10 LUX:"
          line={curlOf("signin", { node_id: "worker-1" })}
        />
      )}
      {value && value.leaders.length > 0 && (
        <Table label="Leaderboard" head={["Place", "Node", "LUX", "Share", "Tasks done"]}>
          {value.leaders.map((node, i) => (
            <tr key={node.node_id}>
              <td class="number quiet">{first + i}</td>
              <td class="name">
                <a class="row" href={to("nodes", node.node_id)}>
                  {node.name}
                </a>
              </td>
              <td class="number">{countOf(node.lux_balance)}</td>
              <td class="wide">
                <meter aria-label="Share of the first node" min={0} max={highest} value={node.lux_balance} />
              </td>
              <td class="number">{countOf(node.tasks_completed)}</td>
            </tr>
          ))}
        </Table>
      )}
      <nav class="pager" aria-label="Pages">
        {cursor && <a href={to("lux")}>First page</a>}
        {value?.next && (
          <a rel="next" href={to("lux", "", { ...next, cursor: value.next })}>
            The next
          </a>
        )}
      </nav>
    </>
  );
}

export function Ledger({ node }: { node: string }): JSX.Element {
  const [page, setPage] = useState(1);
  const loaded = useLoad(`${node} ${page}`, (from, signal) =>
    from.lux.ledger({ node_id: node, page, per_page: 10 }, { signal }),
  );
  useEvents((event) => event.kind.startsWith("lux.") && event.node_id === node, loaded);
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  if (value.total === 0) return <p class="quiet">This node has earned nothing yet.</p>;
  return (
    <>
      <Table label="Ledger" head={["When", "LUX", "For", "Task"]}>
        {value.entries.map((entry) => (
          <tr key={entry.id}>
            <td>
              <Age at={entry.at} />
            </td>
            <td class="number">{countOf(entry.amount)}</td>
            <td>{entry.kind}</td>
            <td class="wide">
              {entry.task_id !== null && (
                <a href={to("tasks", entry.task_id)}>
                  <code>{entry.task_id}</code>
                </a>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <p class="pager">
        {page > 1 && (
          <button type="button" onClick={() => setPage(page - 1)}>
            Newer
          </button>
        )}
        {page < value.pages && (
          <button type="button" onClick={() => setPage(page + 1)}>
            Older
          </button>
        )}
      </p>
    </>
  );
}
