// Bundles the report's script and style into ../priv/report, where Tame.Report looks for them,
// and puts the licences of everything in the bundle beside them.
//
//     npm ci && npm run build

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "priv", "report");
mkdirSync(out, { recursive: true });

const common = { absWorkingDir: here, bundle: true, minify: true, metafile: true, logLevel: "warning" };

const script = await build({
  ...common,
  entryPoints: ["page.js"],
  outfile: join(out, "page.js"),
  format: "iife",
  target: "es2020",
  // Plain ASCII reads the same whatever the page around it says of its encoding.
  charset: "ascii",
  legalComments: "none",
  banner: { js: "/* tame's report. Holds vega, vega-lite, vega-embed and what they need (BSD-3-Clause, ISC, MIT); texts: priv/report/LICENSES.txt */" },
});

await build({ ...common, entryPoints: ["page.css"], outfile: join(out, "page.css"), charset: "ascii" });

const packages = bundledPackages(Object.keys(script.metafile.inputs));
writeFileSync(join(out, "LICENSES.txt"), packages.map(licence).join(`\n${"-".repeat(78)}\n\n`));
console.log(`priv/report: page.js from ${packages.length} packages, page.css, LICENSES.txt`);

// The folders of the packages whose files ended up in the bundle, each once, by name.
function bundledPackages(inputs) {
  const folders = inputs.map((input) => input.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(folders.filter(Boolean))].sort();
}

function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
  const file = readdirSync(join(here, folder)).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  const path = file && join(here, folder, file);
  const text = path && existsSync(path) ? readFileSync(path, "utf8").trim() : "No licence file in the package.";
  return `${name} ${version} (${license})\n\n${text}\n`;
}
