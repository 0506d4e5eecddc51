/**
 * A chart over time in SVG: series upwards, and one downwards (failures), with a cross-hair that reads the values.
 */
import { type VNode, h } from "preact";
import { useState } from "preact/hooks";
import { now } from "./clock.ts";
import { countOf } from "./format.ts";
import { DAY_MS } from "../../lib/clock.ts";
import { timeOf } from "./times.ts";

type Series = {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly whole: number | null;
  /** Drawn from the middle line down. */
  readonly isDown?: boolean;
  /** A line without an area, to compare with. */
  readonly isThin?: boolean;
};

const WIDTH = 600;
const HEIGHT = 130;
const DOWN = 0.25;
const DIGITS = 2;
const TONES = ["busy", "good", "bad", "quiet"];
const DASH = 8;
const LABELS = 4;
/** A scale on which one import hides everything else is logarithmic. */
const LOG_FROM = 20;

/**
 * @param times when each interval begins, ISO; the last one is drawn dashed while it is running
 * @param stepMs the length of an interval
 */
export function Chart(props: {
  label: string;
  times: readonly string[];
  stepMs: number;
  series: readonly Series[];
  /** When the hub started: nothing was counted before, unless it ran before that. Epoch milliseconds. */
  startedAt: number;
  end: string;
}): VNode {
  const { label, times, stepMs, end } = props;
  const started = times.findIndex((time) => Date.parse(time) + stepMs > props.startedAt);
  const isFirst = props.series.every(({ values }) => values.slice(0, started).every((value) => !value));
  const start = isFirst ? Math.max(0, started) : 0;
  const series = props.series.map((line) => ({
    ...line,
    values: line.values.map((value, i) => (i < start ? null : value)),
  }));
  const ended = (values: Values): Values => (end === "" ? values.slice(0, -1) : values);
  const [cursor, setCursor] = useState<number | null>(null);
  const last = Math.max(1, times.length - 1);
  const hasDown = series.some(({ isDown }) => isDown);
  const zero = hasDown ? HEIGHT * (1 - DOWN) : HEIGHT;
  const scales = [false, true].map((isDown) =>
    scaleOf(series.flatMap((line) => (Boolean(line.isDown) === isDown ? line.values : []))),
  );
  const [up, down] = scales;
  const x = (i: number): string => ((i / last) * WIDTH).toFixed(1);
  const y = (value: number, isDown = false): string =>
    (isDown
      ? zero + (down?.part(value) ?? 0) * (HEIGHT - zero)
      : zero - (up?.part(value) ?? 0) * zero
    ).toFixed(1);
  const withDay = now.value - Date.parse(times[0] ?? "") > DAY_MS;
  const read = (i: number): string =>
    `${shortTimeOf(times[i], withDay)} ${series
      .map(({ name, values }) => `${name} ${shown(values[i] ?? null)}`)
      .join(" · ")}`;
  const point = (event: PointerEvent): void => {
    const { left, width } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    setCursor(Math.round(((event.clientX - left) / Math.max(1, width)) * last));
  };
  const step = (event: KeyboardEvent): void => {
    const change = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last }[event.key];
    if (change === undefined) return;
    event.preventDefault();
    setCursor(Math.min(last, Math.max(0, (cursor ?? last) + change)));
  };
  const shownAt = cursor === null ? null : Math.min(last, Math.max(0, cursor));
  return (
    <figure class="chart">
      <div
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={shownAt ?? last}
        aria-valuetext={read(shownAt ?? last)}
        onPointerMove={point}
        onPointerLeave={() => setCursor(null)}
        onKeyDown={step}
        onBlur={() => setCursor(null)}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="grid" d={`M0 0H${WIDTH}M0 ${zero}H${WIDTH}`} />
          {series.map(({ name, values, isDown = false, isThin }, i) => {
            const height = (value: number): string => y(value, isDown);
            const shown = seen(values, isDown);
            return (
              <g key={name} class={isDown && !values.some(Boolean) ? "none" : `t-${TONES[i]}`}>
                {hasDown && i > 0 && !isThin && (
                  <path class="area" d={area(ended(values), zero, x, height)} />
                )}
                <path class="line" d={line(ended(shown), x, height)} />
                {end === "" && <path class="line running" d={line(running(shown), x, height)} />}
              </g>
            );
          })}
          {start > 0 && <path class="started" d={`M${x(start)} 0V${HEIGHT}`} />}
          {shownAt !== null && <path class="cross" d={`M${x(shownAt)} 0V${HEIGHT}`} />}
        </svg>
        <span>
          {countOf(up?.top ?? 0)}
          {up?.isLog && " (log)"}
        </span>
        {hasDown && <span class="bottom">{countOf(down?.top ?? 0)}</span>}
      </div>
      <div class="axis quiet" aria-hidden="true">
        {Array.from({ length: LABELS + 1 }, (_, i) => (
          <span key={i}>
            {i === LABELS ? end || "now" : shortTimeOf(times[Math.round((i / LABELS) * last)], withDay)}
          </span>
        ))}
      </div>
      <figcaption>
        {shownAt !== null ? (
          <b>{read(shownAt)}</b>
        ) : (
          series.map(({ name, whole }, i) => (
            <span key={name} class={`key t-${TONES[i]}`}>
              {name} <b>{shown(whole)}</b>
            </span>
          ))
        )}
      </figcaption>
    </figure>
  );
}

function shown(value: number | null): string {
  return value === null ? "–" : countOf(Number(value.toFixed(DIGITS)));
}

function shortTimeOf(iso: string | undefined, withDay: boolean): string {
  if (iso === undefined) return "";
  return timeOf(iso, {
    ...(withDay && { day: "numeric", month: "short" }),
    ...{ hour: "2-digit", minute: "2-digit" },
  });
}

type Point = (value: number) => string;
type Values = Series["values"];

const hasValue = (values: Values, i: number): boolean => (values[i] ?? null) !== null;

/** Without the zeros between zeros of what is drawn downwards: they would paint the middle line red. */
function seen(values: Values, isDown: boolean): Values {
  return isDown ? values.map((value, i) => (value || values[i - 1] || values[i + 1] ? value : null)) : values;
}

function line(values: Values, x: Point, y: Point): string {
  return values
    .map((value, i) => {
      if (value === null) return "";
      if (hasValue(values, i - 1)) return `L${x(i)} ${y(value)}`;
      // A value between two gaps has no neighbour to draw a line to, so it gets a dash.
      return `M${x(i)} ${y(value)}${hasValue(values, i + 1) ? "" : `m-${DASH / 2} 0h${DASH}`}`;
    })
    .join("");
}

/** From the last whole interval to the one that is still running. */
function running(values: Values): Values {
  const begin = values.length - 2;
  return values.at(-1) === null ? [] : values.map((value, i) => (i < begin ? null : value));
}

function area(values: Values, zero: number, x: Point, y: Point): string {
  const start = values.findIndex((value) => value !== null);
  if (start === -1) return "";
  const top = values
    .slice(start)
    .map((value, i) => `L${x(start + i)} ${y(value ?? 0)}`)
    .join("");
  return `M${x(start)} ${zero}${top}V${zero}Z`;
}

type Scale = { readonly top: number; readonly isLog: boolean; readonly part: (value: number) => number };

function scaleOf(values: readonly (number | null)[]): Scale {
  const known = values
    .filter((value) => value !== null && value > 0)
    .toSorted((a, b) => Number(a) - Number(b));
  const top = niceTop(known.at(-1) ?? 0);
  const median = known[Math.floor(known.length / 2)] ?? 0;
  const isLog = top > LOG_FROM * median && median >= 1;
  return {
    top,
    isLog,
    part: (value) => (isLog ? Math.log1p(value) / Math.log1p(top) : value / top),
  };
}

function niceTop(value: number): number {
  const size = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((step) => step * size).find((step) => step >= value) ?? size * 10;
}
