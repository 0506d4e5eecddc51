/**
 * The inbox: the questions of workers and the results to check, the first deadline first, beside what to decide on; and what
 * was decided lately, with who did.
 */
import { Fragment, type VNode, h } from "preact";
import type { Event, OpenQuestion, PendingReview } from "../../client/luxhub.ts";
import { useNow } from "./clock.ts";
import { Usage } from "./costs.tsx";
import { type AnyTask, ageOf, commandOf, countOf, manyOf } from "./format.ts";
import { List, type ListOf } from "./list.tsx";
import { useLoad } from "./load.ts";
import {
  Age,
  Empty,
  type FactOf,
  Facts,
  Fault,
  Head,
  NodeLink,
  Ranges,
  Section,
  TaskLink,
} from "./parts.tsx";
import { Text } from "./prose.tsx";
import { Asked, Reply, ReviewOf, Verdict } from "./questions.tsx";
import { here, route, setQuery, to, wrongQuery } from "./route.ts";
import type { Ask } from "./session.ts";
import { Result } from "./task.tsx";

const PAGE = 50;

/** `at`: its deadline, or when it was decided. */
type Item = {
  readonly key: string;
  readonly taskId: string;
  readonly title: string;
  readonly text: string;
  readonly at: string;
  readonly question?: OpenQuestion;
  readonly waiting?: PendingReview;
  readonly event?: Event;
};

async function loadOpen(ask: Ask) {
  const [asked, pending] = await Promise.all([
    ask("questions", { limit: PAGE }),
    ask("reviews", { limit: PAGE }),
  ]);
  const items: readonly Item[] = [
    ...asked.questions.map((question) => {
      const { question_id: key, task_id: taskId, task_title: title, question: text, until: at } = question;
      return { key, taskId, title, text, at, question };
    }),
    ...pending.reviews.map((waiting) => {
      const { task_id: key, title, assigned_node, lux_held: held, review } = waiting;
      const text = `review · ${assigned_node}${held > 0 ? ` · ${countOf(held)} LUX held` : ""}`;
      return { key, taskId: key, title, text, at: review.until ?? "", waiting };
    }),
  ];
  const words = [
    asked.total > 0 && manyOf(asked.total, "question"),
    pending.total > 0 && `${manyOf(pending.total, "result")} to check`,
  ];
  const total = asked.total + pending.total;
  return { items: items.toSorted((a, b) => (a.at < b.at ? -1 : 1)), total, words };
}

const DECISIONS: Readonly<Record<string, string>> = {
  "task.answered": "answered",
  "task.review_passed": "passed",
  "task.review_rejected": "rejected",
};

async function loadDecided(ask: Ask) {
  const { events } = await ask("events", { kind: Object.keys(DECISIONS).join(","), limit: PAGE });
  const items = events.toReversed().flatMap((event): readonly Item[] => {
    const { id, kind, by, node_id, task_id: taskId, at } = event;
    const title = `${DECISIONS[kind] ?? kind} by ${by ?? node_id ?? "nobody who said so"}`;
    return taskId === null
      ? []
      : [{ key: String(id), taskId, title, text: `…${taskId.slice(-8)}`, at, event }];
  });
  return { items, total: items.length, words: [] };
}

const CONCERNS = /^task\.(?:asked|answered|question_timed_out|review_|completed|failed|deleted)/;

export function Inbox(): VNode {
  const { at = "", done } = route.value.query;
  const isDone = done === "yes";
  const wrong = wrongQuery({ at: null, done: ["yes"] });
  const { value, error } = useLoad(
    `inbox ${isDone}`,
    (ask) => (isDone ? loadDecided(ask) : loadOpen(ask)),
    CONCERNS,
  );
  const items = value?.items ?? [];
  const chosen = items.find(({ key }) => key === at) ?? items[0];
  return (
    <>
      <Head
        error={wrong ?? error}
        more={
          <>
            <p class="hint quiet">
              <kbd>j</kbd> <kbd>k</kbd> move <kbd>1</kbd>–<kbd>9</kbd> answer <kbd>p</kbd> pass <kbd>r</kbd>{" "}
              reject
            </p>
            <Ranges
              links={[
                ["Open", to("inbox"), !isDone],
                ["Decided", to("inbox", "", { done: "yes" }), isDone],
              ]}
            />
          </>
        }
      >
        Inbox {value && <small>{[countOf(value.total), ...value.words].filter(Boolean).join(" · ")}</small>}
      </Head>
      {value && items.length === 0 && (
        <Empty
          text={
            isDone
              ? "Nothing was decided lately."
              : "Nothing waits for a person. A worker asks about its task like this:"
          }
          line={isDone ? undefined : commandOf("task ask TASK 'Which colour?' --node worker-1")}
        />
      )}
      {chosen && (
        <div class="inbox">
          <div>
            <List list={{ ...ITEMS, classOf: (item) => (item === chosen ? "chosen" : "") }} rows={items} />
            {value && items.length < value.total && (
              <p class="quiet">The {countOf(items.length)} most urgent.</p>
            )}
          </div>
          <div key={chosen.key}>
            {chosen.event ? (
              <Decided event={chosen.event} taskId={chosen.taskId} />
            ) : (
              <ToDecide item={chosen} />
            )}
          </div>
        </div>
      )}
    </>
  );
}

const ITEMS = {
  look: "mail",
  keyOf: ({ key }) => key,
  item: ({ key, title, text, at, event }) => (
    <a class="row" href={here({ at: key })} onFocus={() => setQuery({ at: key })}>
      <b title={title}>{title}</b>
      {event ? <Age at={at} /> : <Deadline at={at} />}
      <small title={text}>{text}</small>
    </a>
  ),
} satisfies ListOf<Item>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function Deadline({ at }: { at: string }): VNode {
  const [words, look] = useNow((now) => {
    const leftMs = Date.parse(at) - now;
    return `${ageOf(at, now)}|${leftMs < HOUR_MS ? "s-failed" : leftMs < DAY_MS ? "s-waiting" : ""}`;
  }).split("|");
  return (
    <time dateTime={at} class={look}>
      {words}
    </time>
  );
}

// ---- What to decide on

function ToDecide({ item }: { item: Item }): VNode {
  const { taskId, question, waiting, at } = item;
  const { value: task, error } = useLoad(
    `decide ${item.key}`,
    async (ask) => (await ask("task/{task_id}", { task_id: taskId })).task,
    ({ task_id, kind }) => task_id === taskId && kind === "task.progress",
  );
  const result = task?.result ?? null;
  return (
    <>
      <Section
        title={question ? `${question.asked_by} asks` : item.title}
        note={
          <span>
            {question && <Age at={question.asked_at} />}
            {question ? " ago · answer " : `${waiting?.assigned_node} · to be checked `}
            <Deadline at={at} />
          </span>
        }
      >
        {question && <p class="asked">{question.question}</p>}
        {question?.schema != null && <Text value={question.schema} />}
        {question && <Reply question={question} />}
        <Fault text={error} />
        {result && task && <Result result={result} verified={task.result_verified} />}
        {result && task && waiting && <Verdict task={task} review={waiting.review} held={waiting.lux_held} />}
      </Section>
      {task && (
        <Section title="What it is about">
          <Facts facts={factsOf(task)} />
        </Section>
      )}
    </>
  );
}

function factsOf(task: AnyTask): readonly FactOf[] {
  const { task_type: type, creator_node: creator, assigned_node: node, started_at, progress, usage } = task;
  return [
    ["Task", <TaskLink task={task} />],
    ["Type", type],
    ["Creator", creator !== null && <NodeLink id={creator} />],
    ["Node", node !== null && <NodeLink id={node} />],
    ["Started", started_at !== null && <Age at={started_at} />],
    ["Last note", progress],
    ["Cost so far", usage && <Usage usage={usage} />],
    ["Description", <Text value={task.description} class="short" />],
  ];
}

function Decided({ event, taskId }: { event: Event; taskId: string }): VNode {
  const { value, error } = useLoad(`decided ${event.id}`, async (ask) => {
    const [{ task }, { questions }] = await Promise.all([
      ask("task/{task_id}", { task_id: taskId }),
      ask("task/{task_id}/questions", { task_id: taskId, question_id: idOf(event) }),
    ]);
    return { task, questions };
  });
  if (value === null) return <Fault text={error} />;
  const { task, questions } = value;
  const { by, at } = event;
  return (
    <Section title={<TaskLink task={task} />} note={[by ?? event.node_id, " · ", <Age at={at} />]}>
      {event.kind === "task.answered"
        ? questions.map((question) => <Asked key={question.question_id} question={question} by={by} />)
        : task.review && <ReviewOf task={task} review={task.review} by={by} />}
    </Section>
  );
}

function idOf({ data }: Event): string | undefined {
  const { question_id: id } = data;
  return typeof id === "string" ? id : undefined;
}
