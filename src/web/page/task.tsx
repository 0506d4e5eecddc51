/**
 * The view of one task, as its story: what came of it, why it does not run, its attempts, its output, what it waits for,
 * its fields and its actions.
 */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { Event, FileRecord, TaskDetails, Variant } from "../../client/luxhub.ts";
import { EVENT_KINDS } from "../../domain/event.ts";
import {
  type AnyTask,
  commandOf,
  countOf,
  curlOf,
  durationOf,
  priorityOf,
  quoted,
  sizeOf,
  stateOf,
} from "./format.ts";
import { Graph } from "./graph.tsx";
import { ReviewOf } from "./review.tsx";
import { Attempts } from "./story.tsx";
import { Labels } from "./tasks.tsx";
import { Usage } from "./usage.tsx";
import { dataOf } from "./event-table.tsx";
import { FileActions, FileLink } from "./file-actions.tsx";
import {
  Age,
  Button,
  Copy,
  Delete,
  Fault,
  Head,
  NodeLink,
  NotLoaded,
  Section,
  State,
  TaskLink,
  Verified,
  runAction,
  runAsked,
  showNotice,
  useLoad,
} from "./parts.tsx";
import { Output } from "./output.tsx";
import { TaskQuestions } from "./question.tsx";
import { go, to, useSubject } from "./route.ts";
import { call, hasSecret, isAdmin, mayAct } from "./session.ts";
import { timeOf } from "./times.ts";

/** The most events that the time line shows, and of those the most notes: the newest. */
const STEPS = 300;
const NOTES = 200;
/** The kinds of steps; notes are read apart, so that many of them hide no attempt. */
const STEP_KINDS = EVENT_KINDS.filter((kind) => kind !== "task.progress").join(",");
/** The most files that are shown; the list of files has the rest. */
const FILES = 50;
/** The most questions that are shown. */
const QUESTIONS = 50;

export function TaskPage({ id }: { id: string }): VNode {
  const loaded = useLoad(
    id,
    async (ask) => {
      const [{ task }, steps, notes] = await Promise.all([
        ask("task/{task_id}", { task_id: id }),
        ask("events", { kind: STEP_KINDS, task_id: id, limit: STEPS }),
        ask("events", { kind: "task.progress", task_id: id, limit: NOTES }),
      ]);
      const events = steps.events;
      const isCut = { steps: events.length === STEPS, notes: notes.events.length === NOTES };
      const all = [...events, ...notes.events].toSorted((one, other) => one.id - other.id);
      const files = task.files.length === 0 ? null : await ask("file/list", { task_id: id, per_page: FILES });
      const asked = events.some(({ kind }) => kind === "task.asked") || task.waiting_for !== null;
      const page = asked ? await ask("task/{task_id}/questions", { task_id: id, limit: QUESTIONS }) : null;
      return { task, events, all, isCut, files, questions: page?.questions ?? [] };
    },
    (event) => event.task_id === id,
  );
  const { value, error } = loaded;
  useSubject(value?.task.title ?? "");
  if (value === null) return <NotLoaded title="Task" error={error} back={[to("tasks"), "All tasks"]} />;
  const { task, events, all, isCut, files, questions } = value;
  const state = stateOf(task);
  const isEnded = state === "completed" || state === "failed";
  const description = (
    <Section title="Description">
      <pre class="text">{task.description}</pre>
    </Section>
  );
  return (
    <>
      <Head error={error} more={<Labels task={task} />}>
        <State word={state} /> {task.title}
      </Head>
      <Actions task={task} />
      {!isEnded && state !== "assigned" && <WhyNot task={task} />}
      <Graph task={task} />
      <div class="columns">
        <div>
          {!isEnded && description}
          {task.failure !== null && state === "failed" && <Failed failure={task.failure} />}
          {task.result !== null && <Result result={task.result} verified={task.result_verified} />}
          {task.review && <ReviewOf task={task} review={task.review} />}
          <Attempts events={all} />
          {isCut.notes && <p class="quiet">Only its last {NOTES} notes.</p>}
          {hasSecret() && <Output key={id} taskId={id} />}
          <TaskQuestions questions={questions} />
          {isEnded && description}
          {files !== null && (
            <>
              <FileSection
                title="Input files"
                files={files.files.filter((one) => one.attached === "input")}
              />
              <FileSection
                title="Output files"
                files={files.files.filter((one) => one.attached === "output")}
              />
              {files.total !== null && files.total > FILES && (
                <a href={to("files", "", { task: id })}>All {countOf(files.total)}</a>
              )}
            </>
          )}
        </div>
        <div>
          <Section title="Fields">
            <Facts task={task} />
          </Section>
          <Context taskId={id} />
          <Section title="Time line">
            <Story events={events} />
            {isCut.steps && (
              <p class="quiet">
                Only its last {STEPS} events.{" "}
                <Copy
                  text={commandOf(`events --task ${quoted(id)} --since 0`)}
                  label="Copy the command for all"
                />
              </p>
            )}
          </Section>
        </div>
      </div>
    </>
  );
}

function Failed({ failure }: { failure: NonNullable<AnyTask["failure"]> }): VNode {
  const { kind, message, node_id, at } = failure;
  return (
    <Section title="Why it failed">
      <p>
        <b class="fault">{kind.replace("_", " ")}</b> {node_id !== null && <NodeLink id={node_id} />}{" "}
        <Age at={at} />
      </p>
      {message !== null && <pre class="text fault">{message}</pre>}
    </Section>
  );
}

/** Reasons that somebody has to act on. */
const BROKEN: ReadonlySet<string> = new Set([
  "paused",
  "budget",
  "no_node",
  "nodes_offline",
  "nodes_draining",
]);

/** Why an open task does not run: all reasons, as the hub says them. */
function WhyNot({ task: { task_id, updated_at } }: { task: AnyTask }): VNode | null {
  const loaded = useLoad(
    `${task_id} ${updated_at}`,
    (ask) => ask("task/{task_id}/explain", { task_id }),
    // What nodes, limits and pauses change is no event of the task.
    /^(?:node|limit|hub|budget)\./,
  );
  const { value, error } = loaded;
  if (value === null) return <Fault text={error} />;
  const isBroken = value.reasons.some(({ code }) => BROKEN.has(code));
  return (
    <div class={`say t-${isBroken ? "bad" : "wait"}`} role="status">
      {value.reasons.map(({ code, detail, until }) => (
        <div key={code}>
          {detail} {until !== null && <small>until {timeOf(until)}</small>}
        </div>
      ))}
    </div>
  );
}

/** What the next worker of the task gets with it, loaded when somebody wants to see it. */
function Context({ taskId }: { taskId: string }): VNode {
  const [isOpen, setOpen] = useState(false);
  const loaded = useLoad(`${taskId} ${isOpen}`, async (ask) =>
    isOpen ? ((await ask("task/{task_id}", { task_id: taskId, context: "1" })).context ?? {}) : null,
  );
  const { value, error } = loaded;
  return (
    <section>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>What a worker gets with it</summary>
        <Fault text={error} />
        {value && Object.keys(value).length === 0 && <p class="quiet">Nothing but the task.</p>}
        {value?.inputs?.map((input) => (
          <article key={input.task_id} class="question">
            <a href={to("tasks", input.task_id)}>{input.title ?? input.task_id}</a>{" "}
            {input.status !== null && <State word={input.status} />}
            {input.result !== null && <pre class="text">{JSON.stringify(input.result, null, 2)}</pre>}
            {input.files.map((file) => (
              <p key={file.file_id}>
                {file.name} <small>{sizeOf(file.size)}</small>
              </p>
            ))}
          </article>
        ))}
        {value?.checkpoint && (
          <>
            <h3>
              Checkpoint of {value.checkpoint.node_id} <Age at={value.checkpoint.at} />
            </h3>
            <pre class="text">{JSON.stringify(value.checkpoint.data, null, 2)}</pre>
          </>
        )}
        {value?.answers && value.answers.length > 0 && (
          <p>{countOf(value.answers.length)} answered questions, as shown here.</p>
        )}
        {value?.failures && value.failures.length > 0 && (
          <p>{countOf(value.failures.length)} failed attempts, as shown here.</p>
        )}
        {value?.lessons?.map((lesson) => (
          <article key={lesson.task_id} class="question">
            <h3>
              Lesson of <TaskLink task={lesson} />
            </h3>
            <pre class="text">{lesson.lesson}</pre>
          </article>
        ))}
      </details>
    </section>
  );
}

function FileSection({ title, files }: { title: string; files: readonly FileRecord[] }): VNode | null {
  if (files.length === 0) return null;
  return (
    <Section title={<>{title}</>}>
      <ul class="plain lines">
        {files.map((file) => (
          <li key={file.file_id} class="file">
            <FileLink file={file} />
            <span>
              {sizeOf(file.size)} <FileActions file={file} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Result(props: { result: NonNullable<AnyTask["result"]>; verified: boolean }): VNode {
  const { result, verified } = props;
  return (
    <Section
      title={
        <>
          Result <Verified is={verified} />
        </>
      }
    >
      <dl class="stacked">
        {Object.entries(result).map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>
              <pre class="text">{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>
            </dd>
          </>
        ))}
      </dl>
    </Section>
  );
}

/** The entry of the ledger that paid the task. */
function Receipt({ seq }: { seq: number }): VNode {
  const loaded = useLoad(`receipt ${seq}`, async (ask) => {
    const { entries } = await ask("lux/entries", { since: seq - 1, limit: 1 });
    return entries[0] ?? null;
  });
  const entry = loaded.value;
  return (
    <>
      entry {countOf(seq)}
      {entry && `: ${countOf(entry.amount)} LUX`}{" "}
      {entry?.hash != null && <Copy text={entry.hash} label="Copy the hash" />}
      <Fault text={loaded.error} />
      <small class="hash">{entry?.hash}</small>
    </>
  );
}

function linkTo(taskId: string): VNode {
  return (
    <a href={to("tasks", taskId)}>
      <code>{taskId}</code>
    </a>
  );
}

function requirementsOf({ capabilities, resources }: NonNullable<AnyTask["requires"]>): string {
  return [...capabilities, ...Object.entries(resources).map(([name, amount]) => `${name} ${amount}`)].join(
    ", ",
  );
}

function Facts({ task }: { task: TaskDetails<Variant> }): VNode {
  const isUnfinished = task.status !== "completed" && task.status !== "failed";
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ["Id", <code>{task.task_id}</code>],
    ["Node", task.assigned_node && <NodeLink id={task.assigned_node} />],
    ["Creator", task.creator_node && <NodeLink id={task.creator_node} />],
    ["Type", task.task_type],
    ["Priority", priorityOf(task)],
    ["Reward", task.lux_reward === 0 ? null : `${countOf(task.lux_reward)} LUX`],
    ["Receipt", task.paid_seq !== undefined && hasSecret() && <Receipt seq={task.paid_seq} />],
    ["Cost", task.usage && <Usage usage={task.usage} />],
    ["Max. cost", task.max_cost_usd === null ? null : `${countOf(task.max_cost_usd)} USD`],
    ["Failed attempts", `${task.attempts}${task.max_attempts === null ? "" : ` of ${task.max_attempts}`}`],
    ["Restarts", task.restarts === 0 ? null : String(task.restarts)],
    ["Timeout", task.timeout_s === null ? null : durationOf(task.timeout_s)],
    ["Max. run", task.max_run_s === null ? null : durationOf(task.max_run_s)],
    ["Not before", isUnfinished && task.not_before && <Age at={task.not_before} />],
    ["Expires", task.expires_at && <Age at={task.expires_at} />],
    ["Started", task.started_at && <Age at={task.started_at} />],
    ["Created", <Age at={task.created_at} />],
    ["Changed", <Age at={task.updated_at} />],
    ["Requires", task.requires && requirementsOf(task.requires)],
    ["Limit key", task.limit_key],
    [
      "Quorum",
      task.quorum && (
        <>
          {task.quorum.state}: {task.quorum.results} of {task.quorum.of} must agree
          {task.quorum.agreed.length > 0 && `; ${task.quorum.agreed.join(", ")} do`}{" "}
          {task.quorum.copies.map((id, i) => (
            <a key={id} href={to("tasks", id)}>
              copy {i + 1}{" "}
            </a>
          ))}
        </>
      ),
    ],
    [task.made_for === "review" ? "Reviews" : "Copy of", task.parent_task && linkTo(task.parent_task)],
    ["Schedule", task.schedule && <a href={to("schedules")}>{task.schedule.name}</a>],
    ["Unique key", task.unique_key && <code>{task.unique_key}</code>],
    ["Held until", task.unique_until && <Age at={task.unique_until} />],
    ["Kept for", task.retain_s === undefined ? null : durationOf(task.retain_s)],
    ["Starts", task.on_dependency === "run" ? "when all have ended, however" : null],
  ];
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ),
      )}
    </dl>
  );
}

function Story({ events }: { events: readonly Event[] }): VNode {
  if (events.length === 0)
    return <p class="quiet">The hub has removed the events of this task: they were older than --retain.</p>;
  const first = Date.parse(events[0]?.at ?? "");
  return (
    <ol class="story">
      {events.map((event) => {
        const after = (Date.parse(event.at) - first) / 1_000;
        return (
          <li key={event.id} class={`k-${event.kind.split(".")[1] ?? ""}`}>
            <b>{event.kind.replace("task.", "")}</b>{" "}
            {event.node_id !== null && <NodeLink id={event.node_id} />}{" "}
            <time dateTime={event.at} title={event.at}>
              {after === 0 ? timeOf(event.at) : `+${durationOf(after)}`}
            </time>
            <span class="data">{dataOf(event)}</span>
          </li>
        );
      })}
    </ol>
  );
}

function Actions({ task }: { task: AnyTask }): VNode {
  const { task_id } = task;
  const state = stateOf(task);
  const cancel = (): Promise<boolean> =>
    runAsked("Cancel this task? Its state will be failed.", "Cancel the task", "Cancelled.", () =>
      call("task/cancel", { task_id, reason: "cancelled in the dashboard" }),
    );
  const retry = (): Promise<boolean> => runAction("Open again.", () => call("task/retry", { task_id }));
  const retryAll = async (): Promise<void> => {
    let opened = 0;
    const isDone = await runAction("Open again.", async () => {
      for (;;) {
        const { dependents } = await call("task/retry", { task_id, with_dependents: true });
        opened += dependents?.opened ?? 0;
        // None was opened: what is left fails for another reason, too.
        if (!dependents || dependents.left === 0 || dependents.opened === 0) return;
      }
    });
    if (isDone) showNotice(`The task is open again, with ${countOf(opened)} of the tasks that depend on it.`);
  };
  return (
    <p class="buttons">
      {mayAct() && state === "failed" && (
        <Button class="primary" data-do="retry" onClick={retry}>
          Retry
        </Button>
      )}
      {mayAct() && state === "failed" && (
        <Button data-do="retry-all" onClick={() => retryAll()}>
          Retry with dependents
        </Button>
      )}
      {mayAct() && state !== "failed" && state !== "completed" && (
        <Button data-do="cancel" onClick={() => cancel()}>
          Cancel
        </Button>
      )}
      {mayAct() && (
        <a class="button" data-do="again" href={to("new", task_id)}>
          Run again
        </a>
      )}
      <Copy text={curlOf(`task/${encodeURIComponent(task_id)}`)} label="Copy as curl" />
      <Copy text={commandOf(`task show ${quoted(task_id)}`)} label="Copy as luxhub" />
      {isAdmin() && (
        <Delete
          data-do="delete"
          ask="Delete this task permanently?"
          work={() => call("task/delete", { task_id })}
          onDone={() => go(to("tasks"))}
        />
      )}
    </p>
  );
}
