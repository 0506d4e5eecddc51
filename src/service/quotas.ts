/**
 * The quotas of keys that are bound to a node (domain/quota.ts): charges what their requests store, in the same commit,
 * and bounds the bytes of uploads that are still running.
 *
 * Must not: cost anything for other keys.
 */
import { Rejection } from "../domain/decision.ts";
import type { Usage } from "../domain/model.ts";
import { type Quotas, bytesExceeded, charge, fileBytes } from "../domain/quota.ts";
import { allUsage, usageOf } from "../store/sql/usage.ts";
import { type Around, type Store, around } from "../store/store.ts";
import { assert } from "../lib/assert.ts";

/** The names of the use case's queries have no space. */
const USAGE = "usage of the node";

export class QuotaService {
  readonly allowed: Quotas;
  readonly #store: Store;
  /** The bytes of running uploads, by node. They are in the blob store, and in no commit yet. */
  readonly #uploading = new Map<string, number>();

  constructor(store: Store, allowed: Quotas) {
    this.#store = store;
    this.allowed = allowed;
  }

  /** Null: its key is bound to no node, and it has no quota. */
  charging(nodeId: string | null): Around | null {
    if (nodeId === null) return null;
    return around(
      () => ({ [USAGE]: usageOf(nodeId) }),
      (decision, rows) => charge(decision, nodeId, rows[USAGE], this.allowed),
    );
  }

  usage(): Promise<ReadonlyMap<string, Usage>> {
    return this.#store.read(allUsage());
  }

  /**
   * `bytes` are known already. The running uploads of a node must fit its quota together; the commit of each file
   * decides in the end.
   * @throws {Rejection} quota_exceeded when there is no room for the smallest file, or for `bytes`
   */
  async beginUpload(nodeId: string, bytes = 0): Promise<RunningUpload> {
    const used = (await this.#store.read(usageOf(nodeId))).bytes;
    const { bytes: allowed } = this.allowed;
    let mine = 0;
    const end = (): void => {
      const left = (this.#uploading.get(nodeId) ?? 0) - mine;
      mine = 0;
      if (left > 0) this.#uploading.set(nodeId, left);
      else this.#uploading.delete(nodeId);
    };
    const grow = (more: number): void => {
      assert(more >= 0, "an upload grows");
      mine += more;
      const together = (this.#uploading.get(nodeId) ?? 0) + more;
      this.#uploading.set(nodeId, together);
      if (used + together <= allowed) return;
      end(); // at once: the others may have room without this one
      throw new Rejection(bytesExceeded(nodeId, { used, allowed }));
    };
    grow(SMALLEST_FILE + bytes);
    return { grow, [Symbol.dispose]: end };
  }
}

const SMALLEST_FILE = fileBytes({ sizeBytes: 0, name: "", metadata: "" });

/** Its bytes count as soon as they are written. */
export type RunningUpload = Disposable & {
  /** @throws {Rejection} quota_exceeded */
  readonly grow: (bytes: number) => void;
};
