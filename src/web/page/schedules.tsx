/** The schedules by name: when each creates its next task, its last one, its actions; and the form for a new one. */
import { Fragment, type VNode, h } from "preact";
import type { RequestOf, Schedule, Variant } from "../../client/luxhub.ts";
import { commandOf, countOf, durationOf } from "./format.ts";
import {
  Age,
  Button,
  Delete,
  Empty,
  Field,
  type Fields,
  Form,
  Head,
  None,
  Pager,
  Select,
  State,
  Table,
  runAction,
  useList,
} from "./parts.tsx";
import { here, route, to } from "./route.ts";
import { call, mayAct } from "./session.ts";
import { timeOf } from "./times.ts";

const PAGE = 50;

type Put = RequestOf<"schedule/put", Variant>;

export function Schedules(): VNode {
  const page = Number(route.value.query["page"] ?? 1);
  const loaded = useList(
    { page: null },
    (ask) => ask("schedule/list", { page, per_page: PAGE }),
    // The task of a schedule is created in the commit that moves its next time.
    ({ kind }) => kind.startsWith("schedule.") || kind === "task.created",
  );
  const { value, error } = loaded;
  return (
    <>
      <Head error={error}>Schedules {value && <small>{countOf(value.total)}</small>}</Head>
      {value?.total === 0 && (
        <Empty
          text="No schedules yet. A schedule creates a task again and again; here, each night at three in Berlin:"
          line={commandOf(
            "schedule put nightly --cron '0 3 * * *' --tz Europe/Berlin --title 'Sum up the day' --description 'In ten lines'",
          )}
        />
      )}
      {value !== null && value.schedules.length > 0 && (
        <Table
          label="Schedules"
          rows={value.schedules}
          keyOf={({ name }) => name}
          columns={[
            [
              "State",
              ({ paused, next_at }) => <State word={paused ? "paused" : next_at === null ? "ended" : "on"} />,
            ],
            [
              "Schedule",
              ({ name, task }) => (
                <>
                  {name}
                  <br />
                  <small>{task.title}</small>
                </>
              ),
              "name",
            ],
            [
              "When",
              ({ cron, tz, every_s }) =>
                cron === null ? (
                  `every ${durationOf(every_s ?? 0)}`
                ) : (
                  <>
                    <code>{cron}</code> <small>{tz}</small>
                  </>
                ),
            ],
            ["Next", ({ next_at, tz }) => <Next at={next_at} tz={tz} />],
            [
              "Last",
              ({ last_task_id: last, last_at }) =>
                last === null ? (
                  <None />
                ) : (
                  <a href={to("tasks", last)}>
                    <Age at={last_at} />
                  </a>
                ),
            ],
            ["Actions", (schedule) => mayAct() && <Actions schedule={schedule} />, "buttons"],
          ]}
        />
      )}
      <Pager
        back={page > 1 && ["First page", to("schedules")]}
        next={value !== null && page < value.pages && ["Next page", here({ page: String(page + 1) })]}
      />
      {mayAct() && <NewSchedule />}
    </>
  );
}

function Actions({ schedule }: { schedule: Schedule<Variant> }): VNode {
  const { name, paused } = schedule;
  const run = (): void => void runAction("A task was created.", () => call("schedule/run", { name }));
  const pause = (): void =>
    void runAction(paused ? "It goes on." : "Paused.", () =>
      call("schedule/put", { ...requestOf(schedule), paused: !paused }),
    );
  return (
    <>
      <Button data-do="run" aria-label={`Run now: ${name}`} onClick={run}>
        Run now
      </Button>
      <Button data-do="pause-schedule" aria-label={`${paused ? "Resume" : "Pause"} ${name}`} onClick={pause}>
        {paused ? "Resume" : "Pause"}
      </Button>
      <Delete
        data-do="delete-schedule"
        aria-label={`Delete ${name}`}
        ask={`Delete the schedule ${name}? Its tasks stay.`}
        work={() => call("schedule/delete", { name })}
      />
    </>
  );
}

/** The next time, here and in the zone of the schedule. */
function Next({ at, tz }: { at: string | null; tz: string | null }): VNode {
  if (at === null) return <None />;
  const here = timeOf(at);
  const there = tz === null ? here : new Date(at).toLocaleString(undefined, { timeZone: tz });
  return (
    <>
      <Age at={at} /> <small>{here}</small>
      {there !== here && (
        <>
          <br />
          <small>
            {there} in {tz}
          </small>
        </>
      )}
    </>
  );
}

/** The request that saves a schedule as it is. */
function requestOf(schedule: Schedule<Variant>): Put {
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

function NewSchedule(): VNode {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const send = (fields: Fields): Promise<boolean> => {
    const { name = "", when = "", tz, title = "", description = "", task_type, group } = fields;
    const every = /^\d+$/.test(when) ? Number(when) : undefined;
    const request: Put = {
      name,
      ...(every === undefined ? { cron: when, tz } : { every_s: every }),
      task: { title, description, task_type, group },
      overlap: fields["overlap"] === "queue" ? "queue" : "skip",
      catch_up: fields["catch_up"] === "none" ? "none" : "one",
    };
    return runAction("Saved.", () => call("schedule/put", request));
  };
  return (
    <details class="more">
      <summary>New schedule</summary>
      <Form class="form" onSend={send}>
        <div class="row-of-fields">
          <Field label="Name" name="name" required />
          <Field label="Cron expression, or seconds" name="when" required value="0 3 * * *" />
          <Field label="Time zone of the expression" name="tz" value={here} list="zones" />
          <datalist id="zones">
            {Intl.supportedValuesOf("timeZone").map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </div>
        <Field label="Title of the task" name="title" required />
        <Field label="Description" name="description" required rows={4} />
        <div class="row-of-fields">
          <Field label="Type" name="task_type" />
          <Field label="Group" name="group" />
          <Select label="While a task is unfinished" name="overlap" options={OVERLAPS} />
          <Select label="After times that were missed" name="catch_up" options={CATCH_UPS} />
        </div>
        <p class="buttons">
          <button class="primary" data-do="save-schedule">
            Save
          </button>
        </p>
      </Form>
    </details>
  );
}
