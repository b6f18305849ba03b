// Tests of a generated site in headless Chromium, from files. In: the folder of the site, the folder for screenshots. Out: a
// line for each test; status 1 if one fails.
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { accessible, check, close, errors, finish, open as openFile, requests, test } from "./browser.mjs";

const [site, pictures] = process.argv.slice(2).map((path) => resolve(path));
mkdirSync(pictures, { recursive: true });
const open = (page, options) => openFile(join(site, page), options);

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

// The operators whose pages are most likely to break: the five with most bytes, and of the others the five with the widest
// table, a row's cells and the letters in them.
const operators = readdirSync(join(site, "ops")).filter((file) => file.endsWith(".html")).map((file) => `ops/${file}`);
const width = (page) => {
  const rows = readFileSync(join(site, page), "utf8").matchAll(/<tr[ >].*?<\/tr>/gs);
  const wide = (row) => row.replace(/<[^>]*>/g, "").length + 10 * [...row.matchAll(/<t[dh][ >]/g)].length;
  return Math.max(0, ...[...rows].map(([row]) => wide(row)));
};
const most = (size, of) => {
  const sized = of.map((page) => [size(page), page]);
  return sized.sort(([a, first], [b, second]) => b - a || (first < second ? -1 : 1)).slice(0, 5).map(([, page]) => page);
};
const largest = most((page) => statSync(join(site, page)).size, operators);
const widest = most(width, operators.filter((page) => !largest.includes(page)));

const axe = (name, page, scheme, picture) => test(`axe, ${name}, ${scheme}`, async () => {
  const tab = await open(page, { colorScheme: scheme });
  if (picture) await tab.screenshot({ path: join(pictures, `${picture}-${scheme}.png`) });
  await accessible(tab);
  await close(tab);
});
const phone = (name, page, picture) => test(`no horizontal scroll at 360 pixels, ${name}`, async () => {
  const tab = await open(page, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
  if (picture) await tab.screenshot({ path: join(pictures, `${picture}-phone.png`) });
  const width = await tab.evaluate(() => document.scrollingElement.scrollWidth);
  check(width <= 360, `the page is ${width} pixels wide`);
  await close(tab);
});

for (const [kind, page] of Object.entries(pages)) {
  await axe(kind, page, "light", kind);
  await axe(kind, page, "dark", kind);
  await phone(kind, page, kind);
}
for (const page of [...largest, ...widest].filter((page) => !Object.values(pages).includes(page))) {
  await axe(page, page, "light");
  await phone(page, page);
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
  await accessible(tab, "dialog");
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

const files = readdirSync(site, { recursive: true }).filter((file) => file.endsWith(".html"));
const text = new Map(files.map((file) => [file, readFileSync(join(site, file), "utf8")]));
const values = (html, name) => [...html.matchAll(new RegExp(` ${name}="([^"]*)"`, "g"))].map((found) => found[1]);

await test("links lead to files and headings, pages have at most 200 kB", async () => {
  const anchors = new Map([...text].map(([file, html]) => [file, new Set(values(html, "id"))]));
  const wrong = [];
  for (const [file, html] of text) {
    if (Buffer.byteLength(html) > 200_000) wrong.push(`${file} has ${Buffer.byteLength(html)} bytes`);
    for (const link of [...values(html, "href"), ...values(html, "src")]) {
      if (/^(https|data):/.test(link)) continue;
      const [path, anchor] = link.split("#");
      const target = path === "" ? file : join(dirname(file), path);
      if (!existsSync(join(site, target))) wrong.push(`${file}: ${link} leads nowhere`);
      else if (anchor && !anchors.get(target)?.has(anchor)) wrong.push(`${file}: ${link} has no such heading`);
    }
  }
  check(wrong.length === 0, `${wrong.length} mistakes\n${wrong.slice(0, 10).join("\n")}`);
});

if (existsSync(join(site, "assets/coverage-data.js"))) {
  await test("every example of an operator was executed, and each operator for users has one", async () => {
    // The results of another name of an operator of another library are in that library's site.
    const operators = [...text].filter(([file, html]) => file.startsWith("ops") && !html.includes("an operator of a library that this one builds on"));
    const unexecuted = operators.filter(([, html]) => html.includes('class="soft unexecuted"')).map(([file]) => file);
    check(unexecuted.length === 0, `${unexecuted.length} without output: ${unexecuted.slice(0, 10)}`);
    const without = operators.filter(([, html]) => !html.includes('id="example"') && !html.includes("for formulas only"));
    check(without.length === 0, `${without.length} without an example: ${without.slice(0, 10).map(([file]) => file)}`);
  });

  await test("every operator that returns tensors has their sizes in symbols", async () => {
    const elsewhere = "an operator of a library that this one builds on";
    const silent = [...text].filter(([, html]) => html.includes('class="soft unsymbolic"') && !html.includes(elsewhere)).map(([file]) => file);
    check(silent.length === 0, `${silent.length} without sizes in symbols: ${silent.slice(0, 10)}`);
  });
}

// A folder of results with the lines of the timing program, which `scripts/site.sh` tells by this variable.
if (process.env.OPSMITH_SITE_TIMED) {
  await test("pages have measured speed", async () => {
    const timed = [...text].filter(([file, html]) => file.startsWith("ops") && html.includes('id="speed"'));
    check(timed.length > 0, "no page has measured speed, although times were recorded");
  });
}

await test("no request to a network, no error of a script", async () => {
  check(requests.length === 0, requests.join("\n"));
  check(errors.length === 0, errors.join("\n"));
});

console.log(`screenshots in ${pictures}`);
await finish();
