/**
 * What a task depends on, and what waits for it: layers in a small SVG, or lists where there are too many for that.
 */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { type AnyTask, countOf, stateOf } from "./format.ts";
import { List, type ListOf } from "./list.tsx";
import { useLoad } from "./load.ts";
import { Fault, State, TaskLink } from "./parts.tsx";
import { to } from "./route.ts";

const DRAWN = 5;

const WIDTH = 180;
const HEIGHT = 46;
const GAP_X = 50;
const GAP_Y = 14;

type Drawn = AnswerOf<"task/{task_id}/graph", Variant>["tasks"][number];

export function Graph({ task }: { task: AnyTask }): VNode | null {
  const { task_id, depends_on } = task;
  const { value, error } = useLoad(
    task_id,
    (ask) => ask("task/{task_id}/graph", { task_id }),
    // A task that begins to wait for this one is unknown, and its event does not name this one.
    ({ task_id: id, kind }, shown) =>
      kind === "task.created" || shown?.tasks.some(({ task_id }) => task_id === id) === true,
  );
  if (value === null) return <Fault text={error} />;
  const { tasks, dependents } = value;
  if (tasks.length === 1 && depends_on.length === 0) return null;
  const layers = Map.groupBy(tasks, ({ layer }) => layer);
  const before = layers.get(-1) ?? [];
  const after = layers.get(1) ?? [];
  const isDrawn = [...layers.values()].every((layer) => layer.length <= DRAWN);
  return (
    <section>
      <h2>What it depends on, and what waits for it</h2>
      {isDrawn && <Drawing tasks={tasks} id={task_id} />}
      {!isDrawn && <Neighbours title="It depends on" tasks={before} total={depends_on.length} />}
      {!isDrawn && <Neighbours title="These wait for it" tasks={after} total={dependents} />}
      {isDrawn && before.length < depends_on.length && (
        <p class="quiet">
          {countOf(depends_on.length - before.length)} of the tasks that it depends on were deleted.
        </p>
      )}
    </section>
  );
}

function stateWord({ status, assigned_node, unmet_count }: Drawn): string {
  return stateOf({ status, assigned_node, ready: unmet_count === 0 });
}

const NEIGHBOURS: ListOf<Drawn> = {
  label: "Neighbours",
  keyOf: ({ task_id }) => task_id,
  columns: [
    ["State", (task) => <State word={stateWord(task)} />],
    ["Title", (task) => <TaskLink task={task} isRow />, "wide"],
  ],
};

function Neighbours(props: { title: string; tasks: readonly Drawn[]; total: number }): VNode | null {
  const { title, tasks, total } = props;
  if (total === 0) return null;
  return (
    <>
      <h3>
        {title} <small>{countOf(total)}</small>
      </h3>
      <List list={NEIGHBOURS} rows={tasks} />
      {tasks.length < total && <p class="quiet">and {countOf(total - tasks.length)} more, or deleted ones</p>}
    </>
  );
}

function Drawing({ tasks, id }: { tasks: readonly Drawn[]; id: string }): VNode {
  const layers = [...Map.groupBy(tasks, ({ layer }) => layer)].toSorted(([a], [b]) => a - b);
  const tallest = Math.max(...layers.map(([, layer]) => layer.length));
  const height = tallest * (HEIGHT + GAP_Y) - GAP_Y;
  const width = layers.length * (WIDTH + GAP_X) - GAP_X;
  const places = new Map<string, { x: number; y: number }>();
  for (const [column, [, layer]] of layers.entries()) {
    const top = (height - (layer.length * (HEIGHT + GAP_Y) - GAP_Y)) / 2;
    for (const [row, { task_id }] of layer.entries())
      places.set(task_id, { x: column * (WIDTH + GAP_X), y: top + row * (HEIGHT + GAP_Y) });
  }
  const edges = tasks.flatMap(({ task_id, depends_on }) =>
    depends_on.flatMap((from) => {
      const [a, b] = [places.get(from), places.get(task_id)];
      if (!a || !b || a.x >= b.x) return [];
      const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
      return `M${x1} ${y1}C${x1 + 25} ${y1} ${x2 - 25} ${y2} ${x2 - 6} ${y2}m-5 -4l5 4l-5 4`;
    }),
  );
  return (
    <div class="graph" role="region" aria-label="Graph" tabIndex={0}>
      <svg viewBox={`-2 -2 ${width + 4} ${height + 4}`} style={`width:${width + 4}px`}>
        <path class="edge" d={edges.join("")} />
        {layers
          .flatMap(([, layer]) => layer)
          .map((task) => {
            const place = places.get(task.task_id);
            const word = stateWord(task);
            return (
              place && (
                <a key={task.task_id} href={to("tasks", task.task_id)}>
                  <title>{task.title}</title>
                  <rect
                    class={task.task_id === id ? `s-${word} self` : `s-${word}`}
                    {...place}
                    width={WIDTH}
                    height={HEIGHT}
                    rx={6}
                  />
                  <text x={place.x + 10} y={place.y + 19}>
                    {shortened(task.title)}
                  </text>
                  <text class={`s-${word} word`} x={place.x + 10} y={place.y + 36}>
                    ● {word}
                    {word === "assigned" &&
                      task.assigned_node !== null &&
                      ` · ${shortened(task.assigned_node, 14)}`}
                  </text>
                </a>
              )
            );
          })}
      </svg>
    </div>
  );
}

function shortened(text: string, length = 23): string {
  const letters = [...text];
  return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
}
