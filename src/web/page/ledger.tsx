/** The ledger of a node: what it has earned, newest first. */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import { countOf } from "./format.ts";
import { Age, Button, Fault, Table, useEvents, useLoad } from "./parts.tsx";
import { to } from "./route.ts";

export function Ledger({ node }: { node: string }): JSX.Element {
  const [page, setPage] = useState(1);
  const loaded = useLoad(`${node} ${page}`, (from, signal) =>
    from.call("lux/ledger", { node_id: node, page, per_page: 10 }, { signal }),
  );
  useEvents((event) => event.kind.startsWith("lux.") && event.node_id === node, loaded);
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  if (value.total === 0) return <p class="quiet">This node has earned nothing yet.</p>;
  return (
    <>
      <Table label="Ledger" head={["When", "LUX", "For", "Task", "Hash"]}>
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
            <td class="id" title={entry.hash ?? ""}>
              <code>{entry.hash}</code>
            </td>
          </tr>
        ))}
      </Table>
      <p class="pager">
        {page > 1 && <Button onClick={() => setPage(page - 1)}>Newer</Button>}
        {page < value.pages && <Button onClick={() => setPage(page + 1)}>Older</Button>}
      </p>
    </>
  );
}
