/** The schedules: when each creates its next task; and the form for a new one. */
import { type ComponentChildren, type VNode, h } from "preact";
import type { RequestOf, Schedule, Variant } from "../../client/luxhub.ts";
import { type ActionItem, type Fields, FormButton, type FormOf, act, deletion } from "./action.tsx";
import { timeZones } from "./field.tsx";
import { commandOf, countOf, durationOf } from "./format.ts";
import { ListPage } from "./list-page.tsx";
import type { ListOf } from "./list.tsx";
import { Age, Link, None, State } from "./parts.tsx";
import { to } from "./route.ts";
import { call, mayAct, mayActFor } from "./session.ts";
import { timeOf } from "./times.ts";

const PAGE = 50;

type Put = RequestOf<"schedule/put", Variant>;
type Saved = Schedule<Variant>;

const SCHEDULES: ListOf<Saved> = {
  label: "Schedules",
  keyOf: ({ name }) => name,
  columns: [
    [
      "State",
      ({ paused, next_at }) => <State word={paused ? "paused" : next_at === null ? "ended" : "on"} />,
    ],
    ["Schedule", ({ name, task }) => [name, <br />, <small>{task.title}</small>], "name"],
    ["When", whenOf],
    ["Next", nextOf],
    ["Last", lastOf],
  ],
  actions: (schedule) => (mayActFor(schedule.task.creator_node) ? actionsOf(schedule) : []),
};

export function Schedules(): VNode {
  return (
    <ListPage
      title="Schedules"
      more={
        mayAct() && <FormButton label="New schedule" name="open-schedule" look="primary" form={newSchedule} />
      }
      load={(ask, { page }) => ask("schedule/list", { page: Number(page ?? 1), per_page: PAGE })}
      count={({ total }) => countOf(total)}
      // The task of a schedule is created in the commit that moves its next time.
      concerns={({ kind }) => kind.startsWith("schedule.") || kind === "task.created"}
      rows={({ schedules }) => schedules}
      list={SCHEDULES}
      empty={[
        "No schedules yet. A schedule creates a task again and again; here, each night at three in Berlin:",
        commandOf(
          "schedule put nightly --cron '0 3 * * *' --tz Europe/Berlin --title 'Sum up the day' --description 'In ten lines'",
        ),
      ]}
    />
  );
}

function whenOf({ cron, tz, every_s }: Saved): ComponentChildren {
  if (cron === null) return `every ${durationOf(every_s ?? 0)}`;
  return [<code>{cron}</code>, " ", <small>{tz}</small>];
}

function nextOf({ next_at: at, tz }: Saved): ComponentChildren {
  if (at === null) return <None />;
  const here = timeOf(at);
  const there = tz === null ? here : new Date(at).toLocaleString(undefined, { timeZone: tz });
  const other = there !== here && [<br />, <small>{`${there} in ${tz}`}</small>];
  return [<Age at={at} />, " ", <small>{here}</small>, other];
}

function lastOf({ last_task_id: id, last_at }: Saved): VNode {
  if (id === null) return <None />;
  return <Link href={to("tasks", id)} text={<Age at={last_at} />} />;
}

function actionsOf(schedule: Saved): readonly ActionItem[] {
  const { name, paused } = schedule;
  return [
    act("run", "Run now", () => call("schedule/run", { name }), "A task was created.", { of: name }),
    act(
      "pause-schedule",
      paused ? "Resume" : "Pause",
      () => call("schedule/put", { ...requestOf(schedule), paused: !paused }),
      paused ? "It goes on." : "Paused.",
      { of: name },
    ),
    deletion(
      "delete-schedule",
      `Delete the schedule ${name}? Its tasks stay.`,
      () => call("schedule/delete", { name }),
      { of: name, undo: () => call("schedule/put", { ...requestOf(schedule), paused }) },
    ),
  ];
}

/** The request that saves a schedule as it is. */
function requestOf(schedule: Saved): Put {
  const { name, cron, tz, every_s, task, overlap, catch_up, jitter_s, until } = schedule;
  return {
    ...{ name, overlap, catch_up, jitter_s },
    ...withoutNulls({ cron, tz: cron === null ? null : tz, every_s: cron === null ? every_s : null, until }),
    task: withoutNulls(task),
  };
}

type WithoutNulls<T> = { [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null> | undefined;
};

/** Fields that are null were not sent. */
function withoutNulls<T extends object>(fields: T): WithoutNulls<T> {
  const given = Object.entries(fields).filter(([, value]) => value !== null);
  return Object.fromEntries(given) as WithoutNulls<T>; // of the same object
}

const OVERLAPS = [
  ["skip", "skip the time"],
  ["queue", "create one more"],
] as const;

const CATCH_UPS = [
  ["one", "create one task"],
  ["none", "create none"],
] as const;

function newSchedule(): FormOf {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return {
    action: act("save-schedule", "Save", save, "Saved.", { look: "primary" }),
    fields: [
      [
        { name: "name", label: "Name", required: true },
        { name: "when", label: "Cron expression, or seconds", required: true, value: "0 3 * * *" },
        { name: "tz", label: "Time zone of the expression", value: zone, suggest: timeZones },
      ],
      { name: "title", label: "Title of the task", required: true },
      { name: "description", label: "Description", required: true, rows: 4 },
      [
        { name: "task_type", label: "Type" },
        { name: "group", label: "Group" },
        { name: "overlap", label: "While a task is unfinished", options: OVERLAPS },
        { name: "catch_up", label: "After times that were missed", options: CATCH_UPS },
      ],
    ],
  };
}

function save({ name = "", when = "", tz, overlap, catch_up, ...task }: Fields): Promise<unknown> {
  const { title = "", description = "", task_type, group } = task;
  return call("schedule/put", {
    name,
    ...(/^\d+$/.test(when) ? { every_s: Number(when) } : { cron: when, tz }),
    task: { title, description, task_type, group },
    overlap: overlap === "queue" ? "queue" : "skip",
    catch_up: catch_up === "none" ? "none" : "one",
  });
}
