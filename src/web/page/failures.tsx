/** Why tasks failed in the last hour, by message. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { type Action, act } from "./action.tsx";
import { changeMatching } from "./bulk.ts";
import { countOf, manyOf } from "./format.ts";
import { List, type ListOf } from "./list.tsx";
import { Age, Link, Section, Why } from "./parts.tsx";
import { to } from "./route.ts";
import { call, mayActFor } from "./session.ts";

type Group = AnswerOf<"stats/failures", Variant>["failures"][number];

const SHOWN = 8;

const FAILURES: ListOf<Group> = {
  label: "Why tasks fail",
  keyOf: ({ group }) => group,
  columns: [
    [
      "Times",
      ({ group, count }) => (
        <a href={to("tasks", "", { failure_group: group, last: "3600" })}>{countOf(count)}×</a>
      ),
      "number s-failed",
    ],
    [
      "Message",
      ({ message, kind, task_type, nodes, node_ids, task_id }) => (
        <>
          <Link href={to("tasks", task_id)} title={`The newest: ${message || kind}`} text={message || kind} />
          <Why
            text={[task_type, nodes > 1 ? manyOf(nodes, "node") : node_ids[0]].filter(Boolean).join(" · ")}
          />
        </>
      ),
      "wide",
    ],
    ["Last", ({ last_at }) => <Age at={last_at} />],
  ],
  actions: (group) => [mayActFor(null) && retryOf(group)],
};

export function Failures({ stats }: { stats: AnswerOf<"stats/failures", Variant> }): VNode {
  const { failures: groups, total, exact } = stats;
  const note = `last hour, by message${exact ? "" : `, of the newest ${countOf(total)}`}`;
  return (
    <Section class="failures" title="Why tasks fail" note={note}>
      <List list={FAILURES} rows={groups.slice(0, SHOWN)} empty="Nothing has failed." />
      {groups.length > SHOWN && (
        <p>
          <a href={to("tasks", "", { status: "failed", last: "3600" })}>
            All {countOf(total)}
            {exact ? "" : "+"}
          </a>
        </p>
      )}
    </Section>
  );
}

function retryOf({ group, count, message, kind }: Group): Action {
  const counted = async () => {
    const { count: all, exact } = await call("task/count", { failure_group: group });
    return { all, exact, number: exact ? countOf(all) : `more than ${countOf(all)}` };
  };
  return act(
    "retry-group",
    `Retry ${countOf(count)}`,
    async () => {
      const { all, exact } = await counted();
      const what = { path: "task/retry", done: "retried" } as const;
      await changeMatching("Retry what failed so", what, { failure_group: group }, exact ? all : null);
    },
    undefined,
    {
      ask: async () => {
        const { all, number } = await counted();
        const earlier = all > count ? ` (${countOf(count)} of them failed in the last hour)` : "";
        const text = `Retry the ${number} tasks that failed with “${message || kind}”${earlier}?`;
        return { text, yes: `Retry ${number}`, isHarmless: true };
      },
    },
  );
}
