// The table of coverage: filters by operator, backend, dtype, check and outcome, and sorts by each column.
"use strict";
{
  const { backends, dtypes, checks, rows } = window.opsmithCoverage;
  const root = document.body.dataset.root;
  const form = document.querySelector(".filters"), table = document.querySelector(".coverage");
  const count = document.querySelector(".count");
  const fill = (name, all, items) => form.elements[name].append(
    new Option(all, ""), ...items.map((item, index) => new Option(item, index)));
  fill("backend", "all", backends);
  fill("dtype", "all", dtypes);
  fill("check", "all", checks);

  // The outcomes of a check: its letters, of one dtype if one is chosen.
  const letters = (row, check, dtype) => {
    const all = row[3][check] ?? "";
    return dtype === "" ? all : all[dtype] ?? ".";
  };
  const tally = (text) => {
    const passed = text.split("p").length - 1, failed = text.split("f").length - 1, skipped = text.split("s").length - 1;
    return { passed, failed, skipped, tried: passed + failed };
  };
  const share = (text) => {
    const { passed, tried, skipped } = tally(text);
    return tried ? passed / tried + passed / 1000 : skipped ? -1 : -2;
  };

  let sort = { column: "operator", down: false };
  const shown = () => (form.elements.check.value === "" ? checks.map((_, index) => index) : [Number(form.elements.check.value)]);

  const head = () => {
    const line = document.createElement("tr");
    const columns = [["operator", "operator"], ["backend", "backend"], ...shown().map((check) => [check, checks[check]])];
    for (const [column, title] of columns) {
      const cell = document.createElement("th"), button = document.createElement("button");
      cell.scope = "col";
      const sorted = sort.column === column;
      cell.setAttribute("aria-sort", sorted ? (sort.down ? "descending" : "ascending") : "none");
      button.type = "button"; button.textContent = title;
      button.addEventListener("click", () => {
        sort = { column, down: sorted ? !sort.down : typeof column === "number" };
        draw();
        [...table.querySelectorAll("thead button")].find((other) => other.textContent === title)?.focus();
      });
      cell.append(button); line.append(cell);
    }
    table.tHead.replaceChildren(line);
  };

  const cell = (text) => {
    const element = document.createElement("td");
    const { passed, failed, skipped, tried } = tally(text);
    if (tried) { element.textContent = `${passed}/${tried}`; element.className = failed ? "fail" : "pass"; }
    else if (skipped) { element.textContent = "left out"; element.className = "skip"; }
    else { element.textContent = "·"; element.className = "none"; }
    const say = (number, what) => (number ? [`${number} ${what}`] : []);
    element.title = [...say(passed, "passed"), ...say(failed, "failed"), ...say(skipped, "left out")].join(", ") || "not tried";
    return element;
  };

  const draw = () => {
    const text = form.elements.text.value.trim().toLowerCase(), outcome = form.elements.outcome.value;
    const backend = form.elements.backend.value, dtype = form.elements.dtype.value, columns = shown();
    const has = (row) => columns.some((check) => {
      const found = letters(row, check, dtype);
      return outcome === "." ? !/[pfs]/.test(found) : found.includes(outcome);
    });
    const chosen = rows.filter((row) => row[0].toLowerCase().includes(text)
      && (backend === "" || row[2] === Number(backend)) && (outcome === "" || has(row)));
    const key = {
      operator: (row) => row[0].toLowerCase(), backend: (row) => row[2],
    }[sort.column] ?? ((row) => share(letters(row, sort.column, dtype)));
    const keyed = chosen.map((row) => [key(row), row]);
    keyed.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x[0] < y[0] ? -1 : 1) * (sort.down ? -1 : 1));
    head();
    table.tBodies[0].replaceChildren(...keyed.map(([, row]) => {
      const line = document.createElement("tr");
      const name = document.createElement("th"), link = document.createElement("a"), where = document.createElement("td");
      name.scope = "row"; link.href = root + row[1]; link.textContent = row[0]; name.append(link);
      where.textContent = backends[row[2]] ?? "–";
      line.append(name, where, ...columns.map((check) => cell(letters(row, check, dtype))));
      return line;
    }));
    count.textContent = `${chosen.length} of ${rows.length} rows`;
  };
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  draw();
}
