// The package as it is installed: packed, put into an empty project, and used as
// its README says, in Node and through vite.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";

import { buildSync } from "esbuild";
import { chromium } from "playwright-core";
import { build, createServer, preview } from "vite";

let project = "";

before(() => {
  project = mkdtempSync(join(tmpdir(), "tickonce-"));
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", project], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  write("package.json", JSON.stringify({ private: true, type: "module", dependencies: { tickonce: `file:${filename}` } }));
  execFileSync("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], { cwd: project });
});

after(() => rmSync(project, { recursive: true, force: true }));

function write(name: string, text: string): void {
  writeFileSync(join(project, name), text);
}

function run(...command: [string, ...string[]]): string {
  const { stdout, stderr, status } = spawnSync(command[0], command.slice(1), { cwd: project, encoding: "utf8", timeout: 120_000 });
  assert.equal(status, 0, stdout + stderr);
  return stdout;
}

/** The first example of the README, in TypeScript. */
function example(): string {
  return readFileSync("README.md", "utf8").match(/```ts\n([^]*?)```/)![1]!;
}

test("the package has its licences, and no more than is used", () => {
  const installed = join(project, "node_modules/tickonce");
  for (const file of ["LICENSE", "NOTICE", "README.md", "dist/tickonce.wasm", "dist/types/index.d.ts"]) {
    assert.ok(existsSync(join(installed, file)), file);
  }
  for (const folder of ["src", "test", "build", "node_modules"]) assert.ok(!existsSync(join(installed, folder)), folder);
});

test("the module is at most 1,350 kB on its way, the script 16 kB", () => {
  assert.ok(gzipSync(readFileSync("dist/tickonce.wasm"), { level: 9 }).length <= 1_350_000);
  const script = buildSync({ entryPoints: ["src/slim.ts"], bundle: true, minify: true, format: "esm", target: "es2022", write: false });
  assert.ok(gzipSync(script.outputFiles[0]!.contents, { level: 9 }).length <= 16_000);
});

const use = (from: string, entry: string) => `
  const { load, start } = ${from};
  load().then(async rt => {
    const eng = rt.open();
    const id = await eng.enqueue("q", { to: "ops" });
    const text = await new Promise(resolve => { start(eng, { q: job => resolve(job.text()) }); });
    await eng.close();
    console.log("${entry}", id, text);
  });`;

for (const entry of ["tickonce", "tickonce/inline", "tickonce/worker"]) {
  test(`Node imports ${entry}, and requires it`, () => {
    write("main.mjs", use(`await import("${entry}")`, entry));
    write("main.cjs", use(`require("${entry}")`, entry));
    const said = `${entry} 1 {"to":"ops"}\n`;
    assert.equal(run("node", "main.mjs"), said);
    assert.equal(run("node", "--no-warnings", "main.cjs"), said);
  });
}

test("a process ends although an engine in a Worker was left open", () => {
  write("left.mjs", `
    import { load } from "tickonce/worker";
    const eng = (await load()).open();
    console.log(await eng.enqueue("q"));`);
  assert.equal(run("node", "left.mjs"), "1\n");
});

test("tickonce.wasm is found by its name", () => {
  assert.ok(existsSync(createRequire(join(project, "x.js")).resolve("tickonce/tickonce.wasm")));
});

test("the types hold in a strict project, and what is wrong is an error there", () => {
  write("main.ts", example() + `
    import { load as slim } from "tickonce/slim";
    import { load as inline } from "tickonce/inline";
    import { load as worker } from "tickonce/worker";
    export const all = [slim, inline, worker];
    // @ts-expect-error: there is no such option
    void eng.schedule("s", "@every 5m", "q", { colour: "red" });
    // @ts-expect-error: a payload is what JSON has
    void eng.enqueue("q", () => 1);
    // @ts-expect-error: a claim names its worker
    void eng.claim("q", {});
  `);
  for (const module of ["nodenext", "preserve"]) {
    write("tsconfig.json", JSON.stringify({
      compilerOptions: { strict: true, exactOptionalPropertyTypes: true, module, target: "es2022", lib: ["es2022", "dom"], noEmit: true, types: [] },
      files: ["main.ts"],
    }));
    run(process.execPath, resolve("node_modules/typescript/bin/tsc"), "-p", ".");
  }
});

test("vite serves and builds it without configuration", async () => {
  const executablePath = ["chromium", "chromium-browser", "google-chrome"]
    .flatMap(name => process.env["PATH"]!.split(delimiter).map(folder => join(folder, name))).find(existsSync);
  assert.ok(executablePath, "there is no Chromium: scripts/setup installs it where apt has it");
  write("index.html", `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.ts"></script>`);
  write("page.ts", `
    import { load, start } from "tickonce";
    import { load as inline } from "tickonce/inline";
    import { load as worker } from "tickonce/worker";
    const said: string[] = [];
    for (const l of [load, inline, worker]) {
      const eng = (await l()).open();
      const id = await eng.enqueue("q", "hello");
      const text = await new Promise<string>(resolve => { start(eng, { q: job => resolve(job.text()) }); });
      await eng.close();
      said.push(id + text);
    }
    Object.assign(globalThis, { said });
  `);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"] });
  try {
    const look = async (url: string) => {
      const page = await browser.newPage();
      const faults: string[] = [];
      page.on("pageerror", e => faults.push(String(e)));
      page.on("console", m => m.type() === "error" && faults.push(m.text()));
      await page.goto(url);
      const said = await page.waitForFunction(() => (globalThis as { said?: string[] }).said, null, { timeout: 120_000 });
      assert.deepEqual([await said.jsonValue(), faults], [["1hello", "1hello", "1hello"], []]);
      await page.close();
    };
    const dev = await createServer({ root: project, logLevel: "error", server: { port: 0 } });
    await dev.listen();
    await look(dev.resolvedUrls!.local[0]!);
    await dev.close();
    await build({ root: project, logLevel: "error", build: { chunkSizeWarningLimit: 5000 } });
    const built = await preview({ root: project, logLevel: "error", preview: { port: 0 } });
    await look(built.resolvedUrls!.local[0]!);
    await built.close();
  } finally {
    await browser.close();
  }
});
