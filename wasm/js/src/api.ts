export { TickonceError, StoreError } from "./errors.js";
export type { ErrorCode, StoreErrorCode } from "./errors.js";
export type { Store, Stored } from "./store.js";
export type { Call, Leadership, Term } from "./leadership.js";
