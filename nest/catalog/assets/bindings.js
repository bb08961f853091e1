// Every parameter with its tensor, fetched once somebody looks for one.
(() => {
  "use strict";

  const box = document.getElementById("nest-bindings");
  if (!box) return;
  const most = 200; // rows that are drawn; after that a narrower search says more
  const input = box.querySelector("input");
  const said = box.querySelector("[role=status]");
  const list = box.querySelector(".nest-scroll");
  const body = box.querySelector("tbody");
  let rows = null;

  async function load() {
    if (rows) return;
    said.textContent = "Loading";
    const answer = await fetch(box.dataset.source);
    if (!answer.ok) throw new Error(String(answer.status));
    rows = await answer.json();
  }

  function cell(text, more) {
    const made = document.createElement("td");
    const shown = document.createElement("code");
    shown.textContent = text;
    made.append(shown);
    if (more) made.append(` ${more}`);
    return made;
  }

  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? rows.filter((row) => words.every((w) => row.join(" ").toLowerCase().includes(w))) : [];
    body.replaceChildren(
      ...found.slice(0, most).map(([path, shape, tensor, stored]) => {
        const row = document.createElement("tr");
        row.append(cell(path), cell(tensor), cell(shape, stored && stored !== shape ? `stored as ${stored}` : ""));
        return row;
      }),
    );
    list.hidden = found.length === 0;
    const more = found.length > most ? `; the first ${most} are shown` : "";
    said.textContent = words.length ? `${found.length} of ${rows.length} parameters${more}` : `${rows.length} parameters`;
  }

  async function search() {
    try {
      await load();
      show();
    } catch {
      said.textContent = "bindings.json could not be loaded; the rules below say the same in short.";
    }
  }

  input.addEventListener("input", search);
  input.addEventListener("focus", search, { once: true });
  box.hidden = false;
})();
