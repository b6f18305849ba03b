// Pages of files in headless Chromium, for the tests beside this file. In: OPSMITH_CHROMIUM, the browser; OPSMITH_SITE_TOOLS, a
// folder with playwright-core and axe-core. Out: pages, and a line for each test.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(join(resolve(process.env.OPSMITH_SITE_TOOLS), "package.json")));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: process.env.OPSMITH_CHROMIUM, args: ["--no-sandbox"] });
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
let failed = 0;

/** Requests to a network. */
export const requests = [];
/** Errors of scripts. */
export const errors = [];

export const open = async (file, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const tab = await context.newPage();
  const page = basename(file);
  tab.on("request", (request) => { if (!/^(file|data):/.test(request.url())) requests.push(request.url()); });
  tab.on("pageerror", (error) => errors.push(`${page}: ${error.message}`));
  tab.on("console", (message) => { if (message.type() === "error") errors.push(`${page}: ${message.text()}`); });
  await tab.goto(pathToFileURL(file).href);
  return tab;
};

export const close = (tab) => tab.context().close();

export const check = (holds, message) => { if (!holds) throw new Error(message); };

export const test = async (name, body) => {
  try {
    await body();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.message.split("\n").slice(0, 12).join("\n        ")}`);
  }
};

/** Fails if a page, or a part of it, is not accessible. */
export const accessible = async (tab, part = "html") => {
  await tab.evaluate(axe);
  const run = ([part, runOnly]) => window.axe.run(part === "html" ? document : document.querySelector(part), { preload: false, runOnly });
  const { violations } = await tab.evaluate(run, [part, RULES]);
  const places = (rule) => rule.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join(" | ");
  check(violations.length === 0, violations.map((rule) => `${rule.id}: ${rule.help} ${places(rule)}`).join("\n"));
};

/** Ends the browser and the program, with status 1 if a test failed. */
export const finish = async () => {
  await browser.close();
  process.exit(failed ? 1 : 0);
};
