import type { Store } from "../store.js";
import { concat } from "./concat.js";

/**
 * Keeps an engine's state as long as the store itself: for tests, and for an
 * engine that is closed and opened again in one process.
 */
export function memoryStore(): Store {
  let snapshot: Uint8Array | undefined;
  let log: Uint8Array[] = [];
  return {
    async load() {
      return { ...(snapshot && { snapshot: snapshot.slice() }), ...(log.length > 0 && { log: concat(log) }) };
    },
    async append(records) {
      log.push(records.slice());
    },
    async replace(state) {
      snapshot = state.slice();
      log = [];
    },
  };
}
