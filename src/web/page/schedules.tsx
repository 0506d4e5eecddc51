/** The schedules by name: when each creates its next task, its last one, its actions; and the form for a new one. */
import { Fragment, type JSX, h } from "preact";
import type { RequestOf, Schedule, Variant } from "../../client/luxhub.ts";
import { commandOf, countOf, durationOf } from "./format.ts";
import {
  Age,
  Button,
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
  runAsked,
  useEvents,
  useList,
} from "./parts.tsx";
import { route, to } from "./route.ts";
import { hub, mayAct } from "./session.ts";

const PAGE = 50;

type Put = RequestOf<"schedule/put", Variant>;

export function Schedules(): JSX.Element {
  const page = Number(route.value.query["page"] ?? 1);
  const loaded = useList({ page: null }, (from, signal) =>
    from.call("schedule/list", { page, per_page: PAGE }, { signal }),
  );
  // The task of a schedule is created in the commit that moves its next time.
  useEvents(({ kind }) => kind.startsWith("schedule.") || kind === "task.created", loaded);
  const { value, error } = loaded;
  return (
    <>
      <Head error={error}>Schedules {value && <small>{countOf(value.total)}</small>}</Head>
      {value?.total === 0 && (
        <Empty
          text="No schedules yet. A schedule creates a task again and again; here, each night at three in Berlin:"
          line={commandOf(
            ...["schedule", "put", "nightly", "--cron", "0 3 * * *", "--tz", "Europe/Berlin"],
            ...["--title", "Sum up the day", "--description", "In ten lines"],
          )}
        />
      )}
      {value !== null && value.schedules.length > 0 && (
        <Table label="Schedules" head={["State", "Schedule", "When", "Next", "Last", "Actions"]}>
          {value.schedules.map((schedule) => (
            <Row key={schedule.name} schedule={schedule} />
          ))}
        </Table>
      )}
      <Pager
        back={page > 1 && ["First page", to("schedules")]}
        next={
          value !== null &&
          page < value.pages && ["Next page", to("schedules", "", { page: String(page + 1) })]
        }
      />
      {mayAct() && <NewSchedule />}
    </>
  );
}

function Row({ schedule }: { schedule: Schedule<Variant> }): JSX.Element {
  const { name, task, cron, tz, every_s, paused, next_at, last_at, last_task_id } = schedule;
  const run = (): void =>
    void runAction("A task was created.", () => hub.value.call("schedule/run", { name }));
  const pause = (): void =>
    void runAction(paused ? "It goes on." : "Paused.", () =>
      hub.value.call("schedule/put", { ...requestOf(schedule), paused: !paused }),
    );
  const remove = (): Promise<boolean> =>
    runAsked(`Delete the schedule ${name}? Its tasks stay.`, "Delete", "Deleted.", () =>
      hub.value.call("schedule/delete", { name }),
    );
  return (
    <tr>
      <td>
        <State word={paused ? "paused" : next_at === null ? "ended" : "on"} />
      </td>
      <td class="name">
        {name}
        <br />
        <small>{task.title}</small>
      </td>
      <td>
        {cron === null ? `every ${durationOf(every_s ?? 0)}` : <code>{cron}</code>}{" "}
        {cron !== null && <small>{tz}</small>}
      </td>
      <td>
        <Next at={next_at} tz={tz} />
      </td>
      <td>
        {last_task_id === null ? (
          <None />
        ) : (
          <a href={to("tasks", last_task_id)}>
            <Age at={last_at} />
          </a>
        )}
      </td>
      <td class="buttons">
        {mayAct() && (
          <>
            <Button data-do="run" aria-label={`Run now: ${name}`} onClick={run}>
              Run now
            </Button>
            <Button
              data-do="pause-schedule"
              aria-label={`${paused ? "Resume" : "Pause"} ${name}`}
              onClick={pause}
            >
              {paused ? "Resume" : "Pause"}
            </Button>
            <Button
              class="danger"
              data-do="delete-schedule"
              aria-label={`Delete ${name}`}
              onClick={() => remove()}
            >
              Delete
            </Button>
          </>
        )}
      </td>
    </tr>
  );
}

/** The next time, here and in the zone of the schedule. */
function Next({ at, tz }: { at: string | null; tz: string | null }): JSX.Element {
  if (at === null) return <None />;
  const time = new Date(at);
  const here = time.toLocaleString();
  const there = tz === null ? here : time.toLocaleString(undefined, { timeZone: tz });
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

/** The request that saves a schedule as it is: fields that are null were not sent. */
function requestOf({
  name,
  cron,
  tz,
  every_s,
  task,
  overlap,
  catch_up,
  jitter_s,
  until,
}: Schedule<Variant>): Put {
  const { task_type, creator_node, max_attempts, timeout_s, max_run_s, max_cost_usd, retain_s, ...given } =
    task;
  return {
    name,
    ...(cron === null ? { every_s: every_s ?? undefined } : { cron, tz: tz ?? undefined }),
    task: {
      ...given,
      task_type: task_type ?? undefined,
      creator_node: creator_node ?? undefined,
      max_attempts: max_attempts ?? undefined,
      timeout_s: timeout_s ?? undefined,
      max_run_s: max_run_s ?? undefined,
      max_cost_usd: max_cost_usd ?? undefined,
      retain_s: retain_s ?? undefined,
    },
    overlap,
    catch_up,
    jitter_s,
    until: until ?? undefined,
  };
}

const OVERLAPS = [
  ["skip", "skip the time"],
  ["queue", "create one more"],
] as const;

const CATCH_UPS = [
  ["one", "create one task"],
  ["none", "create none"],
] as const;

function NewSchedule(): JSX.Element {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const send = (fields: Fields): Promise<boolean> => {
    const { name = "", when = "", tz, title = "", description = "", task_type, group } = fields;
    const every = /^\d+$/.test(when) ? Number(when) : undefined;
    const request: Put = {
      name,
      ...(every === undefined ? { cron: when, tz: tz || undefined } : { every_s: every }),
      task: { title, description, task_type: task_type || undefined, group: group || undefined },
      overlap: fields["overlap"] === "queue" ? "queue" : "skip",
      catch_up: fields["catch_up"] === "none" ? "none" : "one",
    };
    return runAction("Saved.", () => hub.value.call("schedule/put", request));
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
          <button type="submit" class="primary" data-do="save-schedule">
            Save
          </button>
        </p>
      </Form>
    </details>
  );
}
