// A field that shows the rows with all of its words, for every table that can be filtered.
for (const table of document.querySelectorAll("table[data-filter]")) {
  const label = document.createElement("label");
  const field = document.createElement("input");
  field.type = "search";
  label.className = "filter";
  label.append("search: ", field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.style.display = words.every((word) => text.includes(word)) ? "" : "none";
    }
  });
  table.before(label);
}
