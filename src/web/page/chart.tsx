/** A small line chart in SVG: a value a minute, several series, one scale. A gap where a series has no value. */
import type { JSX } from "preact";
import { countOf } from "./format.ts";

export type Series = {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** Of the whole time; stands in the legend. */
  readonly whole: number | null;
};

const WIDTH = 600;
const HEIGHT = 120;
const DIGITS = 2;
const DASH = 8;

const hasValue = (values: Series["values"], i: number): boolean => (values[i] ?? null) !== null;

export function Chart({ label, series }: { label: string; series: readonly Series[] }): JSX.Element {
  const top = niceTop(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const points = Math.max(2, ...series.map(({ values }) => values.length));
  const x = (i: number): string => ((i / (points - 1)) * WIDTH).toFixed(1);
  const y = (value: number): string => (HEIGHT - (value / top) * HEIGHT).toFixed(1);
  const path = (values: Series["values"]): string =>
    values
      .map((value, i) => {
        if (value === null) return "";
        if (hasValue(values, i - 1)) return `L${x(i)} ${y(value)}`;
        // A minute between two gaps has no neighbour to draw a line to, so it gets a dash.
        return `M${x(i)} ${y(value)}${hasValue(values, i + 1) ? "" : `m-${DASH / 2} 0h${DASH}`}`;
      })
      .join("");
  return (
    <figure class="chart">
      <div class="plot">
        <span class="top">{countOf(top)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
          <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
          {series.map(({ name, values }, i) => (
            <path key={name} class={`line line-${i}`} d={path(values)} />
          ))}
        </svg>
      </div>
      <figcaption>
        {series.map(({ name, whole }, i) => (
          <span key={name} class={`key key-${i}`}>
            {name} <b>{whole === null ? "–" : countOf(Number(whole.toFixed(DIGITS)))}</b>
          </span>
        ))}
        <span class="quiet">60 min ago to now</span>
      </figcaption>
    </figure>
  );
}

/** The next of 1, 2, 5, 10, 20 and so on. */
function niceTop(value: number): number {
  const size = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * size).find((step) => step >= value) ?? size * 10;
}
