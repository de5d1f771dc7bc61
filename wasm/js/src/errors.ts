/**
 * Why something was refused.
 *
 * | code | when |
 * |---|---|
 * | `invalid_spec` `invalid_name` `reserved_name` `invalid_worker` `invalid_option` | an argument is refused; nothing was written |
 * | `invalid_request` | the same, of what the engine finds malformed |
 * | `limit` | a limit is met; the message says which |
 * | `not_found` | there is no such schedule or job |
 * | `paused` `overlap` | a trigger is refused |
 * | `claim_lost` `conflict` | lost to another: read anew |
 * | `snapshot` | the snapshot cannot be read |
 * | `tx_done` | the transaction was committed before: nothing is put into it any more |
 * | `leadership_lost` | this engine does not lead any more: the outcome is unknown |
 * | `leader_gone` | the one that leads went before it had answered, or has not answered in time: the outcome is unknown unless the message says it |
 * | `closed` | the engine was closed |
 * | `internal` | a fault of the engine itself |
 * | `abandoned` | a stop left jobs in hand |
 * | `timeout` `stopped` | why the signal of a handler was aborted |
 * | `load` | the module cannot be loaded; the message says what to do |
 * | `error` | any other |
 * | `full` `unavailable` `damaged` `newer` `taken` | of a {@link StoreError} |
 */
export type ErrorCode =
  | "invalid_spec" | "invalid_name" | "reserved_name" | "invalid_worker" | "invalid_option" | "invalid_request"
  | "limit" | "not_found" | "paused" | "overlap" | "claim_lost" | "conflict"
  | "leadership_lost" | "leader_gone" | "snapshot" | "tx_done"
  | "closed" | "internal" | "abandoned" | "timeout" | "stopped" | "error" | "load"
  | StoreErrorCode;

/**
 * What is wrong with a store: it has no room, cannot be reached, what it has is
 * damaged or of a newer version, or another engine has taken the state over.
 */
export type StoreErrorCode = "full" | "unavailable" | "damaged" | "newer" | "taken";

/** An error of this package. Its `code` says which. */
export class TickonceError extends Error {
  /** What kind of error it is. Compare it rather than the message. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  override get name(): string {
    return "TickonceError";
  }
}

/** An error of a store. Of an operation: whether it has happened is not known until a later one succeeds. */
export class StoreError extends TickonceError {
  declare readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options);
  }

  override get name(): string {
    return "StoreError";
  }
}
