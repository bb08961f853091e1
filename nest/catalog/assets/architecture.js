// The Architecture section of an entry's page. The diagram's script comes when somebody is near the picture, the source
// when its part is opened; a link into a folded part opens it.
"use strict";

(() => {
  const asked = new Map(), drawing = new URL("diagram.js", document.currentScript.src);

  /** The data of a page, asked for once. */
  function data(address) {
    if (!asked.has(address)) asked.set(address, fetch(address).then((answer) => (answer.ok ? answer.json() : {})));
    return asked.get(address);
  }

  /** Puts the source in the place of what says where to find it; where it cannot be had, that stays. */
  async function load(folded) {
    const { source, part } = folded.dataset;
    if (!source || folded.dataset.loaded) return;
    try {
      const text = (await data(source))[part];
      if (!text || folded.dataset.loaded) return;
      folded.querySelector(".nest-scroll").innerHTML = text;
      folded.dataset.loaded = "true";
    } catch { /* no network, or a page opened from a file */ }
  }

  /** Opens what the address points into, and shows it. */
  async function unfold() {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch { /* no percents of UTF-8: it names nothing, as it is */ }
    const target = id && document.getElementById(id);
    if (!target) return;
    const after = target.nextElementSibling;
    const folded = target.closest("details.nest-folded") || (after && after.matches("details.nest-folded") ? after : null);
    if (!folded) return;
    folded.open = true;
    await load(folded);
    document.getElementById(id).scrollIntoView();
  }

  /** Without its script the picture stays as it is. */
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    document.head.append(Object.assign(document.createElement("script"), { src: drawing }));
  }, { rootMargin: "800px" });
  document.querySelectorAll("[data-diagram]").forEach((figure) => near.observe(figure));

  for (const folded of document.querySelectorAll("details.nest-folded")) {
    folded.addEventListener("toggle", () => folded.open && load(folded));
    if (folded.open) load(folded);
  }
  window.addEventListener("hashchange", unfold);
  // A link to where the address points already changes no hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) unfold();
  });
  unfold();
})();
