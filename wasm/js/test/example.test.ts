// The example for Node, killed and started again.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

/** Runs the example until it has reported so often, ends it by a signal, and answers what it said and how it ended. */
async function reports(program: string, state: string, count: number, signal: NodeJS.Signals) {
  const child = spawn(process.execPath, [program, state], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", (code, by) => resolve(by ?? code)));
  let said = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) {
    said += chunk;
    if (said.split("\n").length > count && !child.killed) child.kill(signal);
  }
  return { lines: said.trim().split("\n"), ended: await ended };
}

test("the example for Node begins nothing twice, killed or stopped, and Go can judge its state", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tick-"));
  const program = join(folder, "main.mjs"), state = join(folder, "state");
  copyFileSync("../../examples/node/main.mjs", program);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(process.cwd(), join(folder, "node_modules", "tickonce"));
  const killed = await reports(program, state, 1, "SIGKILL");
  assert.equal(killed.ended, "SIGKILL");
  const stopped = await reports(program, state, 1, "SIGTERM");
  assert.equal(stopped.ended, 0);
  const lines = [...killed.lines, ...stopped.lines];
  for (const line of lines) assert.match(line, /^report of \S+Z, try \d$/);
  assert.equal(new Set(lines).size, lines.length, lines.join("\n")); // a job in hand at the kill has another try
  const { stdout, stderr } = spawnSync("go", ["run", "./cmd/simulate", "journal", state], { cwd: "../..", encoding: "utf8" });
  assert.match(stdout, /^verdict: pass$/m, stderr);
  rmSync(folder, { recursive: true });
});
