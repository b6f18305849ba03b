// Tests of a generated site in headless Chromium, from files. In: the folder of the site, the folder for screenshots. Out: a
// line for each test; status 1 if one fails.
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [site, pictures] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(pathToFileURL(join(resolve(process.env.OPSMITH_SITE_TOOLS), "package.json")));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(pictures, { recursive: true });

const browser = await chromium.launch({ executablePath: process.env.OPSMITH_CHROMIUM, args: ["--no-sandbox"] });
let failed = 0;
const requests = [];
const errors = [];

const open = async (page, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const tab = await context.newPage();
  tab.on("request", (request) => { if (!/^(file|data):/.test(request.url())) requests.push(request.url()); });
  tab.on("pageerror", (error) => errors.push(`${page}: ${error.message}`));
  tab.on("console", (message) => { if (message.type() === "error") errors.push(`${page}: ${message.text()}`); });
  await tab.goto(pathToFileURL(join(site, page)).href);
  return tab;
};
const close = (tab) => tab.context().close();
const test = async (name, body) => {
  try {
    await body();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.message.split("\n").slice(0, 12).join("\n        ")}`);
  }
};
const check = (holds, message) => { if (!holds) throw new Error(message); };

// A page of each kind: the largest operator with most sections, one with a picture, the guide, coverage.
const first = (folder, names) => names.map((name) => `${folder}/${name}.html`).find((page) => existsSync(join(site, page)))
  ?? `${folder}/${readdirSync(join(site, folder))[0]}`;
const pages = {
  home: "index.html",
  pointwise: first("ops", ["gelu", "sigmoid", "bell_curve"]),
  kernel: first("ops", ["convolution", "mm", "neighbour_sum"]),
  alias: first("ops", ["absolute", "multiply.Tensor", "mirror"]),
  family: first("families", ["activation", "ops"]),
  coverage: "coverage.html",
  changes: "changes.html",
};
if (existsSync(join(site, "guide"))) pages.guide = first("guide", ["install", "readme"]);
if (existsSync(join(site, "guide/commands.html"))) pages.commands = "guide/commands.html";

for (const [kind, page] of Object.entries(pages)) {
  for (const scheme of ["light", "dark"]) {
    await test(`axe, ${kind}, ${scheme}`, async () => {
      const tab = await open(page, { colorScheme: scheme });
      await tab.screenshot({ path: join(pictures, `${kind}-${scheme}.png`) });
      await tab.evaluate(axe);
      const { violations } = await tab.evaluate(() => window.axe.run(document, { preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      const told = violations.map((rule) => `${rule.id}: ${rule.help} ${rule.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
      check(told.length === 0, told.join("\n"));
      await close(tab);
    });
  }
  await test(`no horizontal scroll at 360 pixels, ${kind}`, async () => {
    const tab = await open(page, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
    await tab.screenshot({ path: join(pictures, `${kind}-phone.png`) });
    const width = await tab.evaluate(() => document.scrollingElement.scrollWidth);
    check(width <= 360, `the page is ${width} pixels wide`);
    await close(tab);
  });
}

await test("the search by keyboard: opens, forgives a mistake, moves, follows, closes", async () => {
  const tab = await open("index.html");
  const name = await tab.evaluate(() => window.opsmithIndex.map((row) => row[0]).find((text) => /^[a-z]{6,}$/.test(text)));
  await tab.keyboard.press("/");
  check(await tab.locator("dialog.finder").evaluate((dialog) => dialog.open), "`/` opens no search");
  check((await tab.evaluate(() => document.activeElement.getAttribute("role"))) === "combobox", "the field has no focus");
  const wrong = name.slice(0, 2) + name[3] + name[2] + name.slice(4);
  await tab.keyboard.type(wrong);
  const titles = await tab.locator("#found li b").allTextContents();
  check(titles.some((title) => title.split(".")[0] === name), `${wrong} does not find ${name}: ${titles}`);
  await tab.screenshot({ path: join(pictures, "search.png") });
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => window.axe.run(document.querySelector("dialog"), { preload: false }));
  check(violations.length === 0, violations.map((rule) => `${rule.id}: ${rule.nodes[0].html}`).join("\n"));
  await tab.keyboard.press("Escape");
  check(!(await tab.locator("dialog.finder").evaluate((dialog) => dialog.open)), "Escape does not close it");
  await tab.keyboard.press("Control+k");
  await tab.keyboard.type(name);
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("ArrowUp");
  const selected = await tab.locator("#found [aria-selected=true] b").textContent();
  check(selected === name, `the best of ${name} is ${selected}`);
  await tab.keyboard.press("Enter");
  await tab.waitForURL((address) => address.href.includes(`/ops/${name}`));
  await close(tab);
});

await test("colours: the button leads through system, light and dark, and the next page keeps them", async () => {
  const tab = await open("index.html", { colorScheme: "light" });
  const paper = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await tab.click("button.theme");
  await tab.click("button.theme");
  check((await paper()) !== light, "dark is as light");
  await tab.goto(pathToFileURL(join(site, pages.pointwise)).href);
  check((await paper()) !== light, "the next page is light again");
  await close(tab);
});

await test("the menu of a narrow window opens, closes by Escape, and keeps the focus", async () => {
  const tab = await open(pages.pointwise, { viewport: { width: 360, height: 740 } });
  check(!(await tab.locator("#sidebar").isVisible()), "the sidebar covers a narrow window");
  await tab.click("button.menu");
  check(await tab.locator("#sidebar").isVisible(), "the menu opens no sidebar");
  await tab.screenshot({ path: join(pictures, "menu-phone.png") });
  await tab.keyboard.press("Escape");
  check(!(await tab.locator("#sidebar").isVisible()), "Escape does not close the sidebar");
  await close(tab);
});

await test("the link over all others leads to the content", async () => {
  const tab = await open(pages.pointwise);
  await tab.keyboard.press("Tab");
  await tab.keyboard.press("Enter");
  check((await tab.evaluate(() => document.activeElement.id)) === "main", "the content has no focus");
  await close(tab);
});

if (existsSync(join(site, "assets/coverage-data.js"))) {
  await test("coverage: filters by name and outcome, sorts both ways", async () => {
    const tab = await open("coverage.html");
    const rows = () => tab.locator("table.coverage tbody tr").count();
    const all = await rows();
    check(all > 0, "the table is empty");
    const name = await tab.locator("table.coverage tbody th").nth(Math.min(5, all - 1)).textContent();
    await tab.fill("input[name=text]", name);
    check((await rows()) >= 1 && (await rows()) < all, `the name ${name} filters ${await rows()} of ${all} rows`);
    await tab.fill("input[name=text]", "");
    await tab.selectOption("select[name=outcome]", "p");
    check((await rows()) <= all, "more rows with outcomes than without");
    await tab.selectOption("select[name=outcome]", "");
    await tab.click("table.coverage thead button >> nth=0");
    const last = await tab.locator("table.coverage tbody th").first().textContent();
    const sort = await tab.locator("table.coverage thead th").first().getAttribute("aria-sort");
    check(sort === "descending", `the first column is sorted ${sort}`);
    await tab.click("table.coverage thead button >> nth=2");
    check((await tab.locator("table.coverage thead th").nth(2).getAttribute("aria-sort")) === "descending", "the third column is not sorted");
    check(last.length > 0, "no name");
    await tab.selectOption("select[name=dtype]", { index: 1 });
    await tab.screenshot({ path: join(pictures, "coverage-filtered.png") });
    await close(tab);
  });
}

await test("no request to a network, no error of a script", async () => {
  check(requests.length === 0, requests.join("\n"));
  check(errors.length === 0, errors.join("\n"));
});

await browser.close();
console.log(`screenshots in ${pictures}`);
process.exit(failed ? 1 : 0);
