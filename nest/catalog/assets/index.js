// The index: filters, order and view. The page's address holds the choice, so that a link keeps it and "back" returns to it.
(() => {
  "use strict";

  const form = document.getElementById("nest-controls");
  const cards = document.getElementById("nest-cards");
  const table = document.getElementById("nest-table");
  const count = document.getElementById("nest-count");
  const none = document.getElementById("nest-none");
  if (!form || !cards || !table) return;

  const body = table.querySelector("tbody");
  // What is known of a model stands on its row; a card has its name.
  const facts = new Map([...body.children].map((row, place) => [row.dataset.name, { ...row.dataset, place }]));
  const of = (item) => facts.get(item.dataset.name);
  const fields = ["find", "task", "family", "licence", "size", "backend"];
  const numeric = new Set(["parameters", "size", "cpu", "gpu"]);
  const keys = new Set([...table.querySelectorAll("button[data-sort]")].map((button) => button.dataset.sort));
  const units = { "": 1, kB: 1e3, MB: 1e6, GB: 1e9 };

  function bytes(text) {
    const found = /^([\d.]+)\s*(kB|MB|GB)?$/.exec(text);
    return found ? Number(found[1]) * units[found[2] || ""] : NaN; // nothing is smaller than what is no size
  }

  function matches(own, wanted) {
    const words = (wanted.find || "").toLowerCase().split(/\s+/).filter(Boolean);
    return (
      words.every((word) => own.words.includes(word)) &&
      (!wanted.task || own.task.split(" ").includes(wanted.task)) &&
      (!wanted.family || own.family === wanted.family) &&
      (!wanted.licence || own.licence === wanted.licence) &&
      (!wanted.backend || (own.backend || "").split(" ").includes(wanted.backend)) &&
      (!wanted.size || (own.size !== undefined && Number(own.size) <= bytes(wanted.size)))
    );
  }

  function compare(key, descending) {
    const sign = descending ? -1 : 1;
    return (a, b) => {
      const [left, right] = [of(a)[key], of(b)[key]];
      // What has no value comes last in either order.
      if (!left || !right) return (left ? 0 : 1) - (right ? 0 : 1);
      const order = numeric.has(key) ? Number(left) - Number(right) : left.localeCompare(right);
      return sign * order;
    };
  }

  function read() {
    const address = new URLSearchParams(location.search);
    const found = Object.fromEntries([...fields, "sort", "view"].map((name) => [name, address.get(name) || ""]));
    return keys.has(found.sort.replace(/^-/, "")) ? found : { ...found, sort: "" };
  }

  function write(wanted) {
    const address = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    const text = address.toString();
    history.replaceState(null, "", text ? `?${text}` : location.pathname);
  }

  function fill(wanted) {
    for (const name of fields) {
      const field = form.elements[name];
      field.value = wanted[name];
      if (wanted[name] && field.value !== wanted[name]) {
        // A value of an old link that no model has any more: keep it, and let the page say that nothing matches.
        field.add(new Option(wanted[name], wanted[name], true, true));
      }
    }
    form.elements.view.value = wanted.view === "table" ? "table" : "cards";
  }

  function order(wanted) {
    const key = wanted.sort.replace(/^-/, "");
    const by = key ? compare(key, wanted.sort.startsWith("-")) : (a, b) => of(a).place - of(b).place;
    for (const list of [cards, body]) list.append(...[...list.children].sort(by));
    for (const button of table.querySelectorAll("button[data-sort]")) {
      const own = button.dataset.sort === key;
      const direction = wanted.sort.startsWith("-") ? "descending" : "ascending";
      button.closest("th").setAttribute("aria-sort", own ? direction : "none");
    }
  }

  function show(wanted) {
    for (const item of [...cards.children, ...body.children]) item.hidden = !matches(of(item), wanted);
    const shown = [...body.children].filter((row) => !row.hidden).length;
    order(wanted);
    cards.hidden = wanted.view === "table";
    table.hidden = wanted.view !== "table";
    none.hidden = shown > 0;
    count.textContent = shown === 1 ? "1 model" : `${shown} models`;
    const reset = document.getElementById("nest-reset");
    reset.hidden = !fields.some((name) => wanted[name]);
  }

  function chosen() {
    const wanted = Object.fromEntries(fields.map((name) => [name, form.elements[name].value.trim()]));
    return { ...wanted, sort: read().sort, view: form.elements.view.value === "table" ? "table" : "" };
  }

  function update(wanted) {
    write(wanted);
    show(wanted);
  }

  form.addEventListener("input", () => update(chosen()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    const { sort, view } = read();
    const wanted = { ...Object.fromEntries(fields.map((name) => [name, ""])), sort, view };
    fill(wanted);
    update(wanted);
  });
  table.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort]");
    if (!button) return;
    const key = button.dataset.sort;
    const before = read().sort;
    // Fast is what people look for first; everything else begins with the least.
    const first = key === "cpu" || key === "gpu" ? `-${key}` : key;
    const second = first.startsWith("-") ? key : `-${key}`;
    update({ ...chosen(), sort: before === first ? second : before === second ? "" : first });
  });
  window.addEventListener("pageshow", () => {
    fill(read());
    show(read());
  });

  fill(read());
  show(read());
})();
