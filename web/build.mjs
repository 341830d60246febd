// Bundles the page into src/hubless/report/assets. The same sources and lock give the same bytes.
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const assets = path.join(here, "..", "src", "hubless", "report", "assets");
const MARKS = ["{{title}}", "{{noscript}}", "/*{{css}}*/", "/*{{js}}*/", "{{figures}}", "{{details}}"];
const NOTICE =
  "/* hubless. Has parts of Observable Plot and D3; see THIRD_PARTY.txt in the package hubless. */";

const bundle = async (options) => {
  const result = await build({
    absWorkingDir: here,
    bundle: true,
    minify: true,
    target: "es2022",
    write: false,
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
    ...options,
  });
  const [output] = Object.values(result.metafile.outputs);
  const inputs = Object.keys(output.inputs).filter((file) => output.inputs[file].bytesInOutput > 0);
  return { text: result.outputFiles[0].text, inputs };
};

/** The folder of the package that a bundled file is from: node_modules/a or node_modules/@scope/a. */
const packageOf = (file) => file.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1];

const licenceOf = async (folder) => {
  const { name, version, license } = JSON.parse(
    await readFile(path.join(here, folder, "package.json"), "utf8"),
  );
  const files = (await readdir(path.join(here, folder))).filter((file) => /^licen[cs]e/i.test(file)).sort();
  if (files.length === 0)
    throw new Error(`${name} has no licence file: its text must go to THIRD_PARTY.txt by hand`);
  const text = await readFile(path.join(here, folder, files[0]), "utf8");
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
};

const thirdParty = async (inputs) => {
  const folders = [...new Set(inputs.map(packageOf).filter(Boolean))].sort();
  const licences = await Promise.all(folders.map(licenceOf));
  return ["page.js has parts of these packages.\n", ...licences].join(`\n${"-".repeat(78)}\n\n`);
};

// An end tag or a mark of the template inside would break the page that Python fills in.
const check = (name, text, forbidden) => {
  for (const part of [...forbidden, ...MARKS]) {
    if (text.toLowerCase().includes(part)) throw new Error(`${name} must not contain ${part}`);
  }
};

const script = await bundle({ entryPoints: ["main.js"], format: "iife", banner: { js: NOTICE } });
const styles = await bundle({
  stdin: {
    contents: "@import './style.css'; @import './sections.css'; @import './map.css'; @import './explorer.css'; @import './families.css';",
    resolveDir: here,
    loader: "css",
  },
});
const template = await readFile(path.join(here, "page.html"), "utf8");
check("page.js", script.text, ["</script", "<!--"]);
check("page.css", styles.text, ["</style"]);
for (const mark of MARKS) {
  if (template.split(mark).length !== 2) throw new Error(`page.html must contain ${mark} once`);
}
const outputs = {
  "page.js": script.text,
  "page.css": styles.text,
  "page.html": template,
  "THIRD_PARTY.txt": await thirdParty(script.inputs),
};
await mkdir(assets, { recursive: true });
for (const [name, text] of Object.entries(outputs)) {
  await writeFile(path.join(assets, name), text);
  console.log(`${name}: ${Buffer.byteLength(text).toLocaleString("en-US")} bytes`);
}
