// Runs schedules in Node, with their state in a directory: kill it at any point and
// start it again, and it goes on as if nothing had happened.
//
//   node main.mjs [DIRECTORY]
import { load, start } from "tickonce";
import { fileStore } from "tickonce/file";

const directory = process.argv[2] ?? "state";
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort());

const runtime = await load();
const engine = runtime.open({ store: fileStore(directory) });

// The same at each start: a schedule that is there and has not changed stays as it is.
await engine.schedule("report", "@every 2s", "reports", {
  visibilityMS: 5_000, // what was in hand when it was killed is tried again after so long
  catchUp: "latest",
});

const run = start(engine, {
  reports: {
    concurrency: 2,
    async handler(job, { signal }) {
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, 500);
        signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
      });
      console.log(`report of ${new Date(job.boundary).toISOString()}, try ${job.attempt}`);
    },
  },
}, { signal: stop.signal });

try {
  await run.done; // what is in hand is finished
} finally {
  await engine.close();
}
