// Opens a report in headless Chromium and checks what a reader would see.
//
//     node test/labs/browser/report.mjs REPORT.html SCREENSHOT_FOLDER [charts]
//
// With "charts" it looks at the charts alone, on a wide screen and on a phone.
// One line a check, then "N passed, N failed"; the exit status is 1 when a check failed.

import { mkdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../../../labs/assets/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
// A machine that is busy with other tests needs its time.
const PATIENCE_MS = 600_000;

const [report, folder, part] = process.argv.slice(2);
if (!report || !folder) {
  console.error("usage: node report.mjs REPORT.html SCREENSHOT_FOLDER");
  process.exit(2);
}
const url = pathToFileURL(resolve(report)).href;
mkdirSync(folder, { recursive: true });

let passed = 0;
let failed = 0;

function check(what, holds, detail = "") {
  holds ? passed++ : failed++;
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${holds || !detail ? "" : `: ${detail}`}`);
}

// A page that has drawn, and what went wrong on the way there and later.
async function open(browser, { viewport, colorScheme, touch = false, script = true }) {
  const context = await browser.newContext({
    viewport,
    colorScheme,
    hasTouch: touch,
    isMobile: touch,
    deviceScaleFactor: touch ? 2 : 1,
    javaScriptEnabled: script,
    offline: true,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const trouble = [];
  const requests = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) trouble.push(message.text());
  });
  page.on("pageerror", (error) => trouble.push(error.message));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) requests.push(request.url());
  });
  await page.goto(url);
  if (!script) return { context, page, trouble, requests };
  await page.waitForSelector('html[data-charts="drawn"], html[data-charts="failed"]', {
    state: "attached",
    timeout: PATIENCE_MS,
  });
  return { context, page, trouble, requests };
}

// Marks are what stands for data: not axes, legends, titles, or the invisible hover layer.
const countMarks = (chart) => {
  const marks = chart.querySelectorAll("svg .role-mark path, svg .role-mark text, svg .role-mark line");
  return [...marks].filter((mark) => {
    const box = mark.getBBox();
    const style = getComputedStyle(mark);
    const seen = style.opacity !== "0" && (style.fill !== "none" || style.stroke !== "none");
    const clear = /transparent|rgba\(0, 0, 0, 0\)/;
    const inked = !clear.test(style.fill) || (!clear.test(style.stroke) && style.stroke !== "none");
    return seen && inked && box.width + box.height > 0;
  }).length;
};

const inside = (chart) => {
  const svg = chart.querySelector("svg");
  return svg !== null && svg.getBoundingClientRect().right <= chart.getBoundingClientRect().right + 1;
};

// Letters that the drawing's edge cuts off are as lost as a chart that is not there.
const cutOff = (chart) => {
  const edge = chart.querySelector("svg")?.getBoundingClientRect();
  if (!edge) return "everything";
  const texts = [...chart.querySelectorAll("svg text")].filter((text) => getComputedStyle(text).opacity !== "0");
  const outside = texts.filter((text) => {
    const box = text.getBoundingClientRect();
    const beside = box.left < edge.left - 1 || box.right > edge.right + 1;
    return box.width > 0 && (beside || box.top < edge.top - 1 || box.bottom > edge.bottom + 1);
  });
  return outside.map((text) => text.textContent).join(", ");
};

// The widths of the first wide chart on paper and afterwards. A real print lets pending promises run between
// the event and the layout, an event sent by hand does not.
const printWidths = async () => {
  const width = () => Number(document.querySelector("figure > .chart svg").getAttribute("width"));
  const settled = () => new Promise((done) => setTimeout(done));
  dispatchEvent(new Event("beforeprint"));
  await settled();
  const onPaper = width();
  dispatchEvent(new Event("afterprint"));
  await settled();
  return { onPaper, onScreen: width() };
};

// What would be cut off at the right edge of each table, in pixels.
const tooWide = () =>
  [...document.querySelectorAll(".scroll")]
    .filter((place) => place.scrollWidth > place.clientWidth)
    .map((place) => `${place.getAttribute("aria-label")}: ${place.scrollWidth - place.clientWidth} px`);

const setFolds = (open) => document.querySelectorAll("details.fold").forEach((details) => (details.open = open));
const openFolds = () => document.querySelectorAll("details.fold[open]").length;

const overflow = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
const boxesInHeads = () =>
  [...document.querySelectorAll("thead button")].filter((button) => button.getClientRects().length > 0).length;

const paper = () => getComputedStyle(document.documentElement).backgroundColor;
const labelInk = () => getComputedStyle(document.querySelector(".chart svg .role-axis-label text")).fill;

async function checkCharts(name, page) {
  const charts = await page.$$(".chart");
  check(`${name}: the page has charts`, charts.length > 0);
  for (const chart of charts) {
    const id = await chart.getAttribute("data-spec");
    const marks = await chart.evaluate(countMarks);
    check(`${name}: ${id} has drawn marks (${marks})`, marks > 0, await chart.innerText());
    check(`${name}: ${id} fits its place`, await chart.evaluate(inside));
    const lost = await chart.evaluate(cutOff);
    check(`${name}: ${id} shows all of its text`, lost === "", lost);
  }
}

function checkQuiet(name, { trouble, requests }) {
  check(`${name}: no error or warning in the console`, trouble.length === 0, trouble.join(" | "));
  check(`${name}: the network was not asked`, requests.length === 0, requests.join(" "));
}

// Points at each chart: its middle where lines are drawn, else its largest mark.
async function checkHover(page) {
  for (const chart of await page.$$(".chart")) {
    const id = await chart.getAttribute("data-spec");
    await page.mouse.move(0, 0);
    await chart.scrollIntoViewIfNeeded();
    const plot = await chart.$("svg .role-frame.root > g > path.background, svg .role-frame path.background");
    const box = await plot?.boundingBox();
    if (!box) {
      check(`hover: ${id} has a plot to point at`, false);
      continue;
    }
    // Lines have their nearest point anywhere; bars and dots are pointed at themselves.
    const marks = await chart.$$eval("svg .role-mark.mark-rect path, svg .role-mark.mark-symbol path", (all) =>
      all.map((mark) => mark.getBoundingClientRect()).map((r) => ({ x: r.x, y: r.y, width: r.width, height: r.height })));
    const inPlot = marks.filter((mark) => mark.x >= box.x && mark.x + mark.width <= box.x + box.width);
    const target = inPlot.sort((a, b) => b.width * b.height - a.width * a.height)[0] ?? box;
    const nearest = (await chart.$$("svg .role-mark.mark-line path")).length > 0 || inPlot.length === 0;
    const { x, y, width, height } = nearest ? box : target;
    await page.mouse.move(x + width * 0.48, y + height * 0.5);
    await page.mouse.move(x + width * 0.5, y + height * 0.5);
    const tooltip = page.locator("#vg-tooltip-element.visible");
    const text = await tooltip.innerText({ timeout: 20_000 }).catch(() => "nothing shown");
    const pairs = text.split("\n").filter((line) => /\S\t\s*\S/.test(line));
    check(`hover: ${id} shows names and values`, pairs.length >= 2 && pairs.some((line) => /\t.*\d/.test(line)), text);
  }
}

// A click on a name in the legend of all methods leaves that line alone at full strength.
async function checkLegend(page) {
  const chart = page.locator('[data-spec="latency-percentiles-spec"]');
  const faint = () =>
    chart.evaluate((element) => {
      const lines = [...element.querySelectorAll("svg .mark-line path")];
      return lines.filter((line) => Number(getComputedStyle(line).opacity) < 0.5).length;
    });
  const lines = await chart.evaluate((element) => element.querySelectorAll("svg .mark-line path").length);
  const name = chart.locator("svg .role-legend-label text").first();
  // Redrawing takes a frame or more; ask until it is so, or twenty seconds are over.
  const becomes = async (count) => {
    for (const end = Date.now() + 20_000; (await faint()) !== count && Date.now() < end; ) await page.waitForTimeout(20);
    return faint();
  };
  await name.click();
  let now = await becomes(lines - 1);
  check("legend: a click brings out one line", now === lines - 1, `${now} of ${lines} are faint`);
  await page.screenshot({ path: join(folder, "legend.png") });
  await name.dblclick();
  now = await becomes(0);
  check("legend: a double click brings all back", now === 0, `${now} of ${lines} are faint`);
}

// What a reader sees without scrolling are all questions with their answers.
async function checkFirstScreen(page) {
  const bottoms = await page.$$eval(".answer", (answers) => answers.map((answer) => answer.getBoundingClientRect().bottom));
  const lowest = Math.max(...bottoms);
  check("first screen: all answers", bottoms.length > 0 && lowest <= DESKTOP.height, `${lowest}`);
}

// Tables are folded, one click away, open on paper, and as wide as their place.
async function checkFolds(page) {
  check("folds: all are closed", (await page.evaluate(openFolds)) === 0);
  await page.locator("details.fold > summary").first().click();
  check("folds: a click opens one", (await page.evaluate(openFolds)) === 1);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const count = await page.locator("details.fold").count();
  check("folds: paper has all", (await page.evaluate(openFolds)) === count);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  check("folds: and the screen what it had", (await page.evaluate(openFolds)) === 1);
  await page.evaluate(setFolds, true);
  const wide = await page.evaluate(tooWide);
  check("folds: every table has room", wide.length === 0, wide.join("; "));
  check("folds: no horizontal scroll of the page", (await page.evaluate(overflow)) <= 0);
}

// A table sorts by a column, there and back, and one with a filter shows the rows that are asked for.
async function checkTables(page) {
  const sorted = page.locator("table:has(button.sort)").first();
  const cells = () => sorted.locator("tbody tr > :nth-child(5)").allInnerTexts();
  const button = sorted.locator("button.sort").nth(4);
  const numbers = async () => (await cells()).map(Number.parseFloat).filter((number) => !Number.isNaN(number));
  const ordered = (list, sign) => list.every((number, i) => i === 0 || sign * (number - list[i - 1]) >= 0);
  await button.click();
  check("table: a column sorts by size", ordered(await numbers(), 1), (await cells()).join(" "));
  await button.click();
  check("table: and the other way", ordered(await numbers(), -1), (await cells()).join(" "));

  const table = page.locator("table[data-filter]").first();
  const rows = () => table.locator("tbody tr:not(.group):visible").count();
  const groups = () => table.locator("tr.group:visible").count();
  const all = [await rows(), await groups()];
  const choice = page.locator(".filter select").first();
  await choice.selectOption({ index: 1 });
  check("table: the filter leaves some rows out", (await rows()) > 0 && (await rows()) < all[0]);
  await choice.selectOption({ index: 0 });
  const search = page.locator(".filter input").first();
  await search.fill(await table.locator("tr.group .code").first().innerText());
  check("table: a library is found by its name", (await groups()) === 1 && (await rows()) > 0, `${await groups()}`);
  // A word of the group and one of its rows, in any order.
  const group = await table.locator("tr.group .code").first().innerText();
  const declared = await table.locator("tbody tr:not(.group) th").first().innerText();
  await search.fill(`${declared.split(" ")[0]} ${group}`);
  check("table: all words are found together", (await rows()) > 0 && (await rows()) < all[0], `${await rows()} of ${all[0]}`);
  await search.fill("no such function");
  check("table: nothing is found of what is not there", (await rows()) + (await groups()) === 0);
  await search.fill("");
  check("table: and all comes back", (await rows()) === all[0] && (await groups()) === all[1]);
}

// The contents are a side bar on a wide screen and a menu on a small one, which closes behind a choice.
async function checkMenu(page) {
  const menu = page.locator(".contents details");
  const open = () => menu.evaluate((details) => details.open);
  check("phone: the contents are a closed menu", !(await open()));
  await menu.locator("summary").click();
  check("phone: which opens", await open());
  await menu.locator("a[href='#audit']").click();
  check("phone: and closes behind a choice", !(await open()));
  const top = await page.locator("#audit").evaluate((heading) => heading.getBoundingClientRect().top);
  const bar = await page.locator(".contents").evaluate((nav) => nav.getBoundingClientRect().bottom);
  check("phone: what was chosen stands below the menu", top >= bar && top < PHONE.height / 2, `${top} below ${bar}`);
}

async function lookWide(browser) {
  const light = await open(browser, { viewport: DESKTOP, colorScheme: "light" });
  await checkCharts("desktop", light.page);
  check("desktop: no horizontal scroll of the page", (await light.page.evaluate(overflow)) <= 0);
  await checkHover(light.page);
  checkQuiet("desktop", light);
  return light;
}

async function lookCloser({ page }) {
  await page.screenshot({ path: join(folder, "desktop-light.png"), fullPage: true });
  await page.evaluate(() => scrollTo(0, 0));
  await checkFirstScreen(page);
  check("desktop: the contents are open", await page.locator(".contents a").first().isVisible());
  const lightPaper = await page.evaluate(paper);
  const lightInk = await page.evaluate(labelInk);

  await page.emulateMedia({ colorScheme: "dark" });
  check("dark: the paper changes while the page is open", (await page.evaluate(paper)) !== lightPaper);
  check("dark: the charts' text changes with it", (await page.evaluate(labelInk)) !== lightInk);

  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  check("print: light paper, whatever the screen", (await page.evaluate(paper)) === lightPaper);
  const { onPaper, onScreen } = await page.evaluate(printWidths);
  check("print: charts are laid out for paper, and back", onPaper < 720 && onScreen > 800, `${onPaper}, ${onScreen}`);
  await page.setViewportSize({ width: 690, height: 980 });
  await page.evaluate(setFolds, true);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const wide = await page.evaluate(tooWide);
  check("print: every table fits on paper", wide.length === 0, wide.join("; "));
  // Chromium does not repeat the head of a table on the next page where a box of its own, such as a button's, is in it.
  check("print: heads of tables are without boxes", (await page.evaluate(boxesInHeads)) === 0);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.evaluate(setFolds, false);
  await page.setViewportSize(DESKTOP);
  const pdf = join(folder, "print.pdf");
  await page.pdf({ path: pdf, format: "A4", printBackground: true });
  check("print: a PDF of some size", statSync(pdf).size > 10_000);

  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  await checkLegend(page);
  await checkFolds(page);
  await checkTables(page);
}

async function lookDark(browser) {
  const dark = await open(browser, { viewport: DESKTOP, colorScheme: "dark" });
  await dark.page.screenshot({ path: join(folder, "desktop-dark.png"), fullPage: true });
  await checkCharts("dark", dark.page);
  checkQuiet("dark", dark);
}

async function lookPhone(browser) {
  const phone = await open(browser, { viewport: PHONE, colorScheme: "light", touch: true });
  await phone.page.screenshot({ path: join(folder, "phone.png"), fullPage: true });
  await checkCharts("phone", phone.page);
  const stacked = await phone.page.$$eval(".stack", (tables) => tables.every((table) => table.scrollWidth <= table.parentElement.clientWidth));
  check("phone: tables of sentences fit", stacked);
  check("phone: no horizontal scroll of the page", (await phone.page.evaluate(overflow)) <= 0);
  await checkMenu(phone.page);
  checkQuiet("phone", phone);
}

async function lookWithoutScript(browser) {
  const bare = await open(browser, { viewport: DESKTOP, colorScheme: "light", script: false });
  const tables = bare.page.locator("table");
  const shown = await tables.evaluateAll((all) => all.filter((table) => table.checkVisibility()).length);
  check(`without a script: all ${shown} tables are shown`, shown > 0 && shown === (await tables.count()));
  check("without a script: the contents are", await bare.page.locator(".contents a").first().isVisible());
  check("without a script: charts say where their numbers are", await bare.page.locator("noscript").first().isVisible());
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
try {
  const light = await lookWide(browser);
  if (part !== "charts") {
    await lookCloser(light);
    checkQuiet("desktop, used", light);
    await lookDark(browser);
    await lookWithoutScript(browser);
  }
  await lookPhone(browser);
} catch (error) {
  check("the run came to its end", false, error.message);
} finally {
  await browser.close();
}

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
