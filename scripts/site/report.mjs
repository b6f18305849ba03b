// Tests of a profile's report in headless Chromium, from its file. In: the report, the folder for screenshots. Out: a line for each
// test; status 1 if one fails.
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { accessible, check, close, errors, finish, open, requests, test } from "./browser.mjs";

const [report, pictures] = process.argv.slice(2).map((path) => resolve(path));
mkdirSync(pictures, { recursive: true });

for (const scheme of ["light", "dark"]) {
  await test(`axe, report, ${scheme}`, async () => {
    const tab = await open(report, { colorScheme: scheme });
    await tab.screenshot({ path: join(pictures, `report-${scheme}.png`), fullPage: true });
    await accessible(tab);
    await close(tab);
  });
  await test(`names on boxes are dark, ${scheme}`, async () => {
    const tab = await open(report, { colorScheme: scheme });
    const fills = await tab.evaluate(() => [...document.querySelectorAll(".flame text, .label")].map((text) => getComputedStyle(text).fill));
    check(fills.length > 4, `${fills.length} boxes have names`);
    check(fills.every((fill) => fill === "rgb(17, 17, 17)"), `names on light boxes are ${[...new Set(fills)]}`);
    await close(tab);
  });
}

await test("a narrow window scrolls pictures and tables, not the page", async () => {
  const tab = await open(report, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
  await tab.screenshot({ path: join(pictures, "report-phone.png"), fullPage: true });
  const [page, ...drawn] = await tab.evaluate(() => [document.scrollingElement.scrollWidth, ...[...document.querySelectorAll(".chart")].map((chart) => chart.clientWidth)]);
  check(page <= 360, `the page is ${page} pixels wide`);
  check(drawn.length >= 4 && drawn.every((width) => width >= 700), `pictures are ${drawn} pixels wide`);
  await close(tab);
});

await test("the table filters and sorts both ways, the tree opens", async () => {
  const tab = await open(report);
  const names = () => tab.locator("#operators tbody tr:visible td.name").allTextContents();
  const all = await names();
  await tab.fill("#filter", all[0]);
  check((await names()).every((name) => name.includes(all[0])) && (await names()).length < all.length, "the filter shows other rows");
  await tab.fill("#filter", "");
  const times = () => tab.locator("#operators tbody tr td:nth-child(4)").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  await tab.click("#operators th:nth-child(4) button");
  const down = await times();
  check(down.every((time, row) => row === 0 || time <= down[row - 1]), `${down}`);
  await tab.click("#operators th:nth-child(4) button");
  const up = await times();
  check(up.every((time, row) => row === 0 || time >= up[row - 1]), `${up}`);
  const shown = () => tab.locator("main summary:visible, main .leaf:visible").count();
  const before = await shown();
  await tab.locator("main details:not([open]) > summary").first().click();
  check((await shown()) > before, "the tree does not open");
  await close(tab);
});

await test("kernels have their backend and their line", async () => {
  const tab = await open(report);
  const kernels = await tab.locator("main details .soft, main .leaf .soft").evaluateAll((texts) => texts.map((text) => text.textContent).filter((text) => text.startsWith("kernel of ")));
  check(kernels.length > 2, `${kernels.length} kernels in the tree`);
  const without = kernels.filter((text) => !/^kernel of cpu, (kernels|ops)[^ ]*:\d+$|^kernel of cpu, ops\.yaml:\d+$/.test(text));
  check(without.length === 0, `without a line: ${without}`);
  await close(tab);
});

await test("the report has all of its parts, and no request to a network, no error of a script", async () => {
  const tab = await open(report);
  const parts = await tab.locator("h2").allTextContents();
  check(`${parts}` === "Operators,Roofline,Flame graph,Timeline,Memory,Call tree", `${parts}`);
  check((await tab.locator("svg circle").count()) > 2, "the roofline has no kernels");
  check(requests.length === 0 && errors.length === 0, [...requests, ...errors].join("\n"));
  await close(tab);
});

console.log(`screenshots in ${pictures}`);
await finish();
