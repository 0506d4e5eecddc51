/** What the nodes share: their notes, and the advisory leases on names such as `src/api/**`. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf } from "../../client/luxhub.ts";
import { act, deletion } from "./action.tsx";
import { DetailPage } from "./detail.tsx";
import { commandOf, sizeOf } from "./format.ts";
import { ListPage } from "./list-page.tsx";
import { List, type ListOf } from "./list.tsx";
import { useEvery, useLoad } from "./load.ts";
import { Age, Fault, Link, NodeLink, Section, TaskId, Verified } from "./parts.tsx";
import { Text } from "./prose.tsx";
import { go, to } from "./route.ts";
import { call, mayAct, mayActFor } from "./session.ts";

const PAGE = 50;
/** No event tells of a lease. */
const LEASES_MS = 10_000;

type Head = AnswerOf<"note/list">["notes"][number];
type Lease = AnswerOf<"lease/list">["leases"][number];

const NOTES: ListOf<Head> = {
  label: "Notes",
  keyOf: ({ key }) => key,
  columns: [
    ["Key", ({ key }) => <Link class="row" href={to("notes", key)} text={key} />, "wide"],
    ["Version", ({ version }) => version, "number"],
    ["By", ({ node_id }) => <NodeLink id={node_id} />, "names"],
    ["Size", ({ bytes }) => sizeOf(bytes), "number"],
    ["Changed", ({ updated_at }) => <Age at={updated_at} />],
  ],
};

const LEASES: ListOf<Lease> = {
  label: "Leases",
  keyOf: ({ fencing }) => fencing,
  columns: [
    ["Name", ({ name }) => <code>{name}</code>, "wide"],
    ["Node", ({ node_id }) => <NodeLink id={node_id} />, "names"],
    ["Task", ({ task_id }) => <TaskId id={task_id} />],
    ["Shared", ({ shared }) => (shared ? "shared" : "exclusive")],
    ["Since", ({ acquired_at }) => <Age at={acquired_at} />],
    ["Until", ({ until }) => <Age at={until} />],
  ],
  actions: ({ name, node_id, fencing }) =>
    mayActFor(node_id)
      ? [
          act(
            "release-lease",
            "Release",
            () => call("lease/release", { name, node_id, fencing }),
            "Released.",
            {
              of: name,
              ask: { text: `Release ${name} in place of ${node_id}?`, yes: "Release" },
            },
          ),
        ]
      : [],
};

export function Notes(): VNode {
  return (
    <ListPage
      title="Notes and leases"
      filters={[
        { name: "q", label: "Words", type: "search" },
        { name: "prefix", label: "Key begins with" },
      ]}
      load={async (
        ask,
        { q, prefix, cursor },
      ): Promise<{ notes: readonly Head[]; next_cursor: string | null }> => {
        const page = { prefix, cursor, per_page: PAGE };
        return q ? ask("note/search", { q, ...page }) : ask("note/list", page);
      }}
      concerns={/^note\./}
      rows={({ notes }) => notes}
      list={NOTES}
      empty={[
        "There are no notes. Nodes share with them what they have learnt:",
        commandOf("note put build/flags 'Use -O2' --node worker-1"),
      ]}
      noMatch="No note matches."
      below={() => <Leases />}
    />
  );
}

function Leases(): VNode {
  const { value, error, reload } = useLoad(
    "leases",
    (ask) => ask("lease/list", { per_page: PAGE }),
    /^node\./,
  );
  useEvery(LEASES_MS, reload);
  return (
    <Section title="Leases" note={value?.next_cursor && `the oldest ${PAGE}`}>
      <Fault text={error} />
      {value && <List list={LEASES} rows={value.leases} empty="No node has a lease." />}
    </Section>
  );
}

export function NotePage({ id }: { id: string }): VNode {
  return (
    <DetailPage
      what="Note"
      id={id}
      back={[to("notes"), "All notes"]}
      load={async (ask) => (await ask("note/get", { key: id })).note}
      concerns={/^note\./}
      draw={({ key, text, version, node_id, verified, created_at, updated_at }) => ({
        subject: key,
        title: key,
        actions: [],
        menu: [
          mayAct() &&
            deletion("delete", "Delete this note?", () => call("note/delete", { key }), {
              then: () => go(to("notes")),
            }),
        ],
        facts: [
          ["Version", String(version)],
          [
            "By",
            <>
              <NodeLink id={node_id} /> <Verified is={verified} />
            </>,
          ],
          ["Changed", <Age at={updated_at} />],
          ["Made", <Age at={created_at} />],
        ],
        body: (
          <Section title="Text">
            <Text value={text} />
          </Section>
        ),
      })}
    />
  );
}
