/** The activity of the hub over time; the address names the time, so that it can be shared. */
import { Fragment, type VNode, h } from "preact";
import type { AnswerOf, Variant } from "../../client/luxhub.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { FormButton, type FormOf, act } from "./action.tsx";
import { Chart } from "./chart.tsx";
import { now } from "./clock.ts";
import { oneOf } from "./format.ts";
import { useEvery, useLoad } from "./load.ts";
import { Ranges, Section } from "./parts.tsx";
import { go, route, to, wrongQuery } from "./route.ts";
import { isoOf, timeOf } from "./times.ts";

const MINUTE_MS = 60_000;

const RANGES = {
  hour: { short: "1 h", words: "the last hour", ms: DAY_MS / 24 },
  day: { short: "24 h", words: "the last 24 hours", ms: DAY_MS },
  month: { short: "30 d", words: "the last 30 days", ms: 30 * DAY_MS },
} as const;

type Range = keyof typeof RANGES;

const WORDS = ["hour", "day", "month"] as const;

const STEPS: Readonly<Record<number, string>> = { 60: "a minute", 600: "in 10 minutes", 3_600: "an hour" };

type Sums = AnswerOf<"stats/minutes", Variant>;
type Minute = Sums["minutes"][number] & { readonly day_before?: number };
type History = Omit<Sums, "minutes"> & { readonly minutes: readonly Minute[] };

/** What the address asks for. What it leaves out is NaN, with which every comparison is false. */
type Span = { readonly range: Range; readonly from: number; readonly until: number; readonly isCut: boolean };

function spanOf(): Span {
  const { range, from, to: until } = route.value.query;
  const [begin, end] = [Date.parse(from ?? ""), Date.parse(until ?? "")];
  const isCut = !Number.isNaN(begin) || !Number.isNaN(end);
  return { range: rangeOf(begin) ?? oneOf(WORDS, range) ?? "hour", from: begin, until: end, isCut };
}

function rangeOf(from: number): Range | undefined {
  if (Number.isNaN(from)) return undefined;
  return WORDS.find((word) => RANGES[word].ms >= now.value - from) ?? "month";
}

export function wrongSpan(): string | null {
  const { from, to: until } = route.value.query;
  const wrong = [from, until].find((time) => time && Number.isNaN(Date.parse(time)));
  const fault = wrong === undefined ? null : `The address has the time ${wrong}, which is none.`;
  return wrongQuery({ range: WORDS, from: null, to: null }) ?? fault;
}

/** The longer ranges change slowly: they are loaded with the view, and each minute. Null for the last hour. */
export function useHistory(): { readonly value: History | null; readonly error: string } {
  const { range } = spanOf();
  const history = useLoad<History | null>(range, async (ask) => {
    if (range === "hour") return null;
    const [sums, hours] = await Promise.all([
      ask("stats/minutes", { range }),
      range === "day" ? ask("stats/minutes", { range: "month" }) : null,
    ]);
    return { ...sums, minutes: hours ? withDayBefore(sums, hours) : sums.minutes };
  });
  useEvery(MINUTE_MS, history.reload);
  return history;
}

/** With what was completed a day before, of which the hub keeps only the sums of hours: each interval gets its part. */
function withDayBefore(day: Sums, hours: Sums): readonly Minute[] {
  const hourMs = hours.step_s * 1_000;
  const sums = new Map(hours.minutes.map(({ at, tasks_completed }) => [Date.parse(at), tasks_completed]));
  return day.minutes.map((minute) => {
    const time = Date.parse(minute.at) - DAY_MS;
    const completed = sums.get(time - (time % hourMs)) ?? 0;
    return { ...minute, day_before: (completed * day.step_s) / hours.step_s };
  });
}

type Activity = Span & {
  readonly minutes: readonly Minute[];
  readonly history: History;
  readonly words: string;
  readonly axis: { times: readonly string[]; stepMs: number; end: string; startedAt: number };
};

export function activityOf(hour: Sums, longer: History | null, startedAt: number): Activity {
  const span = spanOf();
  const { from, until, isCut } = span;
  const history = longer ?? hour;
  const stepMs = history.step_s * 1_000;
  const minutes = history.minutes.filter(
    ({ at }) => !(Date.parse(at) + stepMs <= from || Date.parse(at) >= until),
  );
  const end = minutes.at(-1) === history.minutes.at(-1) ? "" : timeOf(until);
  const words = isCut
    ? `${timeOf(minutes[0]?.at ?? from)} – ${end || "now"}`
    : RANGES[longer === null ? "hour" : span.range].words;
  const axis = { times: minutes.map(({ at }) => at), stepMs, end, startedAt };
  return { ...span, minutes, history, words, axis };
}

export function Counts({ activity }: { activity: Activity }): VNode {
  const { minutes, history, words, axis, isCut } = activity;
  const counted = (name: string, of: "tasks_created" | "tasks_completed" | "tasks_failed") => {
    const values = minutes.map((minute) => minute[of]);
    return { name, values, whole: isCut ? sumOf(values) : history.total[of] };
  };
  const before = minutes.flatMap(({ day_before }) => day_before ?? []);
  const links = WORDS.map((word) => {
    const address = to("overview", "", { range: word === "hour" ? undefined : word });
    return [RANGES[word].short, address, word === activity.range && !isCut] as const;
  });
  return (
    <Section
      title={`Tasks ${STEPS[history.step_s]}, ${words}`}
      note={
        <>
          <Ranges links={links} />
          <FormButton label="From, to" name="open-between" form={between} />
        </>
      }
    >
      <Chart
        label={`Tasks created, completed and failed: ${words}`}
        {...axis}
        series={[
          counted("created", "tasks_created"),
          counted("completed", "tasks_completed"),
          { ...counted("failed", "tasks_failed"), isDown: true },
          ...(before.length > 0
            ? [{ name: "completed the day before", values: before, whole: sumOf(before), isThin: true }]
            : []),
        ]}
      />
    </Section>
  );
}

export function Medians({ activity }: { activity: Activity }): VNode {
  const { minutes, history, words, axis, isCut } = activity;
  const median = (name: string, of: "time_to_start" | "time_to_finish") => ({
    name,
    values: minutes.map((minute) => minute[of].p50_s),
    whole: isCut ? null : history.total[of].p50_s, // there is no median of medians
  });
  return (
    <Section title="Seconds to start and to finish (median)" note={words}>
      <Chart
        label={`Median seconds from when a task is ready until it starts and until it is finished: ${words}`}
        {...axis}
        series={[median("to start", "time_to_start"), median("to finish", "time_to_finish")]}
      />
    </Section>
  );
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function between(): FormOf {
  const { from, to: until } = route.value.query;
  return {
    action: act("show-between", "Show", (typed) =>
      go(to("overview", "", { from: isoOf(typed["from"]), to: isoOf(typed["to"]) })),
    ),
    fields: [
      { name: "from", label: "From", type: "time", value: from },
      { name: "to", label: "To", type: "time", value: until },
    ],
  };
}
