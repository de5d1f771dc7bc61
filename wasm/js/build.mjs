// Builds the package in dist/: the guest by Go, the scripts by esbuild, the types
// by tsc. With --tests it builds the tests in build/, too; with --sources nothing
// but the tests of the sources, which need the guest in dist/ alone.
import { execFileSync } from "node:child_process";
import { build } from "esbuild";
import { copyFileSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
process.chdir(here);

const wasip1 = { GOOS: "wasip1", GOARCH: "wasm" };
const run = (command, args, env = {}) => execFileSync(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
const options = { bundle: true, format: "esm", platform: "neutral", target: "es2022", packages: "external", external: ["node:*"], logLevel: "warning" };
const ask = (command, ...args) => execFileSync(command, args, { encoding: "utf8", env: { ...process.env, ...wasip1 } }).trim();

/** What the module of the guest is made of beside this project, with the licences. */
function notice() {
  const modules = ask("go", "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "../guest");
  const parts = [...new Set(modules.split("\n"))].filter(Boolean).sort().map(line => line.split("\t"));
  parts.push([`Go ${ask("go", "env", "GOVERSION").slice(2)}, its runtime and standard library`, ask("go", "env", "GOROOT")]);
  const texts = parts.map(([name, folder]) => {
    const file = ["LICENSE", "LICENSE.txt", "LICENSE.md"].map(f => `${folder}/${f}`).find(existsSync);
    return `${name}\n\n${readFileSync(file, "utf8").trim()}\n`;
  });
  return ["tickonce.wasm contains", ...texts].join("\n\n");
}

/** Builds the package in dist/. */
async function buildPackage() {
  rmSync("dist", { recursive: true, force: true });
  run("go", ["build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", "dist/tickonce.wasm", "../guest"], wasip1);
  copyFileSync("../../LICENSE", "LICENSE");
  writeFileSync("NOTICE", notice());
  await build({
    ...options, splitting: true, outdir: "dist", chunkNames: "chunk-[hash]",
    entryPoints: [
      "src/index.ts", "src/node.ts", "src/slim.ts", "src/inline.ts",
      "src/worker.ts", "src/thread.ts", "src/worker-node.ts", "src/thread-node.ts", "src/stores/file.ts",
    ],
    plugins: [{
      name: "packed",
      setup(build) {
        build.onResolve({ filter: /\.wasm\.gz$/ }, () => ({ path: "tickonce.wasm.gz", namespace: "packed" }));
        build.onLoad({ filter: /./, namespace: "packed" }, () => ({
          contents: gzipSync(readFileSync("dist/tickonce.wasm"), { level: 9 }), loader: "base64",
        }));
      },
    }],
  });
  run("node_modules/.bin/tsc", ["-p", "."]);
}

/** Builds tests in build/. */
async function buildTests(names) {
  rmSync("build", { recursive: true, force: true });
  run("node_modules/.bin/tsc", ["-p", "test"]);
  await build({
    ...options, outdir: "build", outExtension: { ".js": ".mjs" }, sourcemap: "inline",
    entryPoints: names.map(name => "test/" + name),
  });
}

const tests = readdirSync("test").filter(name => name.endsWith(".test.ts"));
const ofPackage = ["example.test.ts", "package.test.ts"]; // they test what is in dist/

if (process.argv.includes("--sources")) {
  await buildTests(tests.filter(name => !ofPackage.includes(name)));
} else {
  await buildPackage();
  if (process.argv.includes("--tests")) await buildTests(tests);
}
