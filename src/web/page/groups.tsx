/** The groups of tasks; and one group: its counts, what runs or why nothing does, its last failures, and its actions. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { type Action, act } from "./action.tsx";
import { changeMatching } from "./bulk.ts";
import { now } from "./clock.ts";
import { DetailPage } from "./detail.tsx";
import { saveBlob } from "./file-actions.tsx";
import { commandOf, countOf, curlOf, quoted } from "./format.ts";
import { ListPage } from "./list-page.tsx";
import { List, type ListOf } from "./list.tsx";
import { pagesOf } from "./load.ts";
import { showNotice } from "./notice.tsx";
import {
  Age,
  Button,
  Copy,
  type FactOf,
  Link,
  NodeLink,
  Section,
  State,
  TaskLink,
  type Tile,
  Tiles,
} from "./parts.tsx";
import { to } from "./route.ts";
import { type Ask, askUntil, call, describe, mayAct } from "./session.ts";
import { WhyNot } from "./task.tsx";
import { tasksOf } from "./tasks.tsx";
import { Usage } from "./costs.tsx";

const PAGE = 20;
const EXPORTED = 50;
/** The page knows the hub's clock within this. */
const CLOCK_MS = 3_000;

type Counts = AnswerOf<"group/list", Variant>["groups"][number];
type Group = AnswerOf<"group/{group}", Variant>;

const GROUPS: ListOf<Counts> = {
  label: "Groups",
  keyOf: ({ group }) => group,
  columns: [
    ["State", (group) => <State word={stateOf(group)} />],
    ["Group", ({ group }) => <Link class="row" href={to("groups", group)} text={group} />, "name"],
    ["Progress", (group) => <Progress group={group} />, "wide"],
    ["Failed", ({ by_status }) => by_status.failed > 0 && countOf(by_status.failed), "number"],
    ["LUX", ({ lux_paid }) => lux_paid > 0 && countOf(lux_paid), "number"],
    ["Begun", (group) => <Age at={group.first_created_at} />],
    ["Changed", (group) => <Age at={group.last_updated_at} />],
  ],
};

export function Groups(): VNode {
  return (
    <ListPage
      title="Groups"
      filters={[{ name: "q", label: "Beginning of the name", type: "search" }]}
      load={(ask, { q, cursor }) => ask("group/list", { q, cursor, limit: PAGE })}
      concerns={({ data }) => data["group"] !== undefined}
      rows={({ groups }) => groups}
      list={GROUPS}
      empty={[
        "No groups yet. Tasks that are created with the same group are followed as one:",
        commandOf("task add 'Page 1' --group wiki"),
      ]}
      noMatch="No group matches."
    />
  );
}

function stateOf({ done, by_status, cancelled = 0 }: Counts): string {
  if (!done) return "running";
  if (by_status.failed > 0) return "failed";
  return cancelled > 0 ? "cancelled" : "completed";
}

function Progress({ group }: { group: Counts }): VNode {
  const { total, unfinished, by_status } = group;
  const ended = `${countOf(total - unfinished)} of ${countOf(total)}`;
  const words = `${ended} ended, ${countOf(by_status.failed)} failed`;
  return (
    <span class="progress">
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={words}>
        <rect class="p-rest" width="100" height="10" />
        <rect class="p-failed" width={(100 * (total - unfinished)) / total} height="10" />
        <rect class="p-completed" width={(100 * by_status.completed) / total} height="10" />
      </svg>{" "}
      {ended}
    </span>
  );
}

// ---- A group

type Failure = Group["failures"][number];

const FAILURES: ListOf<Failure> = {
  label: "Last failures",
  keyOf: ({ task_id }) => task_id,
  columns: [
    [
      "Task",
      ({ failure, ...task }) => <TaskLink task={task} isRow why={failure?.message ?? failure?.kind} />,
      "wide",
    ],
    ["Node", ({ failure }) => <NodeLink id={failure?.node_id} />, "id"],
    ["When", ({ updated_at }) => <Age at={updated_at} />],
  ],
};

const RUNNING = tasksOf(["State", "Type", "Priority", "LUX", "Created", "Group"]);
const TASKS_OF_GROUP = tasksOf(["Group", "Priority", "LUX", "Changed"]);

const SHOWN = 10;

async function load(ask: Ask, group: string) {
  const list = (filter: object) => ask("task/list?fields=summary", { group, per_page: SHOWN, ...filter });
  const [counts, { tasks: running }, { tasks: newest }, { tasks: open }] = await Promise.all([
    ask("group/{group}", { group }),
    list({ status: "assigned" }),
    list({}),
    list({ status: "open", per_page: 1 }),
  ]);
  return { counts, running, newest, open };
}

export function GroupPage({ id: group }: { id: string }): VNode {
  return (
    <DetailPage
      what="Group"
      id={group}
      back={[to("groups"), "All groups"]}
      load={(ask) => load(ask, group)}
      concerns={({ data }) => data["group"] === group}
      draw={({ counts, running, newest, open }) => ({
        subject: group,
        state: stateOf(counts),
        title: group,
        actions: [retryOf(counts), cancelOf(counts), <Export group={group} total={counts.total} />],
        menu: [
          <Copy
            text={commandOf(`group watch ${quoted(group)}`)}
            label="Copy the command that waits for it"
          />,
          <Copy text={curlOf(`group/${encodeURIComponent(group)}?wait=300`)} label="Copy as curl" />,
        ],
        above: (
          <>
            <Tiles tiles={tilesOf(counts)} />
            {running.length === 0 && open.map((task) => <WhyNot key={task.task_id} {...task} />)}
          </>
        ),
        body: (
          <>
            {!counts.done && (
              <Section title="Running">
                <List list={RUNNING} rows={running} empty="Nothing." />
              </Section>
            )}
            <Section
              title="Tasks"
              note={<Link href={to("tasks", "", { group })} text={`All ${countOf(counts.total)}`} />}
            >
              <List list={TASKS_OF_GROUP} rows={newest} />
            </Section>
          </>
        ),
        facts: factsOf(counts),
        aside: (
          <Section title="Last failures">
            <List list={FAILURES} rows={counts.failures} empty="No task of the group has failed." />
          </Section>
        ),
      })}
    />
  );
}

function tilesOf({ group, by_status, cancelled = 0, in_review = 0 }: Group): readonly Tile[] {
  const tile = (tone: string, status: string, word: string, count: number): Tile => [
    tone,
    countOf(count),
    word,
    { group, status },
  ];
  return [
    ...("pending" in by_status
      ? [tile("wait", "pending", "unfinished", by_status.pending)]
      : [
          tile("wait", "open", "open", by_status.open),
          tile("busy", "assigned", "running", by_status.assigned),
        ]),
    tile("good", "completed", "completed", by_status.completed),
    ...(in_review > 0 ? [tile("wait", "in_review", "of them in review", in_review)] : []),
    tile("bad", "failed", "failed", by_status.failed),
    ...(cancelled > 0 ? [tile("quiet", "cancelled", "cancelled or expired", cancelled)] : []),
  ];
}

function factsOf(counts: Group): readonly FactOf[] {
  return [
    ["Ended", <Progress group={counts} />],
    ["LUX", `${countOf(counts.lux_paid)} of ${countOf(counts.lux_reward)} paid`],
    ["Cost", counts.usage ? <Usage usage={counts.usage} /> : "none reported"],
    ["First task", <Age at={counts.first_created_at} />],
    ["Last change", <Age at={counts.last_updated_at} />],
  ];
}

function retryOf({ group, by_status, cancelled = 0 }: Group): Action | false {
  const total = by_status.failed + cancelled;
  const count = countOf(total);
  const work = async (): Promise<string> => {
    let opened = 0;
    for await (const { retried } of pagesOf((cursor) => call("group/retry", { group, cursor })))
      opened += retried;
    return `${countOf(opened)} of ${count} failed tasks are open again.`;
  };
  const label = `Retry the ${count} failed${cancelled > 0 ? " and cancelled" : ""}`;
  const text = `Retry the ${count} failed tasks of the group ${group}?`;
  const ask = { text, yes: `Retry ${count}`, isHarmless: true };
  return mayAct() && total > 0 && act("retry", label, work, undefined, { look: "primary", ask });
}

function cancelOf({ group, unfinished, in_review = 0 }: Group): Action | false {
  const total = unfinished - in_review;
  const count = countOf(total);
  let startedAt = 0;
  const kept = in_review > 0 ? ` ${countOf(in_review)} in review stay.` : "";
  const work = async (): Promise<string> => {
    let cancelled = 0;
    startedAt = now.value;
    for (;;) {
      const step = await call("group/cancel", { group, reason: "cancelled in the dashboard" });
      cancelled += step.cancelled;
      if (step.left === 0 || step.cancelled === 0)
        return `${countOf(cancelled)} of ${count} unfinished tasks are cancelled.${kept}`;
    }
  };
  const text = `Cancel the ${count} unfinished tasks of the group ${group}? Their state will be failed.`;
  const ask = { text, yes: `Cancel ${count}` };
  const undo = (): Promise<void> => {
    const since = new Date(startedAt - CLOCK_MS).toISOString();
    const what = { path: "task/retry", done: "open again" } as const;
    return changeMatching("Undo", what, { group, status: "cancelled", since }, null);
  };
  return (
    mayAct() && total > 0 && act("cancel", `Cancel the ${count} unfinished`, work, undefined, { ask, undo })
  );
}

function Export({ group, total }: { group: string; total: number }): VNode {
  const [saved, setSaved] = useState(0);
  const [abort, setAbort] = useState<AbortController | null>(null);
  const save = async (signal: AbortSignal): Promise<void> => {
    const lines: string[] = [];
    try {
      const ask = askUntil(signal);
      const load = (cursor: string | undefined) => ask("task/list", { group, per_page: EXPORTED, cursor });
      for await (const { tasks } of pagesOf(load)) {
        lines.push(...tasks.map((task) => `${JSON.stringify(task)}\n`));
        setSaved(lines.length);
      }
      saveBlob(new Blob(lines, { type: "application/x-ndjson" }), `${group}.jsonl`);
    } catch (error) {
      if (!signal.aborted) showNotice(describe(error), true);
    } finally {
      setAbort(null);
    }
  };
  const start = (): void => {
    const started = new AbortController();
    setSaved(0);
    setAbort(started);
    void save(started.signal);
  };
  return (
    <Button
      label={abort === null ? "Export results" : `${countOf(saved)} of ${countOf(total)}: stop`}
      name="export"
      onClick={() => (abort === null ? start() : abort.abort())}
    />
  );
}
