// Draws every chart of the page from the Vega-Lite spec that stands beside it.
//
// The page holds <div class="chart" data-spec="ID"> and <script type="application/json" id="ID">.
// When all are done, <html data-charts> says "drawn", or "failed" when one of them is not there.

import vegaEmbed from "vega-embed";

// Colours are the page's own CSS variables, so that a chart follows light, dark and print by CSS
// alone: nothing is drawn again, and a print never catches a chart halfway.
const theme = {
  background: "transparent",
  font: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif',
  view: { stroke: null },
  axis: {
    domainColor: "var(--line-strong)",
    gridColor: "var(--line)",
    tickColor: "var(--line-strong)",
    labelColor: "var(--muted)",
    titleColor: "var(--muted)",
    labelFontSize: 12,
    labelSeparation: 6,
    titleFontSize: 12,
    titleFontWeight: "normal",
    titlePadding: 8,
  },
  axisY: { labelColor: "var(--ink)" },
  legend: {
    labelColor: "var(--ink)",
    titleColor: "var(--muted)",
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: "normal",
    labelLimit: 260,
  },
  text: { color: "var(--ink)" },
};

// A4 between the margins that page.css sets, and one of two columns on it.
const PAPER_PX = 680;
const PAPER_COLUMN_PX = 330;

const options = {
  mode: "vega-lite",
  renderer: "svg",
  actions: false,
  defaultStyle: false,
  config: theme,
  // Expressions are interpreted, not compiled: the page's policy forbids eval.
  ast: true,
  tooltip: { disableDefaultStyle: true, offsetX: 14, offsetY: 14 },
};

async function draw(chart) {
  const source = document.getElementById(chart.dataset.spec);
  try {
    const { view } = await vegaEmbed(chart, JSON.parse(source.textContent), options);
    fitPaper(view, chart.closest(".panel, .finding") ? PAPER_COLUMN_PX : PAPER_PX);
    if (!chart.closest(".panel, .finding")) {
      (chart.parentElement.querySelector("figcaption") ?? chart.parentElement).append(copyButton(source));
    }
    return true;
  } catch (error) {
    chart.classList.add("failed");
    chart.textContent = `This chart could not be drawn: ${error.message}`;
    return false;
  }
}

// Paper is narrower than most screens: a chart shrunk to it would have letters too small to read,
// so it is laid out again for the width of a page; vega has done that before the browser goes on.
function fitPaper(view, paperPx) {
  let screenWidth = null;
  addEventListener("beforeprint", () => {
    screenWidth ??= view.signal("width");
    view.signal("width", Math.min(screenWidth, paperPx)).run();
  });
  addEventListener("afterprint", () => {
    if (screenWidth !== null) view.signal("width", screenWidth).run();
    screenWidth = null;
  });
}

// The spec as it stands in the page, indented, for a notebook or an editor.
function copyButton(source) {
  const label = "Copy chart as Vega-Lite";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = label;
  button.addEventListener("click", async () => {
    const text = JSON.stringify(JSON.parse(source.textContent), null, 2);
    const copied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "This browser does not allow copying";
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}

// What is folded stands open in the HTML, so that it is there without this script; and paper cannot be clicked.
function fold() {
  const folded = [...document.querySelectorAll("details.fold")];
  for (const details of folded) details.open = false;
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folded.filter((details) => !details.open);
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

// The contents are a side bar where there is room for one, and a menu that closes behind a choice where there is none.
function contents() {
  const details = document.querySelector(".contents details");
  if (!details) return;
  const wide = matchMedia("(min-width: 64rem)");
  const fit = () => (details.open = wide.matches);
  fit();
  wide.addEventListener("change", fit);
  details.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) details.open = false;
  });

  // The entry of what is being read: the last heading above the middle of the screen.
  const links = [...details.querySelectorAll("a")];
  const headings = links.map((link) => document.getElementById(link.hash.slice(1)));
  const mark = () => {
    const read = headings.findLastIndex((heading) => heading.getBoundingClientRect().top < innerHeight / 2);
    links.forEach((link, index) => link.toggleAttribute("aria-current", index === Math.max(read, 0)));
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
}

// Numbers by their size, texts as people sort them, and what has no value last.
function order(a, b, down) {
  const [x, y] = [Number.parseFloat(a), Number.parseFloat(b)];
  const numbers = !Number.isNaN(x) && !Number.isNaN(y);
  const empty = (text) => text === "" || text === "–";
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  return (numbers && x !== y ? x - y : a.localeCompare(b, "en", { numeric: true })) * (down ? -1 : 1);
}

// Every table without groups can be sorted by each of its columns.
function sortable(table) {
  if (table.tBodies.length !== 1 || table.tBodies[0].rows.length < 3) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const text = (row, column) => row.cells[column]?.textContent ?? "";
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = cell.textContent;
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => order(text(a, column), text(b, column), down));
      body.append(...rows);
    });
  });
}

// A table that says which column to filter by shows the rows of one text there, and those in which all words stand. A
// row belongs to its group, whose name is searched too; a group of which nothing is left is gone.
function filterable(table) {
  const by = Number(table.dataset.filter);
  const rows = [...table.querySelectorAll("tbody tr:not(.group)")];
  const label = table.tHead.rows[0].cells[by].textContent;
  const choice = document.createElement("select");
  for (const value of ["all", ...new Set(rows.map((row) => row.cells[by].textContent))]) choice.add(new Option(value, value));
  const word = document.createElement("input");
  word.type = "search";
  word.placeholder = "a library or a function";
  const bar = document.createElement("div");
  bar.className = "filter";
  for (const [text, field] of [["Search", word], [label, choice]]) {
    const box = document.createElement("label");
    box.append(`${text} `, field);
    bar.append(box);
  }
  const apply = () => {
    const wanted = word.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const body of table.tBodies) {
      const head = body.querySelector("tr.group");
      const name = head?.textContent.toLowerCase() ?? "";
      const named = head !== null && wanted.every((part) => name.includes(part));
      let left = 0;
      for (const row of body.rows) {
        if (row === head) continue;
        const text = `${name} ${row.textContent.toLowerCase()}`;
        const found = wanted.every((part) => text.includes(part));
        row.hidden = !found || (choice.value !== "all" && row.cells[by].textContent !== choice.value);
        if (!row.hidden) left++;
      }
      const untouched = wanted.length === 0 && choice.value === "all";
      if (head) head.hidden = left === 0 && !(untouched || (named && choice.value === "all"));
    }
  };
  choice.addEventListener("change", apply);
  word.addEventListener("input", apply);
  table.before(bar);
}

async function main() {
  fold();
  contents();
  document.querySelectorAll("table").forEach(sortable);
  document.querySelectorAll("table[data-filter]").forEach(filterable);
  const charts = [...document.querySelectorAll(".chart[data-spec]")];
  const drawn = await Promise.all(charts.map(draw));
  // What stands above a link's target has its height only now.
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
  document.documentElement.dataset.charts = drawn.every(Boolean) ? "drawn" : "failed";
}

main();
