/**
 * The gate and the special lanes as a transaction of this hub loaded them last: what is loaded for a node depends on them,
 * so they must be known before its transaction, which loads them again and compares.
 *
 * Must not: be trusted for a decision.
 */
import { type OpenLanes, isSameClosed, lanesOpenTo } from "../domain/gate.ts";
import type { Closed, Gate, Node } from "../domain/model.ts";
import type { Lanes } from "../store/sql/gate.ts";

export class KnownLanes {
  gate: Gate | null = null;
  lanes: Lanes = new Map();

  get closed(): Closed | null {
    return this.gate?.closed ?? null;
  }

  /** The lanes that are open to a node which asks for these types; null: every type that it takes. */
  openTo(node: Node, asked: readonly string[] | null): OpenLanes {
    return lanesOpenTo(node, asked, this.closed, this.lanes.values());
  }

  learn(gate: Gate, lanes: Lanes): void {
    this.gate = gate;
    this.lanes = lanes;
  }

  /** Whether other lanes are open to a node now than those for which its tasks were loaded. */
  hasOpened(node: Node, asked: readonly string[] | null, loaded: OpenLanes, before: Closed | null): boolean {
    if (!isSameClosed(this.closed, before)) return true;
    if (this.lanes.size === 0) return false;
    const names = new Set(loaded.special.map(({ name }) => name));
    return this.openTo(node, asked).special.some(({ name }) => !names.has(name));
  }
}
