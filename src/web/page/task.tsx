/** A task as its story: what came of it, why it does not run, its attempts, its output, its fields and its actions. */
import { Fragment, type VNode, h } from "preact";
import { useState } from "preact/hooks";
import type { Event, FileRecord, TaskDetails, Variant } from "../../client/luxhub.ts";
import { EVENT_KINDS } from "../../domain/event.ts";
import { isRawNumber } from "../../lib/exact-json.ts";
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
import { ReviewOf, TaskQuestions } from "./questions.tsx";
import { attemptsOf } from "./attempts.ts";
import { Attempts } from "./story.tsx";
import { Labels } from "./tasks.tsx";
import { Usage } from "./costs.tsx";
import { dataOf } from "./events.tsx";
import { filesOf } from "./files.tsx";
import { type ActionItem, type Fields, FormButton, act, deletion } from "./action.tsx";
import { DetailPage } from "./detail.tsx";
import { List } from "./list.tsx";
import { nodeNames } from "./field.tsx";
import { useLoad } from "./load.ts";
import { fieldsWith, priorityOf as wordOf, requirementsOf, tagsOf, textsOf } from "./new-task.tsx";
import {
  Age,
  Copy,
  type FactOf,
  Fault,
  Link,
  NodeLink,
  Say,
  Section,
  State,
  TaskLink,
  Verified,
} from "./parts.tsx";
import { Text } from "./prose.tsx";
import { PATCH_NAME, Patch } from "./patch.tsx";
import { Output } from "./output.tsx";
import { go, to } from "./route.ts";
import { type Ask, call, hasSecret, isAdmin, mayAct, mayActFor } from "./session.ts";
import { isoOf, timeOf, typedOf } from "./times.ts";

/** The most events that the time line shows, and of those the most notes: the newest. */
const STEPS = 300;
const NOTES = 200;
/** The kinds of steps; notes are read apart, so that many of them hide no attempt. */
const STEP_KINDS = EVENT_KINDS.filter((kind) => kind !== "task.progress").join(",");
const FILES = 50;
const QUESTIONS = 50;

async function load(ask: Ask, id: string) {
  const [{ task }, steps, progress] = await Promise.all([
    ask("task/{task_id}", { task_id: id }),
    ask("events", { kind: STEP_KINDS, task_id: id, limit: STEPS }),
    ask("events", { kind: "task.progress", task_id: id, limit: NOTES }),
  ]);
  const events = steps.events;
  const notes = progress.events;
  const hasQuestions = events.some(({ kind }) => kind === "task.asked") || task.waiting_for !== null;
  const [files, answered] = await Promise.all([
    task.files.length === 0 ? null : ask("file/list", { task_id: id, per_page: FILES }),
    hasQuestions ? ask("task/{task_id}/questions", { task_id: id, limit: QUESTIONS }) : null,
  ]);
  return { task, events, notes, files, questions: answered?.questions ?? [] };
}

type Loaded = Awaited<ReturnType<typeof load>>;

export function TaskPage({ id }: { id: string }): VNode {
  return (
    <DetailPage
      what="Task"
      id={id}
      back={[to("tasks"), "All tasks"]}
      load={(ask) => load(ask, id)}
      concerns={(event) => event.task_id === id}
      draw={(loaded) => ({
        subject: loaded.task.title,
        state: stateOf(loaded.task),
        title: loaded.task.title,
        more: <Labels task={loaded.task} />,
        actions: actionsOf(loaded.task),
        menu: menuOf(loaded.task),
        above: <Above task={loaded.task} />,
        body: <Body {...loaded} />,
        facts: factsOf(loaded.task),
        aside: <Aside {...loaded} />,
      })}
    />
  );
}

function isEnded({ status }: AnyTask): boolean {
  return status === "completed" || status === "failed";
}

function Above({ task }: { task: AnyTask }): VNode {
  return (
    <>
      {!isEnded(task) && stateOf(task) !== "assigned" && <WhyNot {...task} />}
      <Graph task={task} />
    </>
  );
}

function Body({ task, events, notes, files, questions }: Loaded): VNode {
  const { task_id: id } = task;
  const attached = (kind: string) => files?.files.filter((file) => file.attached === kind) ?? [];
  const patch = attached("output").find(({ name }) => name === PATCH_NAME);
  const attempts = attemptsOf([...events, ...notes].toSorted((a, b) => a.id - b.id));
  const description = (
    <Section title="Description">
      <Text value={task.description} />
    </Section>
  );
  return (
    <>
      {!isEnded(task) && description}
      {task.failure !== null && task.status === "failed" && <Failed failure={task.failure} />}
      {task.result !== null && <Result result={task.result} verified={task.result_verified} />}
      {patch && <Patch taskId={id} file={patch} />}
      {task.review && (
        <ReviewOf
          task={task}
          review={task.review}
          by={events.findLast(({ kind }) => /^task\.review_(?:passed|rejected)$/.test(kind))?.by}
        />
      )}
      <Attempts attempts={attempts} />
      {notes.length === NOTES && <p class="quiet">Only its last {NOTES} notes.</p>}
      {hasSecret() && <Output key={id} taskId={id} dispatches={attempts.map(({ from }) => from)} />}
      <TaskQuestions questions={questions} events={events} />
      {isEnded(task) && description}
      <Files title="Input files" files={attached("input")} />
      <Files title="Output files" files={attached("output")} />
      {files !== null && files.total !== null && files.total > FILES && (
        <a href={to("files", "", { task: id })}>All {countOf(files.total)}</a>
      )}
    </>
  );
}

function Aside({ task: { task_id: id }, events }: Loaded): VNode {
  return (
    <>
      <Context taskId={id} />
      <Section title="Time line">
        <Story events={events} />
        {events.length === STEPS && (
          <p class="quiet">
            Only its last {STEPS} events.{" "}
            <Copy
              text={commandOf(`events --task ${quoted(id)} --since 0`)}
              label="Copy the command for all"
            />
          </p>
        )}
      </Section>
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
      {message !== null && <Text value={message} class="fault" />}
    </Section>
  );
}

/** Reasons that somebody has to act on. */
const BROKEN = /^(?:paused|budget|no_node|nodes_offline|nodes_draining)$/;

/** Why an open task does not run. */
export function WhyNot({ task_id, updated_at }: Pick<AnyTask, "task_id" | "updated_at">): VNode | null {
  const { value, error } = useLoad(
    `${task_id} ${updated_at}`,
    (ask) => ask("task/{task_id}/explain", { task_id }),
    // What nodes, limits and pauses change is no event of the task.
    /^(?:node|limit|hub|budget)\./,
  );
  if (value === null) return <Fault text={error} />;
  const isBroken = value.reasons.some(({ code }) => BROKEN.test(code));
  return (
    <Say tone={isBroken ? "bad" : "wait"}>
      {value.reasons.map(({ code, detail, until }) => (
        <Fragment key={code}>
          {detail} {until !== null && <small>until {timeOf(until)}</small>}{" "}
        </Fragment>
      ))}
    </Say>
  );
}

/** What the next worker of the task gets with it, loaded when somebody wants to see it. */
function Context({ taskId }: { taskId: string }): VNode {
  const [isOpen, setOpen] = useState(false);
  const { value, error } = useLoad(`${taskId} ${isOpen}`, async (ask) =>
    isOpen ? ((await ask("task/{task_id}", { task_id: taskId, context: "1" })).context ?? {}) : null,
  );
  return (
    <section>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>What a worker gets with it</summary>
        <Fault text={error} />
        {value && Object.keys(value).length === 0 && <p class="quiet">Nothing but the task.</p>}
        {value?.inputs?.map(({ task_id, title, status, result, files }) => (
          <article key={task_id} class="question">
            <Link href={to("tasks", task_id)} text={title ?? task_id} />{" "}
            {status !== null && <State word={status} />}
            {result !== null && <Text value={result} />}
            {files.map(({ file_id, name, size }) => (
              <p key={file_id}>
                {name} <small>{sizeOf(size)}</small>
              </p>
            ))}
          </article>
        ))}
        {value?.checkpoint && (
          <>
            <h3>
              Checkpoint of {value.checkpoint.node_id} <Age at={value.checkpoint.at} />
            </h3>
            <Text value={value.checkpoint.data} />
          </>
        )}
        {value?.answers?.length ? (
          <p>{countOf(value.answers.length)} answered questions, as shown here.</p>
        ) : (
          ""
        )}
        {value?.failures?.length ? (
          <p>{countOf(value.failures.length)} failed attempts, as shown here.</p>
        ) : (
          ""
        )}
        {value?.lessons?.map((lesson) => (
          <article key={lesson.task_id} class="question">
            <h3>
              Lesson of <TaskLink task={lesson} />
            </h3>
            <Text value={lesson.lesson} />
          </article>
        ))}
      </details>
    </section>
  );
}

const FILES_OF_TASK = filesOf(["Type", "Task", "Attached as"]);

function Files({ title, files }: { title: string; files: readonly FileRecord[] }): VNode | null {
  if (files.length === 0) return null;
  return (
    <Section title={title}>
      <List list={FILES_OF_TASK} rows={files} />
    </Section>
  );
}

export function Result(props: { result: NonNullable<AnyTask["result"]>; verified: boolean }): VNode {
  const { result, verified } = props;
  return (
    <Section title={["Result ", <Verified is={verified} />]}>
      <dl class="stacked">
        {Object.entries(result)
          .flatMap(fieldsOf)
          .map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>
                <Text value={value} />
              </dd>
            </>
          ))}
      </dl>
    </Section>
  );
}

/** The fields of an object apart: a letter is read as a letter, and not as JSON. */
function fieldsOf([name, value]: readonly [string, unknown]): readonly (readonly [string, unknown])[] {
  const hasNames =
    typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
  const fields = hasNames ? Object.entries(value) : [];
  return fields.length === 0 ? [[name, value]] : fields.map(([field, part]) => [`${name}.${field}`, part]);
}

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
      <small>{entry?.hash}</small>
    </>
  );
}

function linkTo(taskId: string): VNode {
  return <Link href={to("tasks", taskId)} text={<code>{taskId}</code>} />;
}

function factsOf(task: TaskDetails<Variant>): readonly FactOf[] {
  const isUnfinished = task.status !== "completed" && task.status !== "failed";
  return [
    ["Id", <code>{task.task_id}</code>],
    ["Node", task.assigned_node && <NodeLink id={task.assigned_node} />],
    ["Creator", task.creator_node && <NodeLink id={task.creator_node} />],
    ["Type", task.task_type],
    ["Priority", priorityOf(task)],
    ["Reward", task.lux_reward === 0 ? null : `${countOf(task.lux_reward)} LUX`],
    ["Receipt", task.paid_seq !== undefined && hasSecret() && <Receipt seq={task.paid_seq} />],
    ["Cost", task.usage && <Usage usage={task.usage} />],
    ["Max. cost", task.max_cost_usd === null ? null : `${countOf(task.max_cost_usd)} USD`],
    [
      "Failed attempts",
      task.max_attempts === null
        ? task.attempts > 0 && task.attempts
        : `${task.attempts} of ${task.max_attempts}`,
    ],
    ["Backoff", task.backoff_s === 5 ? null : durationOf(task.backoff_s)],
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
}

/** What the page says besides. */
const OF_TASK: ReadonlySet<string> = new Set(["group", "tags", "file_id"]);

function Story({ events }: { events: readonly Event[] }): VNode {
  if (events.length === 0)
    return <p class="quiet">The hub has removed the events of this task: they were older than --retain.</p>;
  const first = Date.parse(events[0]?.at ?? "");
  return (
    <ol class="story">
      {events.map((event, i) => {
        const after = (Date.parse(event.at) - first) / 1_000;
        return (
          <li key={event.id} class={`k-${event.kind.split(".")[1] ?? ""}`}>
            <b>{event.kind.replace("task.", "").replaceAll(/[._]/g, " ")}</b>{" "}
            {event.node_id !== null && <NodeLink id={event.node_id} />}{" "}
            <time dateTime={event.at} title={event.at}>
              {i === 0 ? timeOf(event.at) : `+${durationOf(after)}`}
            </time>
            <span class="data">{dataOf(event, OF_TASK)}</span>
          </li>
        );
      })}
    </ol>
  );
}

function actionsOf(task: AnyTask): readonly ActionItem[] {
  const { task_id, creator_node } = task;
  const state = stateOf(task);
  const isFailed = state === "failed";
  const mayDecide = mayActFor(creator_node);
  return [
    mayDecide &&
      isFailed &&
      act("retry", "Retry", () => call("task/retry", { task_id }), "Open again.", { look: "primary" }),
    mayDecide && isFailed && act("retry-all", "Retry with dependents", () => retryWithDependents(task_id)),
    mayDecide &&
      !isFailed &&
      state !== "completed" &&
      act(
        "cancel",
        "Cancel",
        () => call("task/cancel", { task_id, reason: "cancelled in the dashboard" }),
        "Cancelled.",
        {
          ask: { text: "Cancel this task? Its state will be failed.", yes: "Cancel the task" },
          undo: () => call("task/retry", { task_id }),
        },
      ),
    mayDecide && (state === "open" || state === "waiting") && (
      <FormButton name="open-update" label="Change" form={() => changing(task)} />
    ),
    isAdmin() && state === "assigned" && (
      <FormButton name="open-revoke" label="Take back" form={() => takingBack(task_id)} />
    ),
    mayAct() && (
      <a class="button" data-do="again" href={to("new", task_id)}>
        Run again
      </a>
    ),
  ];
}

function menuOf({ task_id }: AnyTask): readonly ActionItem[] {
  return [
    <Copy text={curlOf(`task/${encodeURIComponent(task_id)}`)} label="Copy as curl" />,
    <Copy text={commandOf(`task show ${quoted(task_id)}`)} label="Copy as luxhub" />,
    isAdmin() &&
      deletion("delete", "Delete this task permanently?", () => call("task/delete", { task_id }), {
        then: () => go(to("tasks")),
      }),
  ];
}

function takingBack(task_id: string) {
  return {
    action: act(
      "revoke",
      "Take it from its node",
      ({ node_id, reason }: Fields) => call("task/revoke", { task_id, node_id, reason }),
      "Taken back.",
      { look: "primary" },
    ),
    fields: [
      { name: "node_id", label: "Give it to the node (empty: it is open again)", suggest: nodeNames },
      { name: "reason", label: "Reason" },
    ],
  };
}

/** Sends what the user has changed: the others may be somebody's change since. */
function changing(task: AnyTask) {
  const { task_id } = task;
  const shown = textsOf(task);
  const was = {
    ...shown,
    not_before: typedOf(shown["not_before"]),
    expires_at: typedOf(shown["expires_at"]),
  };
  const change = async (from: Fields, fields: Fields): Promise<void> => {
    const given = <T,>(name: string, read: (text: string) => T): T | undefined =>
      (fields[name] ?? "") === (from[name] ?? "") ? undefined : read(fields[name] ?? "");
    const time = (text: string): string | null => isoOf(text) || null;
    const patch = {
      title: given("title", String),
      description: given("description", String),
      priority: given("priority", (word) => wordOf(word) ?? ("medium" as const)),
      lux_reward: given("lux_reward", Number),
      tags: given("tags", tagsOf),
      limit_key: given("limit_key", (key) => key || null),
      not_before: given("not_before", time),
      expires_at: given("expires_at", time),
    };
    const isChanged = Object.values(patch).some((value) => value !== undefined);
    if (isChanged) await call("task/update", { task_id, ...patch });
  };
  const field = fieldsWith(shown);
  return {
    action: act("update", "Save", (fields: Fields) => change(was, fields), "Changed.", {
      look: "primary",
      undo: (fields) => change(fields, was),
    }),
    fields: [
      ...field("title", "description"),
      field("priority", "lux_reward", "tags", "limit_key"),
      field("not_before", "expires_at"),
    ],
  };
}

async function retryWithDependents(task_id: string): Promise<string> {
  let opened = 0;
  for (;;) {
    const { dependents } = await call("task/retry", { task_id, with_dependents: true });
    opened += dependents?.opened ?? 0;
    // If none was opened, those that are still failed have another reason, too.
    if (!dependents || dependents.left === 0 || dependents.opened === 0)
      return `The task is open again, with ${countOf(opened)} of the tasks that depend on it.`;
  }
}
