/** The groups of tasks by name, each with its progress; and one group: its counts, its last failures, and its actions. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { Usage } from "./usage.tsx";
import { saveBlob } from "./file-actions.tsx";
import { commandOf, countOf, curlOf, quoted } from "./format.ts";
import {
  Age,
  Button,
  Copy,
  Empty,
  Fact,
  Fault,
  Field,
  Filters,
  Head,
  NodeLink,
  NotLoaded,
  Pager,
  Section,
  State,
  Table,
  TaskLink,
  askToConfirm,
  pagesOf,
  runAction,
  showNotice,
  useFilters,
  useList,
  useLoad,
} from "./parts.tsx";
import { here, route, to, useSubject } from "./route.ts";
import { askUntil, call, describe, mayAct } from "./session.ts";

const PAGE = 20;
/** Tasks of one request of an export. */
const EXPORTED = 50;

type Counts = AnswerOf<"group/list", Variant>["groups"][number];

export function Groups(): VNode {
  const { q, cursor } = route.value.query;
  const loaded = useList(
    { q: null, cursor: null },
    (ask) => ask("group/list", { q, cursor, limit: PAGE }),
    ({ data }) => data["group"] !== undefined,
  );
  const filter = useFilters();
  const { value, error } = loaded;
  return (
    <>
      <Head>Groups</Head>
      <Filters>
        <Field label="Beginning of the name" type="search" {...filter("q")} />
      </Filters>
      <Fault text={error} />
      {value?.groups.length === 0 && (
        <Empty
          text={
            q || cursor
              ? "No group matches."
              : "No groups yet. Tasks that are created with the same group are followed as one:"
          }
          {...(!q && !cursor && { line: commandOf("task add 'Page 1' --group wiki") })}
        />
      )}
      {value !== null && value.groups.length > 0 && (
        <Table
          label="Groups"
          rows={value.groups}
          keyOf={(group) => group.group}
          columns={[
            ["State", (group) => <State word={stateOf(group)} />],
            [
              "Group",
              (group) => (
                <a class="row" href={to("groups", group.group)}>
                  {group.group}
                </a>
              ),
              "name",
            ],
            ["Progress", (group) => <Progress group={group} />, "wide"],
            ["Failed", (group) => group.by_status.failed > 0 && countOf(group.by_status.failed), "number"],
            ["LUX", (group) => group.lux_paid > 0 && countOf(group.lux_paid), "number"],
            ["Begun", (group) => <Age at={group.first_created_at} />],
            ["Changed", (group) => <Age at={group.last_updated_at} />],
          ]}
        />
      )}
      <Pager
        back={cursor && ["First page", here({ cursor: undefined })]}
        next={value?.next_cursor && ["Next page", here({ cursor: value.next_cursor })]}
      />
    </>
  );
}

function stateOf({ done, by_status, cancelled = 0 }: Counts): string {
  if (!done) return "running";
  if (by_status.failed > 0) return "failed";
  return cancelled > 0 ? "cancelled" : "completed";
}

/** One bar: what is completed, what has failed, and what is left. */
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

export function GroupPage({ id: group }: { id: string }): VNode {
  const loaded = useLoad(
    group,
    (ask) => ask("group/{group}", { group }),
    ({ data }) => data["group"] === group,
  );
  useSubject(group);
  const { value, error } = loaded;
  if (value === null) return <NotLoaded title="Group" error={error} back={[to("groups"), "All groups"]} />;
  const { by_status, unfinished, failures, total, in_review = 0, cancelled = 0 } = value;
  const { failed } = by_status;
  const link = (status: string, count: number): VNode => (
    <a href={to("tasks", "", { group, status })}>{countOf(count)}</a>
  );
  return (
    <>
      <Head error={error}>
        <State word={stateOf(value)} /> {group}
      </Head>
      <p class="buttons">
        {mayAct() && failed + cancelled > 0 && (
          <Button class="primary" data-do="retry" onClick={() => retry(group, failed + cancelled)}>
            Retry the {countOf(failed + cancelled)} failed{cancelled > 0 && " and cancelled"}
          </Button>
        )}
        {mayAct() && unfinished > in_review && (
          <Button data-do="cancel" onClick={() => cancel(group, unfinished - in_review)}>
            Cancel the {countOf(unfinished - in_review)} unfinished
          </Button>
        )}
        <a class="button" href={to("tasks", "", { group })}>
          Its tasks
        </a>
        <Export group={group} total={total} />
        <Copy text={commandOf(`group watch ${quoted(group)}`)} label="Copy the command that waits for it" />
        <Copy text={curlOf(`group/${encodeURIComponent(group)}?wait=300`)} label="Copy as curl" />
      </p>
      <Progress group={value} />
      <dl class="facts inline">
        {"pending" in by_status ? (
          <Fact name="Unfinished">{link("pending", by_status.pending)}</Fact>
        ) : (
          <>
            <Fact name="Open">{link("open", by_status.open)}</Fact>
            <Fact name="Assigned">{link("assigned", by_status.assigned)}</Fact>
          </>
        )}
        <Fact name="Completed">{link("completed", by_status.completed)}</Fact>
        <Fact name="Failed">{link("failed", failed)}</Fact>
        {cancelled > 0 && <Fact name="Cancelled or expired">{countOf(cancelled)}</Fact>}
        <Fact name="LUX">
          {countOf(value.lux_paid)} of {countOf(value.lux_reward)} paid
        </Fact>
        <Fact name="Cost">{value.usage ? <Usage usage={value.usage} /> : "none reported"}</Fact>
        <Fact name="First task">
          <Age at={value.first_created_at} />
        </Fact>
        <Fact name="Last change">
          <Age at={value.last_updated_at} />
        </Fact>
      </dl>
      <Section title="Last failures">
        {failures.length === 0 ? (
          <p class="quiet">No task of the group has failed.</p>
        ) : (
          <Table
            label="Last failures"
            rows={failures}
            keyOf={({ task_id }) => task_id}
            columns={[
              [
                "Task",
                ({ task_id, title, failure }) => (
                  <>
                    <TaskLink task={{ task_id, title }} isRow />
                    <div class="why" title={failure?.message ?? undefined}>
                      {failure?.message ?? failure?.kind}
                    </div>
                  </>
                ),
                "wide",
              ],
              ["Node", ({ failure }) => <NodeLink id={failure?.node_id ?? null} />, "id"],
              ["When", ({ updated_at }) => <Age at={updated_at} />],
            ]}
          />
        )}
      </Section>
    </>
  );
}

async function retry(group: string, failed: number): Promise<void> {
  const question = `Retry the ${countOf(failed)} failed tasks of the group ${group}?`;
  if (!(await askToConfirm(question, `Retry ${countOf(failed)}`, null, true))) return;
  let opened = 0;
  const isDone = await runAction("Open again.", async () => {
    for await (const { retried } of pagesOf((cursor) => call("group/retry", { group, cursor })))
      opened += retried;
  });
  if (isDone) showNotice(`${countOf(opened)} of ${countOf(failed)} failed tasks are open again.`);
}

async function cancel(group: string, unfinished: number): Promise<void> {
  const count = countOf(unfinished);
  const question = `Cancel the ${count} unfinished tasks of the group ${group}? Their state will be failed.`;
  if (!(await askToConfirm(question, `Cancel ${count}`))) return;
  let cancelled = 0;
  const isDone = await runAction("Cancelled.", async () => {
    for (;;) {
      const step = await call("group/cancel", { group, reason: "cancelled in the dashboard" });
      cancelled += step.cancelled;
      if (step.left === 0 || step.cancelled === 0) return;
    }
  });
  if (isDone) showNotice(`${countOf(cancelled)} of ${count} unfinished tasks are cancelled.`);
}

/** Saves all tasks of the group with their results, one as JSON in a line. A second click stops it. */
function Export({ group, total }: { group: string; total: number }): VNode {
  const [done, setDone] = useState<number | null>(null);
  const [abort, setAbort] = useState<AbortController | null>(null);
  const run = async (signal: AbortSignal): Promise<void> => {
    const lines: string[] = [];
    try {
      setDone(0);
      const ask = askUntil(signal);
      const load = (cursor: string | undefined) => ask("task/list", { group, per_page: EXPORTED, cursor });
      for await (const { tasks } of pagesOf(load)) {
        lines.push(...tasks.map((task) => `${JSON.stringify(task)}\n`));
        setDone(lines.length);
      }
      saveBlob(new Blob(lines, { type: "application/x-ndjson" }), `${group}.jsonl`);
    } catch (error) {
      if (!signal.aborted) showNotice(describe(error), true);
    } finally {
      setDone(null);
    }
  };
  const onClick = (): void => {
    if (done !== null) return abort?.abort();
    const ended = new AbortController();
    setAbort(ended);
    void run(ended.signal);
  };
  return (
    <Button data-do="export" onClick={onClick}>
      {done === null ? "Export results" : `${countOf(done)} of ${countOf(total)}: stop`}
    </Button>
  );
}
