// Sorts the table by a clicked head, and shows the rows that contain what is typed.
const table = document.querySelector("#operators");
const body = table.tBodies[0];
const value = (row, column) => { const cell = row.cells[column]; return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value); };
table.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
  const head = button.parentElement, down = head.getAttribute("aria-sort") !== "descending";
  table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...body.rows].sort((a, b) => { const x = value(a, column), y = value(b, column); return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
  body.append(...rows);
}));
document.querySelector("#filter").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});
