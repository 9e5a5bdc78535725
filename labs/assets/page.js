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

// A4 between the margins that page.css sets.
const PAPER_PX = 680;

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
    fitPaper(view);
    (chart.parentElement.querySelector("figcaption") ?? chart.parentElement).append(copyButton(source));
    return true;
  } catch (error) {
    chart.classList.add("failed");
    chart.textContent = `This chart could not be drawn: ${error.message}`;
    return false;
  }
}

// Paper is narrower than most screens: a chart shrunk to it would have letters too small to read,
// so it is laid out again for the width of a page; vega has done that before the browser goes on.
function fitPaper(view) {
  let screenWidth = null;
  addEventListener("beforeprint", () => {
    screenWidth ??= view.signal("width");
    view.signal("width", Math.min(screenWidth, PAPER_PX)).run();
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

// A table that says which column to filter by can be sorted by every column, and filtered by that one.
function enhance(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const text = (row, column) => row.cells[column]?.textContent ?? "";
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = cell.textContent;
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => text(a, column).localeCompare(text(b, column), "en", { numeric: true }) * (down ? -1 : 1));
      body.append(...rows);
    });
  });
  const by = Number(table.dataset.filter);
  const label = document.createElement("label");
  const choice = document.createElement("select");
  label.className = "filter";
  label.append(`${table.tHead.rows[0].cells[by].textContent}: `, choice);
  for (const value of ["all", ...new Set(rows.map((row) => text(row, by)))]) choice.add(new Option(value, value));
  choice.addEventListener("change", () => {
    for (const row of rows) row.hidden = choice.value !== "all" && text(row, by) !== choice.value;
  });
  table.before(label);
}

async function main() {
  document.querySelectorAll("table[data-filter]").forEach(enhance);
  const charts = [...document.querySelectorAll(".chart[data-spec]")];
  const drawn = await Promise.all(charts.map(draw));
  document.documentElement.dataset.charts = drawn.every(Boolean) ? "drawn" : "failed";
}

main();
