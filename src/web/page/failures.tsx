/** Why tasks failed in the last hour, by message; each group is retried with one button. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { changeAll } from "./batches.tsx";
import { matching } from "./bulk.tsx";
import { countOf, manyOf } from "./format.ts";
import { Age, Button, Fault, Section, askToConfirm, useLoad } from "./parts.tsx";
import { to } from "./route.ts";
import { call, mayAct } from "./session.ts";

type Group = AnswerOf<"stats/failures", Variant>["failures"][number];

const SHOWN = 8;

export function Failures(): VNode {
  const loaded = useLoad(
    "failures",
    (ask) => ask("stats/failures", {}),
    /^task\.(?:failed|retried|deleted)$/,
  );
  const { value, error } = loaded;
  const groups = value?.failures.slice(0, SHOWN) ?? [];
  const rest = (value?.failures.length ?? 0) - groups.length;
  return (
    <Section
      title={
        <>
          Why tasks fail{" "}
          <span>
            last hour, by message
            {value && !value.exact && `, of the newest ${countOf(value.total)}`}
          </span>
        </>
      }
    >
      <Fault text={error} />
      {value?.failures.length === 0 && <p class="quiet">Nothing has failed.</p>}
      <ul class="plain failures">
        {groups.map((group) => (
          <One key={group.group} group={group} />
        ))}
      </ul>
      {rest > 0 && (
        <p>
          <a href={to("tasks", "", { status: "failed" })}>{countOf(rest)} more</a>
        </p>
      )}
    </Section>
  );
}

function One({ group }: { group: Group }): VNode {
  const { message, kind, task_type, count, nodes, node_ids, last_at, task_id } = group;
  const where = nodes > 1 ? manyOf(nodes, "node") : node_ids[0];
  const words = message || kind;
  return (
    <li>
      <b>{countOf(count)}×</b>
      <a href={to("tasks", task_id)} title={`The newest: ${words}`}>
        {words}
      </a>
      <small title={node_ids.join(", ")}>
        {[task_type, where].filter(Boolean).join(" · ")} <Age at={last_at} />
      </small>
      {mayAct() && (
        <Button data-do="retry-group" onClick={() => retry(group)}>
          Retry {countOf(count)}
        </Button>
      )}
    </li>
  );
}

/** All tasks of the group that are still failed, also those of earlier hours. */
async function retry({ group, count, message, kind }: Group): Promise<void> {
  const all = await call("task/count", { failure_group: group });
  const number = all.exact ? countOf(all.count) : `more than ${countOf(all.count)}`;
  const earlier = all.count > count ? ` (${countOf(count)} of them failed in the last hour)` : "";
  const question = `Retry the ${number} tasks that failed with “${message || kind}”${earlier}?`;
  if (!(await askToConfirm(question, `Retry ${number}`, null, true))) return;
  await changeAll("Retry what failed so", "retried", all.exact ? all.count : null, async function* (ask) {
    for await (const tasks of matching({ failure_group: group }, ask))
      yield tasks.map(({ task_id }) => ({ path: "task/retry" as const, body: { task_id } }));
  });
}
