/** Numbers as people read them. Pure, and without the browser. */

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

export function countOf(count: number): string {
  return NUMBER.format(count);
}
