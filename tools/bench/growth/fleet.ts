// The fleet of the growth bench, used to fill a store and to load it: names, capabilities, and the order in which its
// nodes act. The filler and the load client share only this.

const TYPES = ["coding", "research", "analysis", "writing"] as const;

/** The types of tasks, used cyclically; "" is no type. */
export const TASK_TYPES: readonly string[] = ["", ...TYPES];

/** One node in four takes every type, the others two of the four. */
export function capabilitiesOf(index: number): string[] {
  return index % 4 === 0 ? [] : [0, 1].map((next) => TYPES[(index + next) % TYPES.length] ?? "");
}

export function nodeName(index: number): string {
  return `bench-${String(index).padStart(4, "0")}`;
}

/** A prime: with it as a step, each node of a fleet has its turn once a round, and neighbours are far apart. */
const STRIDE = 7_919;

/** Which of `nodes` nodes has the turn with this number. */
export function spread(turn: number, nodes: number): number {
  return (turn * STRIDE) % nodes;
}
