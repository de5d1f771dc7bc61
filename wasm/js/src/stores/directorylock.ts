import { createHash, randomUUID } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { createConnection, createServer, type Server } from "node:net";
import { join, relative } from "node:path";
import { StoreError } from "../errors.js";

const prefix = "lock-";

/**
 * Holds a directory against all other processes until the lock is given back or
 * the process has ended, however it ends. Rejects with a StoreError "taken" if
 * another holds it.
 *
 * A holder is a socket in the directory that is listened on, which the system
 * sees to: no file is left behind that looks like a lock. Who wants the lock
 * listens first and looks for others then, so of two that come at once at least
 * one sees the other, and gives up.
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  if (process.platform === "win32") { // where sockets are named pipes, in no directory
    const pipe = "\\\\.\\pipe\\tickonce-" + createHash("sha256").update(directory).digest("hex");
    const server = await listen(pipe).catch((err) => {
      throw err.code === "EADDRINUSE" ? taken(directory) : err;
    });
    return () => close(server);
  }
  for (;;) {
    const mine = prefix + randomUUID().slice(0, 8);
    const server = await listen(path(directory, mine));
    try {
      const names = (await readdir(directory)).filter((name) => name.startsWith(prefix));
      if (names.includes(mine)) {
        for (const other of names.filter((name) => name !== mine)) {
          if (await answers(path(directory, other))) throw taken(directory);
          await rm(join(directory, other), { force: true });
        }
        return () => close(server);
      }
      // Else another took the socket for a dead one before it was listened on.
    } catch (err) {
      await close(server);
      throw err;
    }
    await close(server);
  }
}

function taken(directory: string): StoreError {
  return new StoreError("taken", `the directory ${directory} is in use by another engine`);
}

/** A path of a socket, which has room for about a hundred bytes. */
function path(directory: string, name: string): string {
  const whole = join(directory, name);
  const short = relative("", whole);
  const best = short.length < whole.length ? short : whole;
  if (Buffer.byteLength(best) > 103) {
    throw new StoreError("unavailable", `the path of the directory ${directory} is too long for a socket in it: 90 bytes at most, from the working directory or from the root`);
  }
  return best;
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen(path, () => {
      server.unref(); // the lock keeps no process alive
      resolve(server);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (err: NodeJS.ErrnoException) => resolve(err.code !== "ECONNREFUSED" && err.code !== "ENOENT"));
  });
}
