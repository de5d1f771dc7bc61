import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, realpath, rename, rm, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { StoreError } from "../errors.js";
import type { Store } from "../store.js";
import { concat } from "./concat.js";
import { lockDirectory } from "./directorylock.js";
import { damaged, fileName, frame, generationOf, header, headerSize, identityIn, scan, sumOf, type Kind } from "./fileformat.js";

const temporary = ".tmp";

/**
 * Keeps an engine's state in a directory, which `load` makes if it is not
 * there; its parent has to be. What was stored survives the process, killed or
 * not, and the fall of the machine: every append is synced, which takes the disk
 * a few milliseconds. An append that a crash has cut is cut off by `load`.
 *
 * One process at a time has the directory: `load` rejects with a
 * {@link StoreError} "taken" while another has. A "full" disk, an "unavailable"
 * directory, a "damaged" file and one of a "newer" version are errors too; they
 * name the file and change nothing.
 *
 * The files are those of Go's package fileengine: a Go program can open the
 * directory, and `simulate` can judge it, while no process has it; locks of the
 * one are not seen by the other.
 */
export function fileStore(directory: string): Store {
  if (typeof directory !== "string" || directory === "") {
    throw new TypeError("fileStore: the directory is a text that is not empty");
  }
  let folder = "";
  let unlock: (() => Promise<void>) | undefined;
  let identity: Uint8Array;
  let generation = 0;
  let log: FileHandle | undefined;
  let end = 0; // where the next record goes
  let sum = 0; // of the log's header
  let trusted = false; // nothing is behind the end, and all before it is on disk

  /** Makes a whole file, or none, that lasts. */
  async function place(kind: Kind, number: number, content: Uint8Array): Promise<void> {
    const path = join(folder, fileName(kind, number));
    await using file = await open(path + temporary, "w", 0o600);
    await file.writeFile(header(kind, identity, number));
    await file.writeFile(content);
    await file.sync();
    await rename(path + temporary, path);
    await syncDirectory(folder);
  }

  async function startLog(number: number): Promise<void> {
    await place("log", number, new Uint8Array());
    await log?.close().catch(() => {});
    log = await open(join(folder, fileName("log", number)), "r+");
    generation = number;
    end = headerSize;
    sum = sumOf(header("log", identity, number));
  }

  async function load() {
    const names = await readdir(folder);
    const last = (kind: Kind) => Math.max(0, ...names.map((name) => generationOf(kind, name)));
    const first = Math.max(1, last("snapshot"));
    const found: { snapshot?: Uint8Array; log?: Uint8Array } = {};
    let id: Buffer | undefined;
    const read = async (kind: Kind, number: number) => {
      const name = fileName(kind, number);
      const b = await readFile(join(folder, name));
      const its = identityIn(kind, name, b);
      if (id && !id.equals(its)) throw damaged(name, 12, "belongs to another store than the files before it");
      id = its;
      return b;
    };
    if (last("snapshot") > 0) found.snapshot = (await read("snapshot", first)).subarray(headerSize);
    const records: Uint8Array[] = [];
    for (let number = first; number <= Math.max(last("log"), last("snapshot")); number++) {
      const name = fileName("log", number);
      if (!names.includes(name)) throw damaged(name, 0, "there is no such file, nor a snapshot in its place");
      const b = await read("log", number);
      const { records: its, end: ends } = scan(name, b);
      records.push(...its);
      await log?.close();
      log = await open(join(folder, name), "r+");
      // What an earlier process wrote may not be on disk, and to sync is not
      // enough if a sync of its has failed.
      await log.write(b, headerSize, ends - headerSize, headerSize);
      await log.truncate(ends);
      await log.sync();
      generation = number;
      end = ends;
      sum = sumOf(b);
    }
    identity = id ?? randomBytes(16);
    if (!log) await startLog(1);
    await syncDirectory(folder);
    trusted = true;
    if (records.length > 0) found.log = concat(records);
    return found;
  }

  /** Removes what a snapshot has taken the place of; what cannot be removed is left to the next time. */
  async function removeBefore(number: number): Promise<void> {
    for (const name of await readdir(folder)) {
      const whole = basename(name, temporary);
      const its = Math.max(generationOf("log", whole), generationOf("snapshot", whole));
      if (its > 0 && (its < number || whole !== name)) await rm(join(folder, name), { force: true });
    }
  }

  async function close() {
    trusted = false;
    await log?.close();
    log = undefined;
    await unlock?.();
    unlock = undefined;
  }

  return {
    load: () =>
      told(directory, async () => {
        await close();
        await mkdir(directory, { mode: 0o700 }).catch((err) => {
          if (err.code !== "EEXIST") throw err;
        });
        folder = await realpath(directory);
        await syncDirectory(dirname(folder));
        unlock = await lockDirectory(folder);
        try {
          return await load();
        } catch (err) {
          await close();
          throw err;
        }
      }),

    append: (records) =>
      told(directory, async () => {
        if (!log || !trusted) throw new StoreError("unavailable", log ? "the log cannot be trusted after an earlier failure: replace comes first" : "load comes first");
        trusted = false; // until it is on disk
        const b = frame(records, sum, end, end);
        await log.write(b, 0, b.length, end);
        await log.datasync();
        end += b.length;
        trusted = true;
      }),

    replace: (snapshot) =>
      told(directory, async () => {
        if (!log) throw new StoreError("unavailable", "load comes first");
        // An empty log is as good as a new one, or a disk without room for the
        // snapshot would be filled with logs.
        if (!trusted || end > headerSize) await startLog(generation + 1);
        await place("snapshot", generation, snapshot);
        trusted = true;
        await removeBefore(generation).catch(() => {});
      }),

    close: () => told(directory, close),
  };
}

/** Makes the names in a directory last, where the system can. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  await using file = await open(path, "r");
  await file.sync();
}

/** Has every error be one of a store. */
async function told<T>(directory: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (err) {
    if (err instanceof StoreError) throw err;
    const { code, message } = err as NodeJS.ErrnoException;
    throw ["ENOSPC", "EDQUOT", "EFBIG"].includes(code ?? "")
      ? new StoreError("full", `there is no room for the state in ${directory}: ${message}`, { cause: err })
      : new StoreError("unavailable", `the state in ${directory} cannot be reached: ${message}`, { cause: err });
  }
}
