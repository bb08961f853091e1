// The diagram of an entry's page: boxes open and close, entries change places. The page holds a picture already; this
// draws the same elements by the rule of nest/catalog/diagram/geometry.py, from diagram.json beside the page.
"use strict";

(() => {
  const CHAR = 7.25, SMALL = 6.35, LANE = 18, ROW_TO_TYPE = 10, ROW_TO_BOX = 17, SLOT = 7;
  const TYPE_HEIGHT = 18, TRACK = 12, HEAD = 28, PAD = 14, MARGIN = 8;

  const num = (value) => String(Math.round(value * 10) / 10);
  const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  const esc = (text) => String(text).replace(/[&<>"']/g, (found) => ESCAPES[found]);
  const length = (text) => [...text].length;

  /** The texts of a page's data: what is shown of one, and the whole. */
  const shown = (data, number) => [data.texts[number]].flat()[0];
  const whole = (data, number) => [data.texts[number]].flat().at(-1);

  const title = (box) => box.name + (box.times ? ` × ${box.times}` : "");

  function texts(data, view, index) {
    const box = data.graphs[view.graph].boxes[index];
    const note = view.notes[index] === null ? "" : shown(data, view.notes[index]);
    if (box.kind === "plumbing") return [["small", box.name + (note && ` ${note}`)]];
    if (box.kind === "result") return [["small", "result"]];
    const lines = [["name", title(box)]];
    if (box.class) lines.push(["class", box.class]);
    if (note) lines.push(["note", note]);
    return [...lines, ...view.lines[index].map(([kind, text]) => [kind, shown(data, text)])];
  }

  /** A view in pixels from its own corner; `opened` holds the paths of open boxes. */
  function lay(data, number, opened, path = "", inner = false) {
    const view = data.views[number], graph = data.graphs[view.graph];
    const made = { view, graph, insides: {}, boxes: [], types: [], lines: [] };
    const sizes = graph.boxes.map((box, index) => size(data, made, index, opened, path, inner));
    made.labels = graph.wires.map((wire, w) => (wire.name ? `${wire.name}: ` : "") + shown(data, view.types[w]));
    const widths = made.labels.map((label) => length(label) * SMALL + 14);
    const heights = Array(graph.rows).fill(0), lanes = Array(graph.lanes).fill(TRACK);
    graph.boxes.forEach(({ cell: [row, lane] }, b) => {
      heights[row] = Math.max(heights[row], sizes[b][1]);
      lanes[lane] = Math.max(lanes[lane], sizes[b][0]);
    });
    graph.wires.forEach(({ cell: [row, lane] }, w) => {
      heights[row] = Math.max(heights[row], TYPE_HEIGHT);
      lanes[lane] = Math.max(lanes[lane], widths[w]);
    });
    const gaps = graph.gaps.map((slots, row) => (row % 2 ? ROW_TO_TYPE : ROW_TO_BOX) + SLOT * slots);
    const left = sums(lanes, lanes.map(() => LANE)), top = sums(heights, gaps);
    made.width = lanes.length ? left.at(-1) - LANE : 0;
    made.height = heights.length ? top.at(-2) + heights.at(-1) : 0;
    made.boxes = graph.boxes.map(({ cell: [row, lane] }, b) => {
      const [width, height] = sizes[b];
      return rect(left[lane] + (lanes[lane] - width) / 2, top[row] + (heights[row] - height) / 2, width, height);
    });
    made.types = graph.wires.map(({ cell: [row, lane] }, w) =>
      rect(left[lane] + (lanes[lane] - widths[w]) / 2, top[row], widths[w], TYPE_HEIGHT));
    wire(made, left, lanes, heights.map((height, row) => top[row] + height), top);
    return made;
  }

  const rect = (x, y, width, height) => ({ x, y, width, height, middle: x + width / 2, bottom: y + height });

  function sums(sizes, gaps) {
    const found = [0];
    sizes.forEach((size_, i) => found.push(found.at(-1) + size_ + gaps[i]));
    return found;
  }

  function size(data, made, index, opened, path, inner) {
    const box = made.graph.boxes[index], inside = made.view.insides[index];
    const lines = texts(data, made.view, index);
    if (box.kind === "result" && inner) return [12, 0];
    if (box.kind === "plumbing" || box.kind === "result") return [length(lines[0][1]) * SMALL + 20, 20];
    if (inside !== undefined && opened.has(path + index)) {
      const open = (made.insides[index] = lay(data, inside, opened, `${path}${index}.`, true));
      const head = length(lines[0][1]) * CHAR + length(box.class || "") * SMALL + 76;
      return [Math.max(open.width + 2 * PAD, head), HEAD + open.height];
    }
    const width = Math.max(...lines.map(([style, text]) => length(text) * (style === "name" ? CHAR : SMALL)));
    return [width + 24 + (inside === undefined ? 0 : 34), 28 + 14 * (lines.length - 1)];
  }

  function spread(place, port, ports) {
    const step = ports > 1 ? Math.min(22, (place.width - 20) / (ports - 1)) : 0;
    return place.middle + (port - (ports - 1) / 2) * step;
  }

  const shift = (made, index) => (made.boxes[index].width - made.insides[index].width) / 2;

  function into(made, index, port) {
    const box = made.graph.boxes[index], inside = made.insides[index];
    if (inside) return made.boxes[index].x + shift(made, index) + inside.types[box.args[port]].middle;
    return spread(made.boxes[index], box.ports[port], box.args.length);
  }

  function outOf(made, index, port) {
    const inside = made.insides[index];
    if (!inside) return spread(made.boxes[index], port, made.graph.boxes[index].outs);
    const results = inside.boxes.filter((_, b) => inside.graph.boxes[b].kind === "result");
    return made.boxes[index].x + shift(made, index) + results[port].middle;
  }

  function wire(made, left, lanes, bottoms, tops) {
    made.graph.wires.forEach((wire_, number) => {
      const label = made.types[number], row = wire_.cell[0];
      const line = (x1, y1, x2, y2, gap, ends = false) => {
        const turn = bottoms[gap] + 6 + SLOT * (wire_.slots[gap] || 0);
        made.lines.push({ wire: number, x1, y1, x2, y2, turn, ends });
      };
      if (wire_.box !== undefined) {
        line(outOf(made, wire_.box, wire_.port), made.boxes[wire_.box].bottom, label.middle, label.y, row - 1);
      }
      const rowOf = (box) => made.graph.boxes[box].cell[0];
      const last = Math.max(row, ...wire_.to.map(([box]) => rowOf(box)));
      const tracked = wire_.track !== undefined;
      const track = tracked ? left[wire_.track] + lanes[wire_.track] / 2 : 0;
      if (tracked) {
        line(label.middle, label.bottom, track, tops[row + 1], row);
        line(track, tops[row + 1], track, bottoms[last - 1], row + 1);
      }
      for (const [box, port] of wire_.to) {
        const above = rowOf(box) - 1, near = above === row || !tracked;
        const start = near ? [label.middle, label.bottom] : [track, bottoms[above]];
        line(...start, into(made, box, port), made.boxes[box].y, above, true);
      }
    });
  }

  const text = (content, x, y, style = "") =>
    content ? `<text x="${num(x)}" y="${num(y)}"${style && ` class="${style}"`}>${esc(content)}</text>` : "";
  const frame = (place, round) =>
    `<rect x="${num(place.x)}" y="${num(place.y)}" width="${num(place.width)}" height="${num(place.height)}" rx="${round}"/>`;

  function body(data, made, path, inner) {
    const { graph, view } = made;
    const wires = graph.wires.map((_, number) => ways(data, made, number)).join("");
    const types = made.types.map((place, w) => {
      const all = whole(data, view.types[w]);
      const hint = all === shown(data, view.types[w]) ? "" : `<title>${esc(all)}</title>`;
      return `<g class="nest-type">${frame(place, 9)}${text(made.labels[w], place.middle, place.y + 12.5)}${hint}</g>`;
    });
    const boxes = graph.boxes.map((box, index) =>
      inner && box.kind === "result" ? "" : draw(data, made, index, path + index));
    return wires + types.join("") + boxes.join("");
  }

  function ways(data, made, number) {
    const lines = made.lines.filter((line) => line.wire === number);
    if (!lines.length) return "";
    const heads = lines.filter((line) => line.ends).map((line) => `M${num(line.x2)} ${num(line.y2)}l-3.5-6h7z`).join("");
    return `<path class="nest-wire" d="${lines.map(way).join("")}"><title>${esc(whole(data, made.view.types[number]))}</title></path>`
      + (heads && `<path class="nest-head" d="${heads}"/>`);
  }

  function way({ x1, y1, x2, y2, turn }) {
    const start = `M${num(x1)} ${num(y1)}`, end = `V${num(y2)}`, across = x2 - x1;
    if (Math.abs(across) < 0.5) return start + end;
    const bend = Math.min(6, Math.abs(across) / 2, turn - y1), side = across > 0 ? bend : -bend;
    return `${start}V${num(turn - bend)}Q${num(x1)} ${num(turn)} ${num(x1 + side)} ${num(turn)}`
      + `H${num(x2 - side)}Q${num(x2)} ${num(turn)} ${num(x2)} ${num(turn + bend)}${end}`;
  }

  /** A box. What opens it is a button; the link to its class lies beside that button, not inside of it. */
  function draw(data, made, index, path) {
    const box = made.graph.boxes[index], place = made.boxes[index], inside = made.insides[index];
    const opens = made.view.insides[index] !== undefined;
    const note = made.view.titles[index] === null ? "" : `<title>${esc(whole(data, made.view.titles[index]))}</title>`;
    const outline = frame(rect(0, 0, place.width, place.height), box.kind === "plumbing" || box.kind === "result" ? 10 : 5);
    const link = (content) => (box.link ? `<a href="${esc(box.link)}">${content}</a>` : content);
    const arrow = opens && box.link
      ? `<a href="${esc(box.link)}" aria-label="Source of ${esc(box.class)}" class="nest-to">`
        + `${frame(rect(place.width - 27, 2, 24, 24), 4)}${text("↗", place.width - 15, 18.5)}</a>`
      : "";
    const button = (content) => !opens ? content
      : `<g class="nest-hit" role="button" tabindex="0" data-path="${path}" aria-expanded="${Boolean(inside)}"`
        + ` aria-label="${esc([title(box), box.class].filter(Boolean).join(", "))}">${content}</g>`;
    let content;
    if (inside) {
      const head = `${frame(rect(0, 0, place.width, HEAD), 5)}${text("−", 15, 18.5, "nest-sign")}`
        + text(title(box), 30, 18, "nest-name nest-start");
      const class_ = text(box.class || "", 40 + length(title(box)) * CHAR, 18, "nest-class nest-start");
      content = note + outline + button(head) + (class_ && link(class_))
        + `<g transform="translate(${num(shift(made, index))} ${HEAD})">${body(data, inside, `${path}.`, true)}</g>`;
    } else {
      let y = 19, links = "", lines = opens ? text("+", 15, 18.5, "nest-sign") : "";
      for (const [style, words] of texts(data, made.view, index)) {
        if (style === "small") lines += text(words, place.width / 2, 14);
        else if (style === "class" && !opens) links += link(text(words, place.width / 2, y, "nest-class"));
        else lines += text(words, place.width / 2, y, `nest-${style}`);
        y += style === "name" ? 15 : 14;
      }
      content = note + button(outline + lines) + links;
    }
    const kind = `nest-box nest-box--${box.kind}${inside ? " nest-box--open" : ""}`;
    return `<g class="${kind}" transform="translate(${num(place.x)} ${num(place.y)})">${content}${arrow}</g>`;
  }

  class Figure {
    constructor(element, data) {
      this.element = element;
      this.data = data;
      this.scroller = element.querySelector(".nest-scroll");
      this.opened = new Map(data.entries.map((entry) => [entry.name, new Set(entry.open)]));
      this.entry = data.entries[0];
      this.listen();
      this.redraw();
      if (!document.fullscreenEnabled) element.querySelector("[data-do=fill]").disabled = true;
      element.classList.add("nest-diagram-box--live");
    }

    listen() {
      this.scroller.addEventListener("click", (event) => this.toggle(event.target.closest("[data-path]")));
      this.scroller.addEventListener("keydown", (event) => {
        const button = event.target.closest("[data-path]");
        if (button && (event.key === "Enter" || event.key === " ")) {
          event.preventDefault();
          this.toggle(button);
        }
      });
      this.element.querySelector(".nest-diagram-bar").addEventListener("click", (event) => {
        const link = event.target.closest("[data-entry]"), action = event.target.closest("[data-do]");
        if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          this.choose(link.dataset.entry);
        }
        if (action && action.dataset.do === "fill") this.fill();
        else if (action) this.all(action.dataset.do);
      });
    }

    choose(name) {
      this.entry = this.data.entries.find((entry) => entry.name === name);
      for (const link of this.element.querySelectorAll("[data-entry]")) {
        if (link.dataset.entry === name) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
      this.redraw();
      this.centre();
    }

    /** The whole screen for the figure, and back. */
    fill() {
      if (document.fullscreenElement) document.exitFullscreen();
      else this.element.requestFullscreen().then(() => this.centre());
    }

    all(action) {
      const opened = this.opened.get(this.entry.name);
      if (action === "close") opened.clear();
      else this.scroller.querySelectorAll('[aria-expanded="false"]').forEach((button) => opened.add(button.dataset.path));
      this.redraw();
      this.centre();
    }

    /** The box stays where it is on the screen, and keeps the focus. */
    toggle(button) {
      if (!button) return;
      const path = button.dataset.path, opened = this.opened.get(this.entry.name);
      const before = button.getBoundingClientRect();
      if (!opened.delete(path)) opened.add(path);
      this.redraw();
      const after = this.scroller.querySelector(`[data-path="${path}"]`);
      this.scroller.scrollLeft += after.getBoundingClientRect().left - before.left;
      window.scrollBy({ top: after.getBoundingClientRect().top - before.top, behavior: "instant" });
      after.focus({ preventScroll: true });
    }

    /** Shows where the picture begins, also where it is wider than its box. */
    centre() {
      const first = this.scroller.querySelector(".nest-type");
      const place = first && first.getBoundingClientRect(), box = this.scroller.getBoundingClientRect();
      this.scroller.scrollTop = 0;
      if (place) this.scroller.scrollLeft += place.left + place.width / 2 - box.left - box.width / 2;
    }

    redraw() {
      const { name, label, view } = this.entry;
      const made = lay(this.data, view, this.opened.get(name));
      const width = num(made.width + 2 * MARGIN), height = num(made.height + 2 * MARGIN);
      this.scroller.innerHTML = `<svg class="nest-diagram" role="group" aria-label="${esc(label)}" viewBox="0 0 ${width} ${height}"`
        + ` width="${width}" height="${height}"><g transform="translate(${MARGIN} ${MARGIN})">${body(this.data, made, "", false)}</g></svg>`;
    }
  }

  /** Where the data cannot be had, the picture stays as it is. */
  async function prepare(element) {
    try {
      const answer = await fetch(element.dataset.diagram);
      if (answer.ok) new Figure(element, await answer.json());
    } catch { /* no network, or a page opened from a file */ }
  }

  document.querySelectorAll("[data-diagram]").forEach(prepare);
})();
