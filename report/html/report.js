"use strict";
// The page is drawn from the JSON in #data (report/html/page_data.h). One state (plan, selection, query) is kept in the
// address behind '#', so that a link or a reload shows the same. All text enters the page as text, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const state = { plan: 0, op: null, comm: null, open: new Set(), query: "", backward: false, from: 0, to: 1, brush: null, within: null };
const plan = () => data.plans[state.plan];

// --- small things ----------------------------------------------------------------------------------------------------
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, action] of Object.entries(value)) element.addEventListener(event, action);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child != null) element.append(child);
  return element;
}
function digits(value) { return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2); }
function scaled(value, units) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  for (const [unit, name] of units) if (size >= unit * 0.9995 || unit === units[units.length - 1][0]) return digits(size / unit) + " " + name;
}
const time = (ps) => (ps < 0 ? "-" : "") + scaled(ps, [[1e12, "s"], [1e9, "ms"], [1e6, "us"]]);
const bytes = (b) => (b < 0 ? "-" : "") + scaled(b, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
const signed = (text, value) => (value > 0 ? "+" : "") + text;
const counted = (count, thing) => count + " " + thing + (count === 1 ? "" : "s");
const words = ["forward", "backward", "update"];

/// The letters of a layout's axes: the shortest beginnings that tell them apart.
function letters() {
  const names = plan().axes.map((axis) => axis[0]);
  return names.map((name, i) => {
    let length = 1;
    while (length < name.length && names.some((other, j) => j !== i && other.startsWith(name.slice(0, length)))) ++length;
    return name.slice(0, length);
  });
}
/// "[{pcie}, {}] unreduced={hccs}" as a row of cells, one a dimension, in the colours, textures and letters of its axes.
function chip(layout) {
  const short = letters(), [sharded, partial] = layout.split(" unreduced=");
  const axesIn = (text) => text.split(",").map((part) => part.trim().split(":")[0]).filter((name) => name).map((name) => plan().axes.findIndex((axis) => axis[0] === name));
  const cells = sharded.replace(/^\[|\]$/g, "").match(/\([^)]*\)|\{[^}]*\}/g) || [];
  const box = make("span", { class: "chip" + (partial ? " partial" : ""), title: layout });
  for (const cell of cells) {
    const axes = (cell.match(/\{[^}]*\}/g) || []).flatMap((group) => axesIn(group.slice(1, -1)));
    if (!axes.length) box.append(make("i", { "aria-hidden": "true" }, "."));
    axes.forEach((axis) => box.append(make("i", { class: "a" + (Math.max(axis, 0) % 4) }, short[axis] || "?")));
  }
  if (!cells.length) box.append(make("i", {}, "."));
  if (partial) box.append(make("i", {}, "+" + axesIn((partial.match(/\{([^}]*)\}/) || ["", ""])[1]).map((axis) => short[axis]).join("")));
  return make("span", {}, box, " ", make("span", { class: "mono quiet" }, layout));
}
function chipOnly(layout) { const both = chip(layout); return make("span", {}, both.firstChild); }

function matches(op) {
  return state.query.split(/\s+/).filter((part) => part).every((part) => {
    if (part.startsWith("op:")) return op.t.toLowerCase() === part.slice(3).toLowerCase();
    if (part.startsWith("axis:")) return (op.s + op.out.map((side) => side[2])).includes(part.slice(5));
    if (part === "partial") return op.out.some((side) => side[2].includes("unreduced"));
    if (part === "user") return op.by.includes("user");
    const limit = part.match(/^>([\d.]+)(us|ms|s)$/);
    if (limit) return op.ps + op.cm > limit[1] * { us: 1e6, ms: 1e9, s: 1e12 }[limit[2]];
    const pattern = part.split("*").map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*");
    return new RegExp(pattern, "i").test(op.n);
  });
}

// --- tables: sorted by a click on their head, filtered by the search ---------------------------------------------------
function table(columns, rows, options = {}) {
  let order = options.order ?? -1, down = true, shown = options.shown || 20;
  const body = make("tbody"), head = make("tr"), more = make("button", { on: { click: () => { shown = Infinity; draw(); } } });
  const value = (row, i) => { const cell = columns[i].value(row); return cell == null ? -Infinity : typeof cell === "number" ? cell : String(cell).toLowerCase(); };
  columns.forEach((column, i) => head.append(make("th", { class: column.show ? "n" : null, scope: "col" },
    make("button", { on: { click: () => { down = order === i ? !down : true; order = i; draw(); } } }, column.name))));
  function draw() {
    let list = rows.map((row, i) => [row, i]);
    if (options.filter) list = list.filter(([row, i]) => options.filter(row, i));
    if (order >= 0) list.sort(([a, i], [b, j]) => { const x = value(a, order), y = value(b, order); return (x < y ? 1 : x > y ? -1 : 0) * (down ? 1 : -1) || i - j; });
    [...head.children].forEach((cell, i) => { if (i === order) cell.setAttribute("aria-sort", down ? "descending" : "ascending"); else cell.removeAttribute("aria-sort"); });
    body.replaceChildren(...list.slice(0, shown).map(([row, i]) => {
      const line = make("tr", {}, columns.map((column) => make("td", { class: column.show ? "n" : null }, column.draw ? column.draw(row) : column.show ? column.show(column.value(row)) : String(column.value(row)))));
      if (options.pick) {
        line.tabIndex = 0; line.dataset.op = i;
        line.addEventListener("click", () => options.pick(row, i));
        line.addEventListener("keydown", (event) => { if (event.key === "Enter") options.pick(row, i); });
      }
      return line;
    }));
    more.hidden = list.length <= shown; more.textContent = "all " + list.length;
  }
  draw();
  const csv = make("button", { on: { click: () => navigator.clipboard && navigator.clipboard.writeText([columns.map((column) => column.name), ...rows.map((row) => columns.map((column) => '"' + String(column.value(row) ?? "").replace(/"/g, '""') + '"'))].map((line) => line.join(",")).join("\n")) } }, "copy as CSV");
  const box = make("div", {}, make("table", {}, make("thead", {}, head), body), more, " ", csv);
  box.redraw = draw;
  return box;
}

// --- the graph: operators below each other in program order, blocks folded, edges as arcs at the right ---------------------
function graphRows() {
  const ops = plan().ops, rows = [], blocks = [];
  ops.forEach((op, i) => {
    if (op.p !== 0 && !state.backward) return;
    const name = op.p === 0 ? op.b : words[op.p] + " of " + op.b;
    if (!blocks.length || blocks[blocks.length - 1].name !== name) blocks.push({ name, ops: [] });
    blocks[blocks.length - 1].ops.push(i);
  });
  // What works for an operator but is hidden (backward, update) is counted with its block.
  for (const block of blocks) {
    const shown = block.ops.filter((i) => matches(ops[i]));
    if (!shown.length) continue;
    const single = block.ops.length === 1, open = state.open.has(block.name) || (state.query && shown.length < block.ops.length);
    if (!single) rows.push({ block, open });
    if (single || open) for (const i of shown) {
      plan().comms.forEach((comm, c) => { if (comm.to === i) rows.push({ comm: c, inner: !single }); });
      rows.push({ op: i, inner: !single });
    }
  }
  return rows;
}
function drawGraph() {
  const ops = plan().ops, list = make("ul", { class: "graph", role: "tree", "aria-label": "operators in program order" });
  const at = new Map(), rows = graphRows();
  rows.forEach((row, r) => {
    const level = { role: "treeitem", tabindex: "-1" };
    let node;
    if (row.block) {
      const sum = row.block.ops.reduce((total, i) => total + ops[i].ps + ops[i].cm, 0), copies = Math.max(...row.block.ops.map((i) => ops[i].c));
      const last = ops[row.block.ops[row.block.ops.length - 1]];
      node = make("li", { ...level, class: "node block", "aria-level": 1, "aria-expanded": String(row.open) }, (row.open ? "- " : "+ "),
        make("span", { class: "name" }, row.block.name), row.block.name.includes("*") ? copies + " x" : null, last.out.length ? chipOnly(last.out[0][2]) : null,
        make("span", { class: "quiet" }, row.block.ops.length + " operators"), make("span", { class: "time" }, time(sum)));
      node.addEventListener("click", () => { row.open ? state.open.delete(row.block.name) : state.open.add(row.block.name); drawGraph(); });
      if (!row.open) row.block.ops.forEach((i) => at.set(i, r));
    } else if (row.comm != null) {
      const comm = plan().comms[row.comm];
      node = make("li", { ...level, class: "node move" + (row.inner ? " inner" : ""), "aria-level": 2 }, comm.k + " " + comm.a + " " + bytes(comm.b / comm.n) + (comm.n > 1 ? " " + comm.n + " x" : ""), make("span", { class: "time" }, time(comm.t)));
      node.addEventListener("click", () => select({ comm: row.comm }));
      if (state.comm === row.comm) node.classList.add("selected");
    } else {
      const op = ops[row.op];
      node = make("li", { ...level, class: "node" + (row.inner ? " inner" : ""), "aria-level": row.inner ? 2 : 1 },
        make("span", { class: "name", title: op.n }, row.inner && op.n.startsWith(op.b + ".") ? op.n.slice(op.b.length + 1) : op.n), make("span", { class: "quiet" }, op.t),
        op.out.length ? chipOnly(op.out[0][2]) : null, make("span", { class: "time" }, time(op.ps + op.cm)));
      node.addEventListener("click", () => select({ op: row.op }));
      if (state.op === row.op) node.classList.add("selected");
      at.set(row.op, r);
    }
    node.addEventListener("keydown", (event) => treeKey(event, node));
    list.append(node);
  });
  if (list.firstChild) list.firstChild.tabIndex = 0;
  const box = document.getElementById("graph"), top = box.scrollTop;
  box.replaceChildren(make("div", { class: "rows" }, list));
  box.scrollTop = top;
  drawEdges(list, at);
}
function drawEdges(list, at) {
  const nodes = [...list.children], seen = new Set(), arcs = [];
  for (const [from, to] of plan().edges) {
    const a = at.get(from), b = at.get(to);
    if (a == null || b == null || a === b || seen.has(a + "," + b)) continue;
    seen.add(a + "," + b);
    arcs.push({ a, b, on: from === state.op || to === state.op });
  }
  arcs.sort((x, y) => Math.abs(x.b - x.a) - Math.abs(y.b - y.a));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "edges"); svg.setAttribute("height", list.scrollHeight); svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", nodes.length + " rows, " + arcs.length + " edges");
  const middle = nodes.map((node) => node.offsetTop + node.offsetHeight / 2), lanes = [];
  for (const arc of arcs.slice(0, 3000)) {
    const low = Math.min(arc.a, arc.b), high = Math.max(arc.a, arc.b);
    let lane = lanes.findIndex((spans) => spans.every(([x, y]) => high <= x || low >= y));
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push([low, high]);
    const x = Math.min(8 + 7 * lane, 124), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M0 ${middle[arc.a] + 3}H${x - 4}q4 0 4 4V${middle[arc.b] - 7}q0 4 -4 4H0m5 -3l-5 3l5 3`);
    if (arc.b < arc.a) path.setAttribute("d", `M0 ${middle[arc.a]}H${x}V${middle[arc.b]}H0m5 -3l-5 3l5 3`);
    if (arc.on) path.setAttribute("class", "on");
    svg.append(path);
  }
  list.parentNode.append(svg);
}
function treeKey(event, node) {
  const nodes = [...node.parentNode.querySelectorAll(".node")], at = nodes.indexOf(node), goTo = (i) => nodes[i] && nodes[i].focus();
  if (event.key === "ArrowDown") goTo(at + 1);
  else if (event.key === "ArrowUp") goTo(at - 1);
  else if (event.key === "Home") goTo(0);
  else if (event.key === "End") goTo(nodes.length - 1);
  else if (event.key === "Enter" || event.key === " " || (event.key === "ArrowRight" && node.getAttribute("aria-expanded") === "false") || (event.key === "ArrowLeft" && node.getAttribute("aria-expanded") === "true")) {
    node.click();
    const again = document.querySelectorAll("#graph .node")[at];
    if (again) again.focus();
  } else return;
  event.preventDefault();
}

// --- what is selected --------------------------------------------------------------------------------------------------
function drawDetails() {
  const box = document.getElementById("details");
  if (state.comm != null) return box.replaceChildren(...commDetails(plan().comms[state.comm]));
  if (state.op == null) return box.replaceChildren(make("p", { class: "quiet" }, "Select an operator or a redistribution, here or in the timeline or a table."));
  const op = plan().ops[state.op];
  const side = ([name, shape, layout, local]) => make("tr", {}, make("td", { class: "mono" }, name), make("td", {}, chip(layout)), make("td", { class: "mono n" }, shape), make("td", { class: "mono n" }, local));
  const comms = plan().comms.filter((comm) => comm.to === state.op);
  const related = plan().ops.map((other, i) => [other, i]).filter(([other, i]) => other.f === state.op || (op.f != null && (i === op.f)));
  const parts = [
    make("h3", {}, op.n + (op.c > 1 ? "  " + op.c + " x" : "")),
    make("p", {}, op.t + ", " + words[op.p] + (op.at ? ", " + op.at : "") + ": " + op.by),
    make("p", {}, make("b", {}, op.s)),
    make("table", {}, make("tr", {}, ["tensor", "layout", "shape", "on a device"].map((text, i) => make("th", { class: i > 1 ? "n" : null }, text))), op.in.map(side), make("tr", {}, make("th", { colspan: 4 }, "gives")), op.out.map(side)),
    make("p", {}, "compute " + time(op.ps) + ", its collectives " + time(op.cm) + " of a step" + (op.c > 1 ? ", all copies" : "")),
  ];
  if (comms.length) parts.push(make("h3", {}, "collectives"), ...comms.map((comm) => make("p", {}, comm.n + " x " + comm.k + " " + comm.a + " of " + comm.w + ", " + bytes(comm.b / comm.n) + " each, " + time(comm.t), comm.x ? make("span", { class: "mono quiet" }, " " + comm.x + " -> " + comm.y) : null)));
  if (op.g) parts.push(make("h3", {}, "which ranks hold what of its result"), make("pre", {}, op.g));
  if (op.alt) parts.push(make("h3", {}, "forced instead, the rest searched again"), table([
    { name: "strategy", value: (row) => row[0] }, { name: "step", value: (row) => row[1], show: (v) => signed(time(v), v) },
    { name: "peak", value: (row) => row[2], show: (v) => signed(bytes(v), v) }, { name: "because", value: (row) => row[3] }], op.alt));
  else parts.push(make("p", { class: "quiet" }, "what its alternatives would cost: ", make("code", {}, "shardplan explain " + data.file + " " + op.full)));
  if (related.length) parts.push(make("h3", {}, "forward and backward"), ...related.map(([other, i]) => make("p", {}, make("a", { href: "#", on: { click: (event) => { event.preventDefault(); select({ op: i }); } } }, other.n), " " + other.s)));
  box.replaceChildren(...parts);
}
function commDetails(comm) {
  return [make("h3", {}, comm.k + " " + comm.a), make("p", {}, "of " + comm.w + (comm.why ? ": " + comm.why : "")),
    comm.x ? make("p", {}, chip(comm.x), make("br"), "becomes ", chip(comm.y)) : null,
    make("p", {}, comm.n + " a step, " + bytes(comm.b / comm.n) + " each, " + time(comm.t) + " together"),
    comm.to != null ? make("p", {}, "for ", make("a", { href: "#", on: { click: (event) => { event.preventDefault(); select({ op: comm.to }); } } }, plan().ops[comm.to].n)) : null].filter((part) => part);
}

// --- timeline and memory, on one axis of time -----------------------------------------------------------------------------
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/// What an item of the timeline shows: the position of an operator or of a collective, null if it shows the other.
const opOf = (item) => item[3] >= 0 ? item[3] : null, commOf = (item) => item[3] < 0 ? -1 - item[3] : null;
/// What is seen of the step, from and to, and the step's end, in nanoseconds.
function span() { const end = Math.max(1, plan().step / 1000); return [state.from * end, state.to * end, end]; }
/// With micro-batches only the first run of the loop is listed: a box where the others run.
function drawLoop(pen, x, width, loop, top, bottom) {
  if (!loop) return;
  const a = Math.max(x(loop[0]), margin), b = Math.min(x(loop[1]), width), text = plan().micro_batches - 1 + (plan().micro_batches > 2 ? " more runs" : " more run") + " of the loop";
  if (b <= a) return;
  pen.globalAlpha = 1; pen.strokeStyle = colour("--line"); pen.fillStyle = colour("--quiet"); pen.strokeRect(a + 0.5, top + 5.5, b - a - 1, bottom - top - 11);
  if (b - a > pen.measureText(text).width + 12) pen.fillText(text, (a + b - pen.measureText(text).width) / 2, (top + bottom) / 2 + 4);
}
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio); pen.clearRect(0, 0, width, height); pen.font = "12px system-ui"; pen.fillStyle = colour("--text");
  return [pen, width];
}
const margin = 76;
function drawTimeline() {
  const canvas = document.getElementById("timeline"), lanes = plan().lanes, row = 30, [pen, width] = prepare(canvas, row * lanes.length + 18), [from, to] = span();
  const x = (t) => margin + (t - from) / (to - from) * (width - margin);
  lanes.forEach((lane, i) => { pen.fillStyle = colour("--text"); pen.fillText(lane, 6, row * i + 19); });
  for (const item of plan().timeline) {
    const [lane, start, length, , critical] = item, op = opOf(item), comm = commOf(item);
    if (start + length < from || start > to) continue;
    const a = Math.max(x(start), margin), b = Math.max(x(start + length), a + 0.6);
    const on = comm == null ? op === state.op : comm === state.comm || plan().comms[comm].to === state.op && state.op != null;
    const axis = plan().axes.findIndex((entry) => entry[0] === lanes[lane]);
    pen.fillStyle = on ? colour("--error") : comm == null ? colour("--bar" + plan().ops[op].p) : colour("--axis" + Math.max(axis, 0) % 4);
    pen.fillRect(a, row * lane + 5, b - a, row - 10);
    if (critical) { pen.fillStyle = colour("--text"); pen.fillRect(a, row * lane + row - 4, b - a, 2); }
  }
  if (plan().loops) plan().loops.forEach((loop, i) => drawLoop(pen, x, width, loop, row * i, row * (i + 1)));
  else drawLoop(pen, x, width, plan().loop, 0, row * lanes.length);
  if (state.brush && state.brush[0] < to && state.brush[1] > from) {
    const a = Math.max(x(state.brush[0]), margin), b = Math.min(x(state.brush[1]), width);
    pen.fillStyle = pen.strokeStyle = colour("--focus"); pen.globalAlpha = 0.15; pen.fillRect(a, 0, b - a, row * lanes.length); pen.globalAlpha = 1; pen.strokeRect(a + 0.5, 0.5, b - a - 1, row * lanes.length - 1);
  }
  pen.fillStyle = colour("--quiet");
  pen.fillText(time(from * 1000), margin, row * lanes.length + 13);
  const right = time(to * 1000); pen.fillText(right, width - pen.measureText(right).width - 4, row * lanes.length + 13);
}
function drawMemory() {
  const height = 130, [pen, width] = prepare(document.getElementById("memory"), height), [from, to] = span(), p = plan();
  const top = Math.max(p.peak, 1) * 1.1, x = (t) => margin + (t - from) / (to - from) * (width - margin), y = (b) => height - 16 - b / top * (height - 26);
  pen.fillStyle = colour("--memory"); pen.globalAlpha = 0.55; pen.beginPath(); pen.moveTo(margin, y(0));
  let last = null, isBehind = false;
  for (const [t, b] of p.memory) {
    if (p.loop && t > p.loop[0] && t < p.loop[1]) continue;
    if (p.loop && t >= p.loop[1] && !isBehind) { for (const [end, bytes] of [[p.loop[0], last || 0], [p.loop[0], 0], [p.loop[1], 0]]) pen.lineTo(Math.max(x(end), margin), y(bytes)); last = null; isBehind = true; }
    if (last != null) pen.lineTo(Math.max(x(t), margin), y(last));
    pen.lineTo(Math.max(x(t), margin), y(b)); last = b;
  }
  pen.lineTo(width, y(last || 0)); pen.lineTo(width, y(0)); pen.fill(); pen.globalAlpha = 1;
  drawLoop(pen, x, width, p.loop, 0, height - 10);
  pen.strokeStyle = colour("--error"); pen.beginPath(); pen.moveTo(x(p.peak_at), 4); pen.lineTo(x(p.peak_at), height - 16); pen.stroke();
  pen.fillStyle = colour("--text"); pen.fillText(bytes(p.peak), 6, y(p.peak) + 4); pen.fillText("peak", Math.min(x(p.peak_at) + 4, width - 30), 14);
}
/// The tables show what runs within a span of time, [begin, end) in nanoseconds; null: all.
function brush(from, to) {
  state.brush = to > from ? [from, to] : null; state.within = null;
  if (state.brush) {
    state.within = { ops: new Set(), comms: new Set() };
    for (const item of plan().timeline) {
      if (item[1] >= to || item[1] + item[2] <= from) continue;
      if (commOf(item) == null) state.within.ops.add(opOf(item)); else state.within.comms.add(commOf(item));
    }
  }
  remember(); drawTimeline(); drawBrush(); tables.forEach((entry) => entry.redraw());
}
function drawBrush() {
  for (const box of document.querySelectorAll(".brushed")) {
    if (!state.brush) { box.replaceChildren(); continue; }
    box.replaceChildren("from " + time(state.brush[0] * 1000) + " to " + time(state.brush[1] * 1000) + ": " + counted(state.within.ops.size, "operator") + " and " + counted(state.within.comms.size, "collective") + " run in it ",
      make("button", { on: { click: () => brush(0, 0) } }, "show all"));
  }
}
function zoom(factor, middle) {
  const width = Math.min(1, (state.to - state.from) * factor), at = middle ?? (state.from + state.to) / 2;
  state.from = Math.max(0, Math.min(1 - width, at - (at - state.from) * factor)); state.to = state.from + width;
  drawTimeline(); drawMemory();
}
function pan(share) { const width = state.to - state.from; state.from = Math.max(0, Math.min(1 - width, state.from + share * width)); state.to = state.from + width; drawTimeline(); drawMemory(); }
function timeAt(canvas, clientX) { const box = canvas.getBoundingClientRect(), [from, to] = span(); return from + Math.max(0, Math.min(1, (clientX - box.left - margin) / (box.width - margin))) * (to - from); }
function timelineAt(event) {
  const canvas = event.currentTarget, box = canvas.getBoundingClientRect(), [from, to] = span(), t = timeAt(canvas, event.clientX);
  const lane = Math.floor((event.clientY - box.top) / 30), slack = (to - from) / box.width;
  return plan().timeline.find((item) => item[0] === lane && item[1] - slack <= t && t <= item[1] + item[2] + slack);
}
function timelineKey(event) {
  const items = plan().timeline;
  if (event.key === "+" || event.key === "=") zoom(0.5); else if (event.key === "-") zoom(2);
  else if (event.key === "ArrowLeft") pan(-0.2); else if (event.key === "ArrowRight") pan(0.2);
  else if (event.key === "s") brush(span()[0], state.brush && state.brush[0] === span()[0] && state.brush[1] === span()[1] ? 0 : span()[1]);
  else if (event.key === ".") { const item = items.find((entry) => state.comm != null ? commOf(entry) === state.comm : state.op != null && opOf(entry) === state.op); if (item) { const end = span()[2]; state.from = Math.max(0, (item[1] - 4 * item[2]) / end); state.to = Math.min(1, (item[1] + 5 * item[2]) / end); drawTimeline(); drawMemory(); } }
  else return;
  event.preventDefault();
}

// --- the page -----------------------------------------------------------------------------------------------------------
let tables = [];
function select(what) {
  state.op = what.op ?? null; state.comm = what.comm ?? null;
  if (state.op != null) { const op = plan().ops[state.op]; if (op.p !== 0 && op.f == null) state.backward = true; state.open.add(op.p === 0 ? op.b : words[op.p] + " of " + op.b); }
  remember(); drawGraph(); drawDetails(); drawTimeline();
}
function remember() {
  const parts = ["plan=" + state.plan];
  if (state.op != null) parts.push("op=" + encodeURIComponent(plan().ops[state.op].n));
  if (state.brush) parts.push("span=" + state.brush.map(Math.round).join("-"));
  if (document.documentElement.dataset.theme) parts.push("theme=" + document.documentElement.dataset.theme);
  history.replaceState(null, "", "#" + parts.join("&"));
}
function recall() {
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.split("=");
    if (key === "plan" && data.plans[+value]) state.plan = +value;
    if (key === "theme" && value) document.documentElement.dataset.theme = value;
  }
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.split("=");
    if (key === "op") { const at = plan().ops.findIndex((op) => op.n === decodeURIComponent(value)); if (at >= 0) { state.op = at; state.open.add(plan().ops[at].b); } }
  }
}
function showPlan(i) { state.plan = i; state.op = state.comm = state.brush = state.within = null; state.from = 0; state.to = 1; draw(); remember(); }
const keys = [["/", "search: words of name*, op:MatMul, axis:NAME, partial, user, >1ms; all must hold"], ["1 to 6", "sections"], ["l, then 0 1 2 ...", "plan"], ["n p", "next, previous collective by cost"], ["b", "backward and update operators in the graph"], ["arrows, Enter", "in the graph: move, fold, select"], ["+ - . arrows", "in the timeline: zoom, to the selection, pan"], ["s", "in the timeline: the tables show what runs in what is seen of it; again: all"], ["Esc", "close, clear"], ["?", "this table"]];
function help() {
  const open = document.querySelector(".help");
  if (open) return open.remove();
  const box = make("div", { class: "help", role: "dialog", "aria-label": "keys", tabindex: "-1" }, make("h2", {}, "Keys"), make("table", {}, keys.map(([key, what]) => make("tr", {}, make("td", { class: "mono" }, key), make("td", {}, what)))), make("button", { on: { click: help } }, "close"));
  document.body.append(box); box.focus();
}
function theme() {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark"; remember(); drawTimeline(); drawMemory();
}
function section(number, title, ...children) { return make("section", { id: "s" + number, "aria-label": title }, make("h2", { tabindex: "-1" }, title), ...children); }
function bar(share, name, text) { const inner = make("div", { class: "bar " + (name || "") }, text); inner.style.width = Math.max(0, Math.min(1, share)) * 100 + "%"; return inner; }

/// What the end of the step waits for, in classes.
function pathTable() {
  const p = plan(), all = (row) => row[1] + row[2] + row[3];
  if (!p.path.length) return null;
  return make("div", {}, make("h3", {}, "critical path"), table([{ name: "through", value: (row) => row[0] }, ...words.map((name, i) => ({ name, value: (row) => row[i + 1], show: time })),
    { name: "step", value: all, show: time }, { name: "lost to what runs beside it", value: (row) => row[4], show: time }, { name: "of the step", value: all, show: (v) => digits(100 * v / p.step) + " %" }], p.path));
}
function levelTable() {
  const most = Math.max(...data.rows.map((row) => row[2])), mostBytes = Math.max(...data.rows.map((row) => row[6]));
  return table([
    { name: "plan", value: (row) => row[0], draw: (row) => { const i = data.plans.findIndex((entry) => entry.name === row[0]); return i < 0 ? row[0] : make("a", { href: "#plan=" + i, on: { click: (event) => { event.preventDefault(); showPlan(i); } } }, row[0]); } },
    { name: "for", value: (row) => row[1] }, { name: "step", value: (row) => row[2], show: time }, { name: "compute", value: (row) => row[3], show: time },
    { name: "communication", value: (row) => row[4], show: time }, { name: "repeated", value: (row) => row[5], show: time }, { name: "peak", value: (row) => row[6], show: bytes },
    { name: "ratio", value: (row) => row[7] === "inf" ? Infinity : row[7], show: (v) => v == null ? "-" : v === Infinity ? "inf" : digits(v) },
    { name: "gap, %", value: (row) => row[8], show: (v) => v == null ? "" : (v > 0 ? Math.max(v, 0.1) : 0).toFixed(1) },
    { name: "step and memory", value: (row) => row[2], draw: (row) => make("div", {}, bar(row[2] / most), bar(row[6] / mostBytes, "m"), row[9] ? null : make("span", { class: "error" }, "does not fit")) }], data.rows);
}
/// In what plans differ: operators by row, plans by column.
function differences() {
  if (data.plans.length < 2) return null;
  const names = new Map();
  data.plans.forEach((entry, i) => entry.ops.forEach((op) => { if (!names.has(op.n)) names.set(op.n, []); names.get(op.n)[i] = op.s; }));
  const rows = [...names].filter(([, list]) => data.plans.some((entry, i) => list[i] !== list[0]));
  const box = make("div", {}, make("h3", {}, "what differs"), make("p", { class: "quiet" }, names.size - rows.length + " operators agree"));
  if (rows.length) box.append(table([{ name: "operator", value: (row) => row[0] }, ...data.plans.map((entry, i) => ({ name: entry.name, value: (row) => row[1][i] || "-" }))], rows));
  return box;
}
function draw() {
  const p = plan(), ops = p.ops;
  const pickOp = (row) => select({ op: ops.indexOf(row) });
  const search = make("input", { id: "search", type: "search", "aria-label": "search operators", placeholder: "name*, op:MatMul, >1ms (?: more)", value: state.query, size: 44, on: { input: (event) => { state.query = event.target.value; drawGraph(); tables.forEach((entry) => entry.redraw()); } } });
  const opTable = table([{ name: "operator", value: (op) => op.n }, { name: "type", value: (op) => op.t }, { name: "pass", value: (op) => words[op.p] }, { name: "copies", value: (op) => op.c, show: String }, { name: "strategy", value: (op) => op.s }, { name: "result", value: (op) => (op.out[0] || ["", "", ""])[2], draw: (op) => op.out.length ? chip(op.out[0][2]) : "" }, { name: "compute", value: (op) => op.ps, show: time }, { name: "communication", value: (op) => op.cm, show: time }], ops, { filter: (op, i) => matches(op) && (!state.within || state.within.ops.has(i)), order: 6, pick: pickOp });
  const commTable = table([{ name: "collective", value: (c) => c.k }, { name: "axes", value: (c) => c.a }, { name: "of", value: (c) => c.w }, { name: "for", value: (c) => c.to == null ? "" : ops[c.to].n }, { name: "times", value: (c) => c.n, show: String }, { name: "each", value: (c) => c.b / c.n, show: bytes }, { name: "time", value: (c) => c.t, show: time }], p.comms, { filter: (c, i) => !state.within || state.within.comms.has(i), order: 6, pick: (row) => select({ comm: p.comms.indexOf(row) }) });
  const storedTable = table([{ name: "tensor", value: (row) => row[0] }, { name: "kind", value: (row) => row[1] }, { name: "shape", value: (row) => row[2] }, { name: "stored", value: (row) => row[3], draw: (row) => chip(row[3]) }, { name: "copies", value: (row) => row[6], show: String }, { name: "per device", value: (row) => row[4], show: bytes }, { name: "whole", value: (row) => row[5], show: bytes }], p.stored, { order: 5 });
  const aliveTable = table([{ name: "tensor", value: (row) => row[0] }, { name: "kind", value: (row) => row[1] }, { name: "layout", value: (row) => row[2], draw: (row) => chip(row[2]) }, { name: "values", value: (row) => row[4], show: String }, { name: "per device", value: (row) => row[3], show: bytes }], p.alive, { order: 4 });
  tables = [opTable, commTable];
  const fits = p.peak <= p.usable, figure = (name, text, cls) => make("span", {}, make("span", { class: "quiet" }, name + " "), make("b", { class: cls }, text));
  const sections = [
    section(1, "Summary", make("div", { class: "figures" }, figure(fits ? "fits" : "does not fit", bytes(p.peak) + " of " + bytes(p.usable), fits ? "" : "error"), figure("step", time(p.step)), figure("compute", time(p.compute)), figure("communication", time(p.communication)), figure("exposed", time(p.step - p.compute)), figure("ratio", p.ratio), p.gap ? figure("gap", p.gap + " %") : null, ...data.rows.filter((row) => row[0] === "data_parallel").map((row) => figure("data parallel", time(row[2]) + (row[9] ? "" : ", does not fit")))),
      make("div", { class: "split", role: "img", "aria-label": "of the step, compute and exposed communication" }, bar(p.compute / p.step, "", "compute"), bar(1 - p.compute / p.step, "x", p.compute < 0.88 * p.step ? "exposed" : "")), p.short ? make("p", {}, p.short) : null, p.micro_batches > 1 ? make("p", { class: "quiet" }, p.micro_batches + " micro-batches a step: the timeline shows the first run of the loop") : null,
      make("details", {}, make("summary", {}, "as the terminal shows it"), document.getElementById("text").content.cloneNode(true))),
    section(2, "Graph", make("p", {}, search, " ", make("button", { "aria-pressed": String(state.backward), on: { click: () => { state.backward = !state.backward; draw(); } } }, "backward and update"), " ", ...p.axes.map((axis, i) => make("span", { class: "chip key" }, make("i", { class: "a" + i % 4 }, letters()[i]), make("i", {}, axis[0] + "=" + axis[1])))),
      make("div", { class: "columns" }, make("div", { class: "scroll", id: "graph" }), make("div", { class: "panel scroll", id: "details", "aria-live": "polite" }))),
    section(3, "Timeline", make("canvas", { id: "timeline", tabindex: "0", role: "img", "aria-label": "timeline of one step: " + p.timeline.length + " instructions in lanes " + p.lanes.join(", ") }), make("p", { class: "quiet" }, (p.lanes[0] === "compute" ? "" : "a lane is all that a worker does; ") + "compute: forward in full colour, backward paler, update palest; wheel or + - zooms, drag pans, Shift and drag, or s, filters the tables by time" + (p.path.length ? "; underlined is what the critical path runs through" : "")), make("p", { class: "brushed", "aria-live": "polite" }), pathTable()),
    section(4, "Memory", make("canvas", { id: "memory", role: "img", "aria-label": "bytes in use over the step, at most " + bytes(p.peak) }), make("h3", {}, "alive at the peak, " + time(p.peak_at * 1000)), aliveTable),
    section(5, "Plans side by side", levelTable(), differences()),
    section(6, "Tables", make("p", { class: "brushed" }), make("details", { open: true }, make("summary", {}, ops.reduce((sum, op) => sum + op.c, 0) + " operators"), opTable), make("details", { open: true }, make("summary", {}, p.comms.reduce((sum, c) => sum + c.n, 0) + " collectives a step"), commTable), make("details", { open: true }, make("summary", {}, "where each tensor is stored"), storedTable)),
  ];
  const titles = ["Summary", "Graph", "Timeline", "Memory", "Plans", "Tables"];
  document.body.replaceChildren(
    make("a", { class: "skip", href: "#s1" }, "to the content"),
    make("header", {}, make("h1", {}, data.model), make("span", {}, (data.training ? "training" : "inference") + " on " + data.cluster + ", " + data.devices + (data.devices === 1 ? " device" : " devices") + (data.mesh ? ", " + data.mesh : "")),
      make("span", { role: "group", "aria-label": "plan" }, data.plans.map((entry, i) => make("button", { "aria-pressed": String(i === state.plan), on: { click: () => showPlan(i) } }, entry.name))),
      make("button", { on: { click: theme } }, "light / dark"), make("button", { on: { click: help }, "aria-label": "keys" }, "?")),
    make("nav", { "aria-label": "sections" }, titles.map((title, i) => make("a", { href: "#s" + (i + 1), on: { click: (event) => { event.preventDefault(); jump(i + 1); } } }, i + 1 + " " + title))),
    make("main", {}, sections), ...document.querySelectorAll("template, script"));
  drawGraph(); drawDetails(); drawTimeline(); drawMemory(); drawBrush();
  const canvas = document.getElementById("timeline");
  let held = null;
  let begun = null, isBrushed = false;
  canvas.addEventListener("click", (event) => { if (isBrushed) return; const item = timelineAt(event); if (item) select({ op: opOf(item), comm: commOf(item) }); });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); const box = canvas.getBoundingClientRect(); zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, state.from + (event.clientX - box.left - margin) / (box.width - margin) * (state.to - state.from)); }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { held = event.clientX; isBrushed = event.shiftKey; begun = isBrushed ? timeAt(canvas, held) : null; });
  canvas.addEventListener("pointermove", (event) => { if (begun != null && event.buttons) { const at = timeAt(canvas, event.clientX); brush(Math.min(begun, at), Math.max(begun, at)); } else if (held != null && event.buttons) { pan((held - event.clientX) / canvas.clientWidth); held = event.clientX; } });
  canvas.addEventListener("keydown", timelineKey);
}
function jump(number) { const head = document.querySelector("#s" + number + " h2"); head.scrollIntoView(); head.focus(); }
let levelKey = false;
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { const open = document.querySelector(".help"); if (open) open.remove(); else { select({}); if (state.brush) brush(0, 0); document.activeElement.blur(); } return; }
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (levelKey && /^\d$/.test(event.key)) { levelKey = false; if (data.plans[+event.key]) showPlan(+event.key); return; }
  levelKey = event.key === "l";
  const costs = plan().comms.map((comm, i) => [comm.t, i]).sort((a, b) => b[0] - a[0]).map((entry) => entry[1]), at = costs.indexOf(state.comm);
  if (event.key === "/") { event.preventDefault(); document.getElementById("search").focus(); }
  else if (/^[1-6]$/.test(event.key)) jump(event.key);
  else if (event.key === "n" && costs.length) select({ comm: costs[(at + 1) % costs.length] });
  else if (event.key === "p" && costs.length) select({ comm: costs[(at + costs.length - 1) % costs.length] });
  else if (event.key === "b") { state.backward = !state.backward; draw(); }
  else if (event.key === "?") help();
});
addEventListener("resize", () => { drawTimeline(); drawMemory(); });
recall();
draw();
const asked = location.hash.match(/[#&]span=(\d+)-(\d+)/);
if (asked) brush(+asked[1], +asked[2]);
