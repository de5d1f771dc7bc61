import { StoreError } from "../errors.js";
import type { Store } from "../store.js";
import { concat } from "./concat.js";

// Version 1 of the database has two object stores:
//
//   state   "snapshot": bytes, once there is one
//           "holder": a text drawn by the latest load
//   log     the appended records, by ascending numbers
const version = 1;

/**
 * Keeps an engine's state in the IndexedDB database of that name, of this
 * origin. Each call is one transaction that is on disk (durability "strict")
 * when its promise resolves.
 *
 * `load` takes the state over: a store in another tab that loaded it earlier
 * gets a {@link StoreError} "taken" from then on. So a tab that believes it
 * still leads can store nothing, and hands nothing out.
 *
 * A {@link StoreError} is "full" when the origin's quota is reached, "newer" if
 * a later version of this package has made the database, "damaged" if its rows
 * cannot be read or were deleted while they were in use, by the user or because
 * the browser was short of room, and "unavailable" if IndexedDB does not answer,
 * as in some private windows. After a deletion `append` fails until `replace`
 * has written the state anew.
 *
 * A browser may delete what an origin keeps when it is short of room, all of it
 * at once; `navigator.storage.persist()` asks it not to.
 */
export function indexedDBStore(name: string): Store {
  if (typeof name !== "string" || name === "") {
    throw new TypeError("indexedDBStore: the name is a text that is not empty");
  }
  let holder = ""; // drawn by load
  let closed = false;
  let connection: IDBDatabase | undefined;

  async function database(): Promise<IDBDatabase> {
    if (closed) {
      throw new StoreError("unavailable", `the database ${JSON.stringify(name)} is closed`);
    }
    if (!connection) {
      const opened = await open(name);
      if (closed) {
        opened.close();
        return database();
      }
      connection = opened;
      // The connection ends when its database is deleted or cleared, or is to
      // become one of a later version. The next call opens it anew and sees
      // what there is.
      const ended = () => {
        opened.close();
        if (connection === opened) connection = undefined;
      };
      opened.onversionchange = ended;
      opened.onclose = ended;
    }
    return connection;
  }

  /** Does something in one transaction, and answers once that is on disk. */
  async function write<T>(work: (state: IDBObjectStore, log: IDBObjectStore, refuse: (why: StoreError) => void) => () => T): Promise<T> {
    const db = await database();
    return new Promise<T>((resolve, reject) => {
      let refused: StoreError | undefined;
      try {
        const tx = db.transaction(["state", "log"], "readwrite", { durability: "strict" });
        tx.onabort = () => reject(refused ?? storeError(name, tx.error));
        const answer = work(tx.objectStore("state"), tx.objectStore("log"), (why) => {
          refused = why;
          tx.abort();
        });
        tx.oncomplete = () => {
          try {
            resolve(answer());
          } catch (err) {
            reject(storeError(name, err));
          }
        };
      } catch (err) {
        if (connection === db) connection = undefined; // it is closing
        reject(storeError(name, err));
      }
    });
  }

  /** Refuses unless it is this store that has loaded last. */
  function guard(state: IDBObjectStore, refuse: (why: StoreError) => void, ifDeleted: () => void): void {
    const own = holder;
    if (own === "") throw new StoreError("unavailable", "load comes first");
    const held = state.get("holder");
    held.onsuccess = () => {
      if (held.result === undefined) {
        ifDeleted();
      } else if (held.result !== own) {
        refuse(new StoreError("taken", `another tab has taken over the database ${JSON.stringify(name)}`));
      }
    };
  }

  return {
    async load() {
      const drawn = crypto.randomUUID();
      const found = await write((state, log) => {
        const snapshot = state.get("snapshot");
        const records = log.getAll();
        state.put(drawn, "holder");
        return () => ({ snapshot: bytes(snapshot.result), records: (records.result as unknown[]).map(bytes) });
      });
      holder = drawn;
      const records = found.records.filter((part) => part !== undefined);
      return { ...(found.snapshot && { snapshot: found.snapshot }), ...(records.length > 0 && { log: concat(records) }) };
    },

    append: (records) =>
      write((state, log, refuse) => {
        guard(state, refuse, () => refuse(deleted(name)));
        log.add(records.slice());
        return () => {};
      }),

    replace: (snapshot) =>
      write((state, log, refuse) => {
        guard(state, refuse, () => state.put(holder, "holder"));
        state.put(snapshot.slice(), "snapshot");
        log.clear();
        return () => {};
      }),

    async close() {
      closed = true;
      connection?.close();
      connection = undefined;
    },
  };
}

function open(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    let gone = false;
    const fail = (err: unknown) => {
      gone = true;
      reject(storeError(name, err));
    };
    try {
      const request = indexedDB.open(name, version);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("state");
        request.result.createObjectStore("log", { autoIncrement: true });
      };
      request.onblocked = () => fail(new StoreError("unavailable", `another tab holds an earlier version of the database ${JSON.stringify(name)} open: close it`));
      request.onerror = () => fail(request.error);
      request.onsuccess = () => {
        if (gone) request.result.close();
        else resolve(request.result);
      };
    } catch (err) {
      fail(err);
    }
  });
}

/** Bytes that were stored; nothing else is. */
function bytes(value: unknown): Uint8Array | undefined {
  if (value === undefined || value instanceof Uint8Array) return value;
  throw new StoreError("damaged", "a row holds something else than bytes");
}

function deleted(name: string): StoreError {
  return new StoreError("damaged", `the database ${JSON.stringify(name)} was deleted while it was in use`);
}

/** What IndexedDB says, as an error of a store. */
function storeError(name: string, cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const said = cause instanceof Error ? `${cause.name}: ${cause.message}` : "no reason given";
  const where = `the database ${JSON.stringify(name)}`;
  switch (cause instanceof Error ? cause.name : "") {
    case "QuotaExceededError":
      return new StoreError("full", `${where}: there is no more room for this origin (${said})`, { cause });
    case "VersionError":
      return new StoreError("newer", `${where} was made by a later version of tickonce (${said})`, { cause });
    case "NotFoundError": // an object store is missing
    case "NotReadableError":
    case "DataError":
      return new StoreError("damaged", `${where} cannot be read (${said})`, { cause });
    default:
      return new StoreError("unavailable", `${where} does not answer (${said})`, { cause });
  }
}
