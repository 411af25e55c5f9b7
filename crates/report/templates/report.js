// Filters, ratios to a baseline, and sorting. The report is complete without scripts: this one hides,
// sorts, and converts values of the page, and computes no statistics. Ratios are those of the
// rankings, from the element #ratios.
(() => {
  "use strict";
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const data = JSON.parse(document.getElementById("ratios").textContent);
  const names = data.filesystems;
  const isMeasured = (_, index) => data.measured.includes(index);
  const about = (element) => {
    const [label, parameters] = data.points[element.dataset.point];
    return { label, parameters };
  };
  const points = all("section.point").map((section) => ({
    section,
    ...about(section),
    tests: all("section.test", section),
  }));
  const tests = points.flatMap((point) => point.tests);

  // Values of the parameters that vary, in the order of the page.
  const varied = new Map();
  for (const { parameters } of points) {
    for (const [name, value] of Object.entries(parameters)) {
      if (!varied.has(name)) varied.set(name, new Set());
      varied.get(name).add(value);
    }
  }
  for (const [name, values] of varied) if (values.size < 2) varied.delete(name);

  // ---- Controls ----

  const option = (value, text = value) => make("option", { value }, text);
  const labelled = (text, control) => make("label", {}, make("span", {}, text), control);
  const workload = make("input", { type: "search", id: "filter-workload", autocomplete: "off" });
  const baseline = make("select", { id: "baseline" }, option("", "none"),
    ...names.filter(isMeasured).map((name) => option(name)));
  const boxes = names.map((name) => {
    const box = make("input", { type: "checkbox", name: "filesystem", value: name });
    box.checked = true;
    return box;
  });
  const selects = Array.from(varied, ([name, values]) =>
    make("select", { "data-parameter": name }, option("", "all"), ...Array.from(values, (value) => option(value))));
  const radios = ["absolute", "ratio"].map((value) => make("input", { type: "radio", name: "values", value }));
  radios[0].checked = true;
  const shown = make("output", { id: "shown", "aria-live": "polite" });
  const reset = make("button", { type: "button", id: "reset" }, "Reset");
  const glyphs = all(".legend li").map((item) => item.querySelector("svg"));
  const glyph = (index) => glyphs[index].cloneNode(true);
  // Class and marker of a filesystem in charts; see svg/looks.rs.
  const [colorOf, markerOf] = [(index) => `s${index % 18}`, (index) => `#m${index % 18}`];
  const named = (box, index) => make("label", {}, box, glyph(index), names[index]);
  const form = make("form", { id: "controls", "aria-label": "Filter and compare" },
    make("fieldset", { id: "filter-filesystems" }, make("legend", {}, "Filesystems"), ...boxes.map(named).filter(isMeasured)),
    make("div", { class: "row" },
      labelled("Workload or test", workload),
      ...selects.map((select) => labelled(select.dataset.parameter, select)),
      labelled("Baseline", baseline),
      make("fieldset", {}, make("legend", {}, "Values"),
        make("label", {}, radios[0], "absolute"), make("label", {}, radios[1], "ratio")),
      reset, shown));
  const filters = make("details", { id: "filters" }, make("summary", {}, "Filter and compare"), form);

  const state = () => ({
    hidden: names.filter((_, index) => !boxes[index].checked),
    words: workload.value.trim().toLowerCase().split(/\s+/).filter(Boolean),
    parameters: selects.filter((select) => select.value).map((select) => [select.dataset.parameter, select.value]),
    baseline: baseline.value,
    ratio: radios[1].checked,
  });

  // ---- Visibility ----

  const matches = (text, words) => words.every((word) => text.toLowerCase().includes(word));
  const has = (parameters, wanted) => wanted.every(([name, value]) => parameters[name] === value);

  const figures = all("figure[data-point]").map((figure) => ({
    figure,
    ...about(figure),
    heads: all("caption, figcaption strong, th", figure).map((head) => head.textContent).join(" "),
  }));

  function filterTests({ words, parameters }) {
    let count = 0;
    for (const point of points) {
      const wanted = has(point.parameters, parameters);
      let some = wanted && !point.tests.length && matches(point.label, words);
      for (const test of point.tests) {
        const visible = wanted && matches(`${point.label} ${test.dataset.name}`, words);
        test.hidden = !visible;
        some ||= visible;
        count += visible;
      }
      point.section.hidden = !some;
    }
    for (const { figure, label, parameters: own, heads } of figures) {
      figure.hidden = !(has(own, parameters) && matches(`${label} ${heads}`, words));
    }
    return count;
  }

  const parts = all("main [data-filesystem]").filter((element) => element.tagName !== "TH");
  const columns = all("thead th[data-filesystem]").map((head) => ({
    head,
    cells: Array.from(head.closest("table").tBodies[0].rows, (row) => row.cells[head.cellIndex]).filter(Boolean),
  }));
  const marks = make("style");
  document.head.append(marks);
  const series = (index) => `.plot .chart .${colorOf(index)}, .plot .chart [href="${markerOf(index)}"]`;
  let labels = null;

  function filterFilesystems({ hidden }) {
    const away = new Set(hidden);
    for (const element of parts) element.toggleAttribute("hidden", away.has(element.dataset.filesystem));
    for (const { head, cells } of columns) {
      const hide = away.has(head.dataset.filesystem);
      head.hidden = hide;
      for (const cell of cells) if (cell.colSpan === 1) cell.hidden = hide;
    }
    const classes = names.map((name, index) => (away.has(name) ? series(index) : "")).filter(Boolean);
    marks.textContent = classes.length ? `${classes.join(", ")} { display: none; }` : "";
    if (away.size || labels) {
      labels ||= all(".plot .chart text").filter((text) => names.includes(text.textContent));
      for (const text of labels) text.toggleAttribute("hidden", away.has(text.textContent));
    }
  }

  // ---- Ratios ----

  const GLYPHS = { a: "▲", u: "▲", n: "=", e: "=" };
  const MIRROR = { "▲": "▼" };
  const label = (letter, side) => ({
    a: `${side} by at least ${data.within}`,
    u: `${side}, effect size uncertain`,
    n: `${side} by less than ${data.within}`,
    e: `equivalent within ${data.within}`,
    c: "not significant after adjustment",
    r: "inconclusive: median and test disagree",
    d: "inconclusive: methods disagree",
    i: "inconclusive",
  })[letter];

  // Short form next to the interval.
  const SHORT = { a: "> δ", u: "size uncertain", n: "< δ", e: "", c: "after adjustment", r: "test disagrees", d: "methods disagree", i: "" };

  // One filesystem relative to the baseline in a test, as compared by the ranking.
  function against(test, one, base) {
    const [, members, pairs] = data.tests[test];
    if (!members.includes(one)) return { reason: one === base ? "baseline, not ranked" : "not compared: not ranked" };
    if (one === base) return { ratio: 1, baseline: true };
    if (!members.includes(base)) return { reason: `not compared: ${names[base]} not ranked` };
    const pair = pairs.find(([a, b]) => (a === one && b === base) || (a === base && b === one));
    if (!pair) return { reason: `not compared with ${names[base]}` };
    const [better, , ratio, low, high, letter] = pair;
    const glyph = GLYPHS[letter] || "?";
    if (better === one) return { ratio, low, high, glyph, label: label(letter, "better"), short: SHORT[letter] };
    return {
      ratio: 1 / ratio,
      low: high === null ? null : 1 / high,
      high: low === null ? null : 1 / low,
      glyph: MIRROR[glyph] || glyph,
      label: label(letter, "worse"),
      short: SHORT[letter],
    };
  }

  // The interval limits the digits, as in the tables.
  function written({ ratio, low, high }) {
    if (low === null || low === undefined) return [`×${ratio.toFixed(2)}`, ""];
    const half = Math.max(high - ratio, ratio - low);
    const places = half > 0 ? Math.min(4, Math.max(0, 1 - Math.floor(Math.log10(half)))) : 3;
    const [value, from, to] = [ratio, low, high].map((number) => number.toFixed(places));
    return [`×${value}`, `[${from}, ${to}]`];
  }

  const cells = all("td[data-of]");
  function fill(cell, base) {
    const [test, one] = cell.dataset.of.split(".").map(Number);
    const found = against(test, one, base);
    let place = cell.querySelector(".rel");
    if (!place) cell.prepend((place = make("span", { class: "rel" })));
    if (found.reason) {
      delete cell.dataset.ratio;
      place.replaceChildren(make("span", { class: "why" }, found.reason));
      return;
    }
    cell.dataset.ratio = found.ratio;
    if (found.baseline) {
      place.replaceChildren(make("span", { class: "r1" }, "×1"), make("span", { class: "r2" }, "baseline"));
      return;
    }
    const [value, interval] = written(found);
    place.replaceChildren(
      make("span", { class: "r1" }, make("span", { class: "verdict", "aria-hidden": "true" }, found.glyph), ` ${value}`),
      make("span", { class: "r2" }, interval, make("span", { "aria-hidden": "true" }, ` ${found.short}`)),
      make("span", { class: "hidden" }, ` ${found.label}`));
  }

  const LEGEND = (name) =>
    `Ratios to ${name} (Hodges–Lehmann) with 95 % confidence intervals, not adjusted; above 1 is better. ▲ better, ▼ worse (> δ: by at least ${data.within}), = equivalent or negligible (< δ), ? inconclusive; all comparisons of a test Holm-adjusted at 5 %.`;

  // Tables, column heads, and row heads with cells that are converted to ratios.
  let turning = null;
  function turn() {
    turning = { captions: new Set(), units: new Set() };
    for (const cell of cells) {
      const table = cell.closest("table");
      turning.captions.add(table.caption);
      const units = [table.tHead.rows[0].cells[cell.cellIndex], cell.parentNode.cells[0]];
      for (const head of units) {
        const unit = head.querySelector(".unit");
        if (unit) turning.units.add(unit);
      }
    }
  }

  function showRatios({ baseline: name, ratio }) {
    const base = names.indexOf(name);
    const on = ratio && base >= 0;
    document.body.classList.toggle("ratio", on);
    if (on) {
      if (!turning) turn();
      for (const cell of cells) fill(cell, base);
      for (const caption of turning.captions) {
        let note = caption.querySelector(".as-ratio");
        if (!note) caption.append((note = make("span", { class: "as-ratio" })));
        note.textContent = `${LEGEND(name)} Shaded: the top group.`;
      }
    }
    if (turning) {
      for (const unit of turning.units) {
        unit.dataset.unit ??= unit.textContent;
        unit.textContent = on ? `ratio to ${name}` : unit.dataset.unit;
      }
    }
  }

  function drawAll({ baseline: name, ratio }) {
    all("figure.ratio").forEach((figure) => figure.remove());
    waiting.disconnect();
    if (!ratio || !name) return;
    // If there are many, only visible ones are drawn.
    if (tests.length <= 200) tests.forEach((test) => draw(test));
    else tests.forEach((test) => waiting.observe(test));
  }

  const waiting = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        waiting.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "100%" });

  // ---- Chart of the ratios of a test ----

  const SPACE = glyphs.length && glyphs[0] ? glyphs[0].namespaceURI : "";
  const [WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM] = [760, 128, 290, 10, 30, 46];
  const STEPS = [1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000];

  function draw(section) {
    const base = names.indexOf(baseline.value);
    const [, members] = data.tests[Number(section.dataset.test)];
    if (base < 0 || !SPACE || section.querySelector("figure.ratio")) return;
    const title = section.querySelector("h4").textContent;
    const figure = make("figure", { class: "plot ratio" });
    if (!members.includes(base)) {
      figure.append(make("figcaption", {}, `No ratios: ${names[base]} is not ranked here.`));
    } else {
      const scroll = make("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": `Chart (ratio): ${title}` });
      scroll.append(chart(Number(section.dataset.test), members, base, title));
      figure.append(scroll, make("figcaption", {},
        `${LEGEND(names[base])} Marker: ratio; line: its interval; line at 1: ${names[base]}; shaded: ${data.margin}. For n, see the table.`));
    }
    section.querySelector("h4").after(figure);
  }

  function chart(test, members, base, title) {
    const rows = members.filter((one) => boxes[one].checked).map((one) => [one, against(test, one, base)]).sort((a, b) => b[1].ratio - a[1].ratio);
    const delta = Math.log(1 + data.delta);
    const ends = rows.flatMap(([, row]) => [row.ratio, row.low, row.high].filter((end) => end > 0));
    const reach = Math.max(1.6 * delta, ...ends.map((end) => Math.abs(Math.log(end)))) * 1.06;
    const middle = (LEFT + WIDTH - RIGHT) / 2;
    const x = (ratio) => middle + (Math.log(ratio) / reach) * (WIDTH - LEFT - RIGHT) / 2;
    // As in svg.rs: horizontal positions in percent, heights in pixels.
    const share = (at) => `${(at / WIDTH * 100).toFixed(2)}%`;
    const height = TOP + rows.length * ROW + BOTTOM;
    const svg = document.createElementNS(SPACE, "svg");
    const add = (tag, attributes, text, parent = svg) => {
      const element = document.createElementNS(SPACE, tag);
      for (const [name, value] of Object.entries(attributes)) {
        element.setAttribute(name, /^(x[12]?|width)$/.test(name) ? share(value) : value);
      }
      if (text !== undefined) element.textContent = text;
      parent.append(element);
      return element;
    };
    for (const [name, value] of Object.entries({
      class: "chart", role: "img", width: WIDTH, height,
      "aria-label": `Ratios to ${names[base]}: ${title}. ` + rows.map(([one, row]) =>
        row.baseline ? `${names[one]} is the baseline` : `${names[one]} ${written(row)[0]}, ${row.label}`).join("; "),
    })) svg.setAttribute(name, value);
    const bottom = TOP + rows.length * ROW;
    const [from, to] = [x(Math.exp(-delta)), x(Math.exp(delta))];
    add("rect", { class: "z", x: from, y: TOP, width: to - from, height: bottom - TOP });
    let free = 26;
    for (const step of STEPS.filter((step) => Math.log(step) <= reach)) {
      const off = x(step) - middle;
      if (off < free) continue;
      free = off + 52;
      for (const [at, label] of [[middle + off, `×${step}`], [middle - off, `÷${step}`]]) {
        add("line", { class: "g", x1: at, y1: TOP, x2: at, y2: bottom });
        add("text", { class: "t tm", x: at, y: bottom + 16 }, label);
      }
    }
    add("line", { class: "k", x1: middle, y1: TOP, x2: middle, y2: bottom });
    add("text", { class: "t tm", x: middle, y: bottom + 16 }, "1");
    add("text", { class: "t tm ta", x: middle, y: bottom + 36 }, `ratio to ${names[base]}, logarithmic; right is better →`);
    rows.forEach(([one, row], index) => {
      const y = TOP + (index + 0.5) * ROW;
      const group = add("g", { "data-filesystem": names[one] });
      const name = names[one].length > 17 ? `${names[one].slice(0, 16)}…` : names[one];
      add("text", { class: "t te", x: LEFT - 14, y: y + 4 }, name, group);
      if (row.low > 0) add("line", { class: `i ${colorOf(one)}`, x1: x(row.low), y1: y, x2: x(row.high), y2: y }, undefined, group);
      add("use", { href: markerOf(one), x: x(row.ratio), y }, undefined, group);
      const text = row.baseline ? "×1, baseline" : `${written(row).join(" ")} ${row.short}`;
      add("text", { class: "t", x: WIDTH - RIGHT + 22, y: y + 4 }, text, group);
      if (!row.baseline) add("text", { class: "t te tb", x: WIDTH - 4, y: y + 4 }, row.glyph, group);
    });
    return svg;
  }

  // ---- State: controls and query string ----

  function query({ hidden, parameters, baseline: base, ratio }) {
    const query = new URLSearchParams();
    if (hidden.length) boxes.filter((box) => box.checked).forEach((box) => query.append("filesystem", box.value));
    if (hidden.length === names.length) query.append("filesystem", "");
    if (workload.value.trim()) query.set("workload", workload.value.trim());
    for (const [name, value] of parameters) query.set(`p.${name}`, value);
    if (base) query.set("baseline", base);
    if (ratio) query.set("values", "ratio");
    return query.toString();
  }

  function restore() {
    const query = new URLSearchParams(location.search);
    if (query.has("filesystem")) {
      const wanted = new Set(query.getAll("filesystem"));
      boxes.forEach((box) => { box.checked = wanted.has(box.value); });
    }
    workload.value = query.get("workload") || "";
    // A missing value leaves a control unchanged.
    const choose = (select, value) => {
      if (Array.from(select.options).some((option) => option.value === value)) select.value = value;
    };
    for (const select of selects) choose(select, query.get(`p.${select.dataset.parameter}`));
    choose(baseline, query.get("baseline"));
    radios[query.get("values") === "ratio" ? 1 : 0].checked = true;
  }

  const last = {};
  const changed = (part, value) => {
    const text = JSON.stringify(value);
    const differs = last[part] !== text;
    last[part] = text;
    return differs;
  };
  let count = tests.length;

  function apply() {
    // The default baseline is the first visible filesystem.
    if (radios[1].checked && !baseline.value && names.length) {
      const first = boxes.findIndex((box, index) => box.checked && isMeasured(box, index));
      baseline.value = names[Math.max(0, first)];
    }
    const now = state();
    if (changed("filesystems", now.hidden)) filterFilesystems(now);
    if (changed("tests", [now.words, now.parameters])) count = filterTests(now);
    if (changed("ratios", [now.ratio, now.ratio && now.baseline])) showRatios(now);
    if (changed("drawn", [now.ratio, now.ratio && [now.baseline, now.hidden]])) drawAll(now);
    const of = `${count} of ${tests.length} tests shown`;
    shown.textContent = now.hidden.length
      ? `${of}, ${data.measured.length - now.hidden.length} of ${data.measured.length} filesystems; letters, places, and verdicts are of all`
      : of;
    const text = query(now);
    if (changed("query", text) && text !== location.search.slice(1)) {
      // Some browsers forbid it for files; the state then has no URL.
      try { history.replaceState(null, "", (text ? `?${text}` : location.pathname) + location.hash); } catch { /* no address */ }
    }
  }

  function clear() {
    boxes.forEach((box) => { box.checked = true; });
    workload.value = "";
    selects.concat(baseline).forEach((select) => { select.value = ""; });
    radios[0].checked = true;
    apply();
  }

  if (points.length) {
    document.querySelector("nav").after(filters);
    Object.assign(last, { filesystems: "[]", tests: "[[],[]]", ratios: "[false,false]", drawn: "[false,false]", query: '""' });
    restore();
    apply();
    filters.open = last.query !== '""';
    form.addEventListener("input", apply);
    form.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    reset.addEventListener("click", clear);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  }

  // ---- Sorting ----

  function sort(table, head, column) {
    const heads = Array.from(table.tHead.rows[0].cells);
    const ratio = document.body.classList.contains("ratio");
    const key = (row) => {
      const cell = row.cells[column];
      if (!cell || cell.colSpan > 1) return null;
      // A value without a ratio to the baseline is not sorted among ratios.
      if (ratio && cell.dataset.of) return cell.dataset.ratio ? Number(cell.dataset.ratio) : null;
      const shown = cell.dataset.sort ?? cell.querySelector("b")?.textContent;
      if (shown !== undefined) return Number(shown);
      return cell.classList.contains("missing") ? null : cell.textContent.trim();
    };
    const rows = Array.from(table.tBodies[0].rows, (row) => [key(row), row]);
    const numbers = rows.some(([value]) => typeof value === "number");
    // Numbers are sorted in descending order first, text in ascending order.
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numbers;
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const wanted = numbers ? "number" : "string";
    const missing = (value) => typeof value !== wanted;
    rows.sort(([a], [b]) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const order = numbers ? a - b : a.localeCompare(b);
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  function sortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = make("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, column));
    });
  }

  // The first tables at once, others when the browser is idle.
  const later = all("table.data");
  later.splice(0, 200).forEach(sortable);
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const some = () => {
    later.splice(0, 100).forEach(sortable);
    if (later.length) idle(some);
  };
  if (later.length) idle(some);

  // In print, all details are open and all charts are shown.
  window.addEventListener("beforeprint", () => {
    all("details").forEach((details) => { details.open = true; });
    if (document.body.classList.contains("ratio")) tests.forEach(draw);
  });
})();
