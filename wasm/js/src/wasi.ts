// The part of WASI preview 1 that the guest imports. Nothing of it reaches a
// file or the environment; what the guest does not need answers ENOSYS or EBADF.

const success = 0, badFile = 8, notSupported = 52;

/** A fault that ends the instance, as proc_exit. */
export class Exit extends Error {}

/** The imports of an instance. `memory` is asked for at each use, since it can grow in any call. */
export function imports(memory: () => ArrayBuffer): WebAssembly.Imports {
  const view = () => new DataView(memory());
  const bytes = (at: number, n: number) => new Uint8Array(memory(), at >>> 0, n >>> 0);
  const monotonic = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));

  // The Go runtime writes here what it panics with, piece by piece.
  const decoder = new TextDecoder();
  let line = "";
  const print = (text: string) => {
    line += text;
    const end = line.lastIndexOf("\n");
    if (end >= 0) {
      console.error("tickonce: " + line.slice(0, end));
      line = line.slice(end + 1);
    }
  };

  const wasi: Record<string, (...args: never[]) => number> = {
    args_sizes_get: (count: number, size: number) => {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return success;
    },
    args_get: () => success,
    environ_get: () => success,
    clock_time_get: (id: number, _precision: bigint, at: number) => {
      view().setBigUint64(at, id === 0 ? BigInt(Date.now()) * 1_000_000n : monotonic(), true);
      return success;
    },
    fd_write: (fd: number, vectors: number, count: number, written: number) => {
      if (fd !== 1 && fd !== 2) return badFile;
      let n = 0;
      for (let i = 0; i < count; i++) {
        const at = view().getUint32(vectors + 8 * i, true), size = view().getUint32(vectors + 8 * i + 4, true);
        print(decoder.decode(bytes(at, size), { stream: true }));
        n += size;
      }
      view().setUint32(written, n, true);
      return success;
    },
    fd_prestat_get: () => badFile, // there are no preopened directories
    // Every subscription is answered at once: the runtime polls only before it dies.
    poll_oneoff: (subscriptions: number, events: number, count: number, answered: number) => {
      const v = view();
      for (let i = 0; i < count; i++) {
        const from = subscriptions + 48 * i, to = events + 32 * i;
        v.setBigUint64(to, v.getBigUint64(from, true), true);
        v.setUint16(to + 8, success, true);
        v.setUint8(to + 10, v.getUint8(from + 8));
        v.setBigUint64(to + 16, 0n, true);
        v.setUint16(to + 24, 0, true);
      }
      v.setUint32(answered, count, true);
      return success;
    },
    proc_exit: (code: number) => {
      throw new Exit(`the engine exited with code ${code}`);
    },
    random_get: (at: number, n: number) => {
      for (let done = 0; done < n; done += 65536) {
        crypto.getRandomValues(bytes(at + done, Math.min(65536, n - done)));
      }
      return success;
    },
    sched_yield: () => success,
  };
  wasi["environ_sizes_get"] = wasi["args_sizes_get"]!;
  for (const name of ["fd_close", "fd_read", "fd_seek", "path_open", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_prestat_dir_name"]) {
    wasi[name] = () => notSupported;
  }
  return { wasi_snapshot_preview1: wasi };
}
