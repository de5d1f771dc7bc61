export { TickonceError, StoreError } from "./errors.js";
export type { ErrorCode, StoreErrorCode } from "./errors.js";
export type { Store, Stored } from "./store.js";
export type { Call, Leadership, Term } from "./leadership.js";
export { indexedDBStore } from "./stores/indexeddb.js";
export { memoryStore } from "./stores/memory.js";
export { webLocks } from "./weblocks.js";
export type { WebLocks } from "./weblocks.js";
