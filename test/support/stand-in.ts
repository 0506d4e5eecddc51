/** A store that delegates to another except for the methods a test replaces. */
import type { Store } from "../../src/store/store.ts";

export function standIn(store: Store, varied: Partial<Store>): Store {
  return {
    engine: store.engine,
    changes: store.changes,
    get writable() {
      return store.writable;
    },
    transact: store.transact,
    read: (query) => store.read(query),
    readTogether: (reads) => store.readTogether(reads),
    get queued() {
      return store.queued;
    },
    socketsPolled: () => store.socketsPolled(),
    onCommit: (listener) => store.onCommit(listener),
    onDecision: (listener) => store.onDecision(listener),
    onGroup: (listener) => store.onGroup(listener),
    lead: () => store.lead(),
    diagnose: () => store.diagnose(),
    close: () => store.close(),
    ...varied,
  };
}
