/** Numbers as people read them. Pure, and without the browser. */

const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 6 });

export function countOf(count: number): string {
  return NUMBER.format(count);
}

export function numberOf(text: string | undefined): number | undefined {
  return text ? Number(text) : undefined;
}

export function manyOf(count: number, word: string): string {
  return `${countOf(count)} ${word}${count === 1 ? "" : "s"}`;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
] as const;

export function durationOf(seconds: number): string {
  for (const [unit, size] of UNITS) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  return seconds >= 10 || Number.isInteger(seconds) ? `${Math.round(seconds)} s` : `${seconds.toFixed(1)} s`;
}
