// Draws a foretell report. Everything that comes from the program under test is data: it reaches
// the page through textContent and the canvas only, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const report = data.report;
  const events = new Map((report.events || []).map((event) => [event.id, event]));
  const threadNames = report.trace.thread_names || [];
  const ROW = 24, HEAD = 26, GUTTER = 40, LANE = 84, LONGEST = 80;

  // Control characters and marks that change the writing direction are written out.
  const deceptive = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
  const show = (text) => String(text).replace(deceptive, (c) => c === "\n" || c === "\t" ? c
    : "\\u{" + c.codePointAt(0).toString(16) + "}");
  const short = (text, most = LONGEST) => {
    const shown = show(text);
    return shown.length > most ? shown.slice(0, most - 1) + "…" : shown;
  };
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value);
    }
    for (const child of children) {
      if (child === null || child === undefined) continue;
      element.append(child instanceof Node ? child : document.createTextNode(show(child)));
    }
    return element;
  };
  const place = (at) => at && at.file ? (at.line ? `${at.file}:${at.line}` : at.file) : "";
  const threadName = (event) => threadNames[event.thread] ?? `thread ${event.thread}`;
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // ---- colours -------------------------------------------------------------------------------
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let theme = dark.matches ? "dark" : "light";
  const panels = [];
  const applyTheme = () => {
    document.documentElement.dataset.theme = theme;
    panels.forEach((panel) => panel.draw());
  };
  dark.addEventListener("change", () => { theme = dark.matches ? "dark" : "light"; applyTheme(); });

  // ---- one order of a timeline ------------------------------------------------------------------
  class Panel {
    constructor(title, finding, order, predicted, chosen) {
      const timeline = finding.timeline;
      this.order = order;
      this.predicted = predicted;
      this.timeline = timeline;
      this.rowOf = new Map(order.map((id, row) => [id, row]));
      this.moved = new Set(timeline.moved || []);
      this.part = new Set(finding.accesses.map((access) => access.event));
      this.next = new Set(predicted ? timeline.next || [] : []);
      const ids = order.length ? order : [];
      this.threads = [...new Set(ids.map((id) => events.get(id)?.thread ?? 0))].sort((a, b) => a - b);
      this.lane = new Map(this.threads.map((thread, lane) => [thread, lane]));
      this.selected = null;
      this.reached = Infinity;
      this.bands = this.lockBands();
      const changed = new Set((timeline.reads_from || [])
        .filter((read) => read.recorded !== read.predicted).map((read) => read.read));
      this.arrows = (timeline.reads_from || []).map((read) => ({
        read: this.rowOf.get(read.read),
        write: this.rowOf.get(predicted ? read.predicted : read.recorded),
        changed: changed.has(read.read),
      })).filter((arrow) => arrow.read !== undefined && arrow.write !== undefined);
      this.canvas = make("canvas", { role: "img", "aria-label": `${title}, ${order.length} events` });
      this.spacer = make("div");
      this.scroller = make("div", { class: "scroller", tabindex: "0", "aria-label":
        `${title}: arrow keys move, Enter shows the event` }, this.canvas, this.spacer);
      this.root = make("div", { class: "order" }, make("h4", {}, title), this.scroller);
      this.scroller.addEventListener("scroll", () => this.later());
      this.scroller.addEventListener("click", (event) => {
        const row = this.rowAt(event);
        if (row !== null) chosen(this.order[row], this);
      });
      this.scroller.addEventListener("keydown", (event) => {
        const at = this.selected === null ? -1 : this.rowOf.get(this.selected) ?? -1;
        const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: order.length - 1,
          PageDown: at + 10, PageUp: at - 10, Enter: at }[event.key];
        if (to === undefined || !order.length) return;
        event.preventDefault();
        event.stopPropagation();
        chosen(this.order[Math.max(0, Math.min(order.length - 1, to))], this);
      });
      new ResizeObserver(() => this.draw()).observe(this.scroller);
    }
    // A lock is held from its acquire to its release; what the first events hold already was taken
    // before the timeline begins.
    lockBands() {
      const bands = [], open = new Map(), last = new Map();
      const close = (key, row) => { const band = open.get(key); open.delete(key); band.to = row; };
      this.order.forEach((id, row) => {
        const event = events.get(id);
        if (!event) return;
        const key = (lock) => `${event.thread} ${lock}`;
        const held = new Set(event.locks || []);
        for (const lock of held) {
          if (!open.has(key(lock))) {
            const band = { thread: event.thread, lock, from: row, to: this.order.length };
            open.set(key(lock), band);
            bands.push(band);
          }
        }
        for (const [name, band] of [...open]) {
          if (band.thread === event.thread && !held.has(band.lock)) close(name, last.get(event.thread));
        }
        if (event.op === "acquire" && !held.has(event.object) && !this.next.has(id)) {
          const band = { thread: event.thread, lock: event.object, from: row, to: this.order.length };
          open.set(key(event.object), band);
          bands.push(band);
        } else if (event.op === "release" && open.has(key(event.object))) {
          close(key(event.object), row);
        }
        last.set(event.thread, row);
      });
      return bands;
    }
    rowAt(event) {
      const box = this.scroller.getBoundingClientRect();
      const y = event.clientY - box.top - HEAD;
      if (y < 0) return null;
      const row = Math.floor((y + this.scroller.scrollTop) / ROW);
      return row < this.order.length ? row : null;
    }
    reveal(id) {
      const row = this.rowOf.get(id);
      if (row === undefined) return;
      const top = row * ROW, room = this.scroller.clientHeight - HEAD;
      if (top < this.scroller.scrollTop || top + ROW > this.scroller.scrollTop + room) {
        this.scroller.scrollTop = Math.max(0, top - room / 2);
      }
    }
    later() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    }
    laneWidth() {
      return Math.max(LANE, (this.scroller.clientWidth - GUTTER) / Math.max(1, this.threads.length));
    }
    draw() {
      const width = this.scroller.clientWidth, height = this.scroller.clientHeight;
      if (!width || !height) return;
      const lane = this.laneWidth(), scale = devicePixelRatio || 1;
      this.spacer.style.width = `${GUTTER + lane * this.threads.length}px`;
      this.spacer.style.height = `${Math.max(0, HEAD + this.order.length * ROW - height)}px`;
      this.canvas.width = width * scale;
      this.canvas.height = height * scale;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      const pen = this.canvas.getContext("2d");
      pen.scale(scale, scale);
      const colour = Object.fromEntries(["panel", "ink", "soft", "line", "accent", "bad", "moved",
        "moved-ink", "lane", "lock", "cell"].map((name) => [name, variable(`--${name}`)]));
      pen.fillStyle = colour.panel;
      pen.fillRect(0, 0, width, height);
      pen.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
      pen.textBaseline = "middle";
      const left = GUTTER - this.scroller.scrollLeft, top = HEAD - this.scroller.scrollTop;
      const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 1);
      const last = Math.min(this.order.length, first + Math.ceil(height / ROW) + 2);
      this.drawn = last - first;
      this.threads.forEach((_, at) => {
        pen.fillStyle = at % 2 ? colour.panel : colour.lane;
        pen.fillRect(left + at * lane, HEAD, lane, height);
      });
      const depth = new Map();
      for (const band of this.bands) {
        if (band.from > last || band.to < first) continue;
        const at = this.lane.get(band.thread);
        const level = depth.get(band.lock) ?? depth.set(band.lock, depth.size % 3).get(band.lock);
        pen.fillStyle = colour.lock;
        pen.fillRect(left + at * lane + 2 + level * 4, top + band.from * ROW + 3, 3,
          (band.to - band.from + 1) * ROW - 6);
      }
      let arrows = 0;
      for (const arrow of this.arrows) {
        const from = Math.min(arrow.read, arrow.write), to = Math.max(arrow.read, arrow.write);
        if (from > last || to < first || ++arrows > 300) continue;
        const x = (row) => left + this.lane.get(events.get(this.order[row])?.thread ?? 0) * lane + 15;
        const y = (row) => top + row * ROW + ROW / 2;
        pen.strokeStyle = arrow.changed ? colour.accent : colour.line;
        pen.lineWidth = arrow.changed ? 2 : 1.2;
        pen.beginPath();
        pen.moveTo(x(arrow.write), y(arrow.write));
        const bend = x(arrow.write) === x(arrow.read) ? x(arrow.read) - 26 : x(arrow.write);
        pen.quadraticCurveTo(bend, y(arrow.read), x(arrow.read), y(arrow.read));
        pen.stroke();
        pen.beginPath();
        pen.arc(x(arrow.read), y(arrow.read), 3, 0, 7);
        pen.fillStyle = pen.strokeStyle;
        pen.fill();
      }
      for (let row = first; row < last; row++) {
        const id = this.order[row], event = events.get(id);
        if (!event) continue;
        // A row has one event, so its text may reach over the other lanes.
        const text = short(this.label(id, event)), y = top + row * ROW;
        const wide = Math.min(pen.measureText(text).width + 12, width - 12);
        const x = Math.max(4, Math.min(left + this.lane.get(event.thread) * lane + 16, width - wide - 6));
        const moved = this.moved.has(id);
        pen.globalAlpha = row > this.reached ? 0.38 : 1;
        if (this.selected === id) {
          pen.fillStyle = colour.accent;
          pen.globalAlpha *= 0.16;
          pen.fillRect(0, y, width, ROW);
          pen.globalAlpha = row > this.reached ? 0.38 : 1;
        }
        pen.fillStyle = moved ? colour.moved : colour.cell;
        pen.beginPath();
        pen.roundRect(x, y + 2, wide, ROW - 4, 4);
        pen.fill();
        if (this.part.has(id) || this.selected === id) {
          pen.strokeStyle = this.part.has(id) ? colour.bad : colour.accent;
          pen.lineWidth = 1.6;
          pen.stroke();
        }
        pen.save();
        pen.clip();
        pen.fillStyle = moved ? colour["moved-ink"] : colour.ink;
        pen.fillText(text, x + 6, y + ROW / 2);
        pen.restore();
        pen.fillStyle = colour.soft;
        pen.fillText(String(row + 1), 6, y + ROW / 2);
        pen.globalAlpha = 1;
      }
      pen.fillStyle = colour.panel;
      pen.fillRect(0, 0, width, HEAD);
      pen.fillStyle = colour.line;
      pen.fillRect(0, HEAD - 1, width, 1);
      pen.fillStyle = colour.ink;
      pen.font = "600 12px system-ui, sans-serif";
      this.threads.forEach((thread, at) => {
        pen.save();
        pen.beginPath();
        pen.rect(left + at * lane, 0, lane, HEAD);
        pen.clip();
        pen.fillText(short(threadNames[thread] ?? `thread ${thread}`), left + at * lane + 16, HEAD / 2);
        pen.restore();
      });
    }
    label(id, event) {
      return eventText(event, this.predicted ? this.timeline.values?.[id] : undefined, this.next.has(id));
    }
  }

  const eventText = (event, now, waits) => {
    let text = event.op + (event.object !== undefined ? " " + event.object : "");
    if (waits) return "… " + text;
    if (now !== undefined) text += ` = ${now}` + (event.value !== undefined ? ` (was ${event.value})` : "");
    else if (event.value !== undefined) text += ` = ${event.value}`;
    return text;
  };

  // ---- parts of a finding ---------------------------------------------------------------------
  const diffBlock = (text) => {
    const block = make("pre", { class: "diff" });
    for (const line of String(text).replace(/\n$/, "").split("\n")) {
      const kind = /^(\+\+\+|---) /.test(line) ? "hunk" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del"
        : line.startsWith("@") ? "hunk" : "plain";
      block.append(make("span", { class: kind }, line === "" ? " " : line));
    }
    return block;
  };
  const sourceBlock = (file, line, around = 4) => {
    const lines = report.sources?.[file];
    if (!lines || !line) return null;
    const block = make("pre", { class: "source" });
    for (let number = line - around; number <= line + around; number++) {
      const text = lines[number];
      if (text === undefined) continue;
      block.append(make("span", { class: number === line ? "mark" : "plain" },
        make("span", { class: "number" }, String(number).padStart(5) + "  "), text === "" ? " " : text));
    }
    return block.childNodes.length ? block : null;
  };
  const stackList = (frames) => make("ul", { class: "plain mono" }, ...frames.map((frame) =>
    make("li", {}, frame.function + (place(frame) ? "  " + place(frame) : ""))));
  const stackOf = (event) => {
    const frames = [];
    const table = report.frames || [];
    let at = event.frame, top = true;
    // A caller always stands before the frame it called, so this ends whatever the file says.
    while (at !== undefined && table[at] && frames.length < 200) {
      const frame = table[at];
      frames.push(top ? { function: frame.function, file: event.file, line: event.line } : frame);
      top = false;
      at = frame.caller !== undefined && frame.caller < at ? frame.caller : undefined;
    }
    return frames;
  };
  const fact = (list, name, value) => {
    if (value === undefined || value === null || value === "") return;
    list.append(make("dt", {}, name), make("dd", {}, value instanceof Node ? value : String(value)));
  };

  const graph = (formula, one) => {
    const holder = make("div", { class: "box" });
    const svgName = "http://www.w3.org/2000/svg";
    const svg = (name, attributes) => {
      const element = document.createElementNS(svgName, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    const drawClause = (clause) => {
      const names = new Map();
      for (const edge of clause) for (const end of [edge.before, edge.after]) names.set(end.name, end);
      const threads = [...new Set([...names.values()].map((end) => end.thread))];
      const wide = 230, high = 54, rows = new Map();
      const at = new Map();
      const sorted = [...names.values()].sort((a, b) => (a.event ?? a.line ?? 0) - (b.event ?? b.line ?? 0));
      for (const end of sorted) {
        const column = threads.indexOf(end.thread), row = rows.get(column) ?? 0;
        rows.set(column, row + 1);
        at.set(end.name, { x: 10 + column * wide, y: 34 + row * high });
      }
      const width = Math.max(1, threads.length) * wide, height = 40 + Math.max(1, ...rows.values()) * high;
      const picture = svg("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height,
        role: "img", "aria-label": "happens-before edges" });
      const marker = svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7,
        markerHeight: 7, orient: "auto" });
      marker.append(svg("path", { d: "M0 0L8 4L0 8z", class: "tip" }));
      picture.append(marker);
      threads.forEach((thread, column) => {
        const head = svg("text", { x: 10 + column * wide, y: 18, "font-weight": 600 });
        head.textContent = short(thread, 26);
        picture.append(head);
      });
      for (const edge of clause) {
        const from = at.get(edge.before.name), to = at.get(edge.after.name);
        const right = to.x > from.x, same = to.x === from.x;
        const x1 = from.x + (right || same ? 190 : 0), x2 = to.x + (right ? 0 : 190);
        const bend = same ? 40 : 0;
        const isOne = one && one.before.name === edge.before.name && one.after.name === edge.after.name;
        picture.append(svg("path", { class: isOne ? "edge one" : "edge", "marker-end": "url(#head)",
          d: `M${x1} ${from.y + 16}C${(x1 + x2) / 2 + bend} ${from.y + 16} ${(x1 + x2) / 2 + bend} ${to.y + 16} ${x2} ${to.y + 16}` }));
      }
      for (const [name, end] of names) {
        const spot = at.get(name);
        picture.append(svg("rect", { class: "node", x: spot.x, y: spot.y, width: 190, height: 32, rx: 6 }));
        const text = svg("text", { x: spot.x + 8, y: spot.y + 20 });
        text.textContent = short(name, 16) + (end.line ? `  line ${end.line}` : "");
        const title = svg("title", {});
        title.textContent = short(`${name} ${place(end)}`, 200);
        text.append(title);
        picture.append(text);
      }
      return picture;
    };
    const stage = make("div");
    const showClause = (number) => { stage.replaceChildren(drawClause(formula.clauses[number])); };
    if (formula.clauses.length > 1) {
      const select = make("select", { "aria-label": "which way it goes wrong",
        onchange: () => showClause(Number(select.value)) });
      formula.clauses.forEach((_, number) => select.append(
        make("option", { value: String(number) }, `way ${number + 1} of ${formula.clauses.length}`)));
      holder.append(select);
    }
    holder.append(stage, make("p", { class: "mono soft wrap" }, formula.text));
    if (formula.clauses.length) showClause(0);
    return holder;
  };

  const sections = (finding, entry, add) => {
    if (finding.forced) {
      add("Forced run", (() => {
        const list = make("dl");
        fact(list, "ended with", finding.forced.ended);
        fact(list, "runs", finding.forced.runs);
        fact(list, "first other branch", entry.branch);
        const box = make("div", { class: "box" }, list);
        const told = (title, block) => box.append(make("p", { class: "soft" }, title), block);
        if (finding.forced.output_difference) {
          told("output, recorded (-) and forced (+)", diffBlock(finding.forced.output_difference));
        }
        if (finding.forced.stderr) told("its standard error", make("pre", {}, finding.forced.stderr));
        return box;
      })());
    }
    if (finding.explanation) {
      const box = make("div", {}, make("p", { class: "wrap" }, entry.why));
      const edge = finding.explanation.edge;
      if (edge) {
        const end = (one) => place(one) ? `${place(one)} of ${one.thread}` : one.name;
        box.append(make("p", { class: "wrap" },
          `It goes wrong when ${end(edge.before)} comes before ${end(edge.after)}.`));
      }
      if (finding.explanation.formula) box.append(graph(finding.explanation.formula, edge));
      add("Why", box);
    }
    if (finding.fix) {
      const reason = finding.fix.reason;
      // The words of `story::trust_in`.
      const sure = finding.fix.verified ? "verified: the patched program was built and tested, the bug is gone"
        : finding.fix.on_trace ? "advice: no bad interleaving of the recorded run is left; " + (reason || "test the patched program")
        : "advice, not verified" + (reason ? ": " + reason : "");
      const box = make("div", {}, make("p", { class: "wrap" }, `${finding.fix.text} (${sure})`));
      if (finding.fix.diff) box.append(diffBlock(finding.fix.diff));
      add("Fix", box);
    }
    if (finding.replay || finding.schedule) {
      add("Make it happen", make("pre", { class: "replay" }, finding.replay || finding.schedule));
    }
    add("The accesses", make("div", { class: "sides" }, ...finding.accesses.map((access, number) => {
      const list = make("dl");
      fact(list, "thread", access.thread);
      fact(list, "variable", access.variable);
      fact(list, "recorded value", access.value);
      fact(list, "place", place(access));
      fact(list, "holds", (access.locks || []).join(", ") || "no lock");
      const box = make("div", { class: "box" },
        make("strong", {}, `${number + 1}. ${access.op}`), list);
      if (access.stack?.length) box.append(stackList(access.stack));
      const source = sourceBlock(access.file, access.line, 2);
      if (source) box.append(source);
      return box;
    })));
  };

  // ---- one finding ----------------------------------------------------------------------------
  const main = document.querySelector("main");
  let keys = null;
  const showFinding = (number) => {
    const entry = data.entries[number];
    document.querySelectorAll("nav button").forEach((button, at) =>
      button.setAttribute("aria-current", String(at === number)));
    panels.length = 0;
    clearInterval(playing);
    keys = null;
    if (!entry) {
      main.replaceChildren(make("p", {}, data.count));
      return;
    }
    const finding = report.findings[entry.finding];
    const timeline = finding.timeline;
    const page = make("div");
    page.append(make("p", {}, make("span", { class: `tag ${finding.status}` },
      `${finding.status} ${finding.kind}`)), make("h2", { class: "wrap" }, entry.headline),
      make("p", { class: "soft wrap" }, entry.certainty), make("p", { class: "wrap" }, finding.detail));
    if (entry.also.length) page.append(make("p", { class: "soft wrap" },
      `also seen as: ${entry.also.join("; ")}`));
    if (entry.threads) page.append(make("p", { class: "soft" },
      `and ${entry.threads} more with other threads`));
    const add = (title, node) => { if (node) page.append(make("h3", {}, title), node); };

    if (timeline) {
      const details = make("div", { class: "box details", "aria-live": "polite" },
        make("p", { class: "soft" }, "Click an event to see its source, value and stack."));
      const now = make("div", { class: "now mono", role: "status", "aria-live": "polite" });
      const chosen = (id) => {
        for (const panel of panels) {
          panel.selected = id;
          panel.reveal(id);
          panel.draw();
        }
        describe(id);
      };
      const describe = (id) => {
        const event = events.get(id);
        if (!event) return;
        const list = make("dl");
        fact(list, "event", `${eventText(event)} (number ${id} of the run)`);
        fact(list, "thread", threadName(event));
        fact(list, "place", place(event) + (event.function ? ` in ${event.function}` : ""));
        fact(list, "recorded value", event.value);
        fact(list, "predicted value", timeline.values?.[id]);
        const read = (timeline.reads_from || []).find((other) => other.read === id);
        const writer = (write) => write === undefined ? "the initial value or an earlier write"
          : `${threadName(events.get(write))}: ${eventText(events.get(write))} ${place(events.get(write))}`;
        if (read) {
          fact(list, "read, recorded", writer(read.recorded));
          fact(list, "read, predicted", writer(read.predicted));
        }
        fact(list, "holds", (event.locks || []).join(", "));
        details.replaceChildren(list);
        const stack = stackOf(event);
        if (stack.length) details.append(stackList(stack));
        const source = sourceBlock(event.file, event.line);
        if (source) details.append(source);
      };
      const whole = [...timeline.predicted, ...(timeline.next || [])];
      const recorded = new Panel("Recorded order", finding, timeline.recorded, false, chosen);
      const predicted = new Panel("Predicted order", finding, whole, true, chosen);
      panels.push(recorded, predicted);

      let cursor = -1;
      const onlyStory = make("input", { type: "checkbox", id: "story" });
      onlyStory.checked = (timeline.steps || []).length > 0;
      const stops = () => onlyStory.checked ? (timeline.steps || []) : whole;
      const go = (to) => {
        const list = stops();
        cursor = Math.max(-1, Math.min(list.length - 1, to));
        const id = list[cursor];
        predicted.reached = id === undefined ? Infinity : predicted.rowOf.get(id) ?? Infinity;
        if (id === undefined) {
          now.textContent = `${list.length} steps`;
          panels.forEach((panel) => { panel.selected = null; panel.draw(); });
          return;
        }
        const event = events.get(id);
        now.textContent = show(`step ${cursor + 1} of ${list.length}: ${threadName(event)}: `
          + eventText(event, timeline.values?.[id], (timeline.next || []).includes(id)));
        chosen(id);
      };
      const play = () => {
        if (playing) { clearInterval(playing); playing = 0; return; }
        playing = setInterval(() => {
          if (cursor + 1 >= stops().length) { clearInterval(playing); playing = 0; return; }
          go(cursor + 1);
        }, 900);
      };
      const button = (label, name, action) => make("button", { type: "button", "aria-label": name,
        title: name, onclick: action }, label);
      onlyStory.addEventListener("change", () => go(-1));
      keys = { ArrowRight: () => go(cursor + 1), ArrowLeft: () => go(cursor - 1), Home: () => go(0),
        End: () => go(stops().length - 1), " ": play };
      page.append(make("h3", {}, "What happens"),
        make("div", { class: "controls" },
          button("|◀", "first step (Home)", () => go(0)), button("◀", "back (left arrow)", () => go(cursor - 1)),
          button("▶", "next step (right arrow)", () => go(cursor + 1)),
          button("▶|", "last step (End)", () => go(stops().length - 1)),
          button("play", "play or stop (space)", play),
          make("label", { for: "story" }, onlyStory, "only the steps that matter"), now),
        make("div", { class: "orders" }, recorded.root, predicted.root),
        make("p", { class: "legend" }, make("span", {}, make("i", { class: "moved" }), "moved before another thread's"),
          make("span", {}, make("i", { class: "part" }), "takes part"),
          make("span", {}, make("i", { class: "lock" }), "lock held"),
          make("span", {}, make("i", { class: "arrow" }), "reads another write than recorded")),
        timeline.omitted ? make("p", { class: "soft" },
          `${timeline.omitted} earlier events are the same in both and not shown.`) : "",
        make("h3", {}, "Event"), details);
      sections(finding, entry, add);
      main.replaceChildren(page);
      go(-1);
      const focus = (timeline.steps || [])[0] ?? finding.accesses[0]?.event;
      if (focus !== undefined) panels.forEach((panel) => { panel.reveal(focus); panel.draw(); });
    } else {
      sections(finding, entry, add);
      main.replaceChildren(page);
    }
    page.append(make("p", { class: "soft mono wrap" }, `fingerprint ${finding.fingerprint}`));
    page.append(closing());
  };

  const closing = () => {
    const box = make("div");
    const list = (title, items) => {
      if (items.length) box.append(make("h3", {}, title), make("ul", { class: "plain" },
        ...items.map((item) => make("li", {}, item))));
    };
    list("What limits this result", data.limits);
    list("Suppressed", data.suppressed);
    list("Suppressions that match nothing", report.stale_suppressions || []);
    list("Looked at", (report.properties || []).map((property) => `${property.kind}: ${property.questions} places, `
      + (property.holds_in_all_interleavings && property.questions ? "holds in all interleavings"
        : `${property.predicted} predicted, ${property.unknown} undecided`)));
    const { runs, behaviours, paths, folded } = report.statistics || {};
    if (runs) list("Forced", [`${runs} runs, ${behaviours} behaviours, ${paths} paths`
      + (folded ? `; ${folded} benign (no visible effect)` : "")]);
    return box;
  };

  // ---- the frame ------------------------------------------------------------------------------
  let playing = 0, current = 0;
  const open = (number) => {
    current = Math.max(0, Math.min(data.entries.length - 1, number));
    showFinding(current);
  };
  document.querySelector("header").append(make("h1", {}, "foretell"),
    make("span", { class: "grow" }, `${(report.program.command || []).join(" ")} — ${data.count}`
      + ` — ${report.trace.threads} threads, ${report.trace.events} events`),
    make("button", { type: "button", id: "theme", "aria-label": "light or dark", onclick: () => {
      theme = theme === "dark" ? "light" : "dark"; applyTheme(); } }, "◐"));
  document.querySelector("nav").append(...data.entries.map((entry, number) =>
    make("button", { type: "button", onclick: () => open(number) },
      short(entry.headline, 200), make("small", {}, short(entry.certainty, 120)))));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName) && [" ", "Enter"].includes(event.key)) return;
    if (event.key === "n") open(current + 1);
    else if (event.key === "p") open(current - 1);
    else if (keys && keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  applyTheme();
  open(0);
  // For tests, and for whoever looks from the console.
  window.foretell = { data, panels };
})();
