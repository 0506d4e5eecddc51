/** The ledger of a node: what it has earned, newest first. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import { countOf } from "./format.ts";
import { Age, Button, Fault, Table, useLoad } from "./parts.tsx";
import { to } from "./route.ts";

export function Ledger({ node }: { node: string }): VNode {
  const [page, setPage] = useState(1);
  const loaded = useLoad(
    `${node} ${page}`,
    (ask) => ask("lux/ledger", { node_id: node, page, per_page: 10 }),
    (event) => event.kind.startsWith("lux.") && event.node_id === node,
  );
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  if (value.total === 0) return <p class="quiet">This node has earned nothing yet.</p>;
  return (
    <>
      <Table
        label="Ledger"
        rows={value.entries}
        keyOf={(entry) => entry.id}
        columns={[
          ["When", (entry) => <Age at={entry.at} />],
          ["LUX", (entry) => countOf(entry.amount), "number"],
          ["For", (entry) => entry.kind],
          [
            "Task",
            (entry) =>
              entry.task_id !== null && (
                <a href={to("tasks", entry.task_id)}>
                  <code>{entry.task_id}</code>
                </a>
              ),
            "wide",
          ],
          [
            "Hash",
            (entry) => (
              <span title={entry.hash ?? ""}>
                <code>{entry.hash}</code>
              </span>
            ),
            "id",
          ],
        ]}
      />
      <p class="pager">
        {page > 1 && <Button onClick={() => setPage(page - 1)}>Newer</Button>}
        {page < value.pages && <Button onClick={() => setPage(page + 1)}>Older</Button>}
      </p>
    </>
  );
}
