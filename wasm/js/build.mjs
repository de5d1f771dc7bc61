// Builds the package in dist/: the guest by Go, the scripts by esbuild, the types
// by tsc. With --tests it builds the tests in build/, too.
import { execFileSync } from "node:child_process";
import { build } from "esbuild";
import { copyFileSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
process.chdir(here);

const run = (command, args, env = {}) => execFileSync(command, args, { stdio: "inherit", env: { ...process.env, ...env } });
const options = { bundle: true, format: "esm", platform: "neutral", target: "es2022", packages: "external", external: ["node:*"], logLevel: "warning" };

rmSync("dist", { recursive: true, force: true });
run("go", ["build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", "dist/tickonce.wasm", "../guest"], { GOOS: "wasip1", GOARCH: "wasm" });
copyFileSync("../../LICENSE", "LICENSE");
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

if (process.argv.includes("--tests")) {
  rmSync("build", { recursive: true, force: true });
  run("node_modules/.bin/tsc", ["-p", "test"]);
  await build({
    ...options, outdir: "build", outExtension: { ".js": ".mjs" }, sourcemap: "inline",
    entryPoints: readdirSync("test").filter(name => name.endsWith(".test.ts")).map(name => "test/" + name),
  });
}
