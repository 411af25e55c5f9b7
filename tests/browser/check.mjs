// Looks at reports in a real browser and says what is wrong with them.
//
//   node check.mjs JOB.json
//
// JOB: { "chromium": path, "artefacts": directory, "pages": [{ "name", "file", "controls": bool }] }, where
// `controls` means that there must be those of a report, and values that cannot be compared.
// Prints one line of JSON: { "problems": [...], "looked": {...} }. Nothing is fetched from anywhere:
// every request but the page itself is refused and counted as a problem.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const job = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [360, 1280, 2560];
const SCHEMES = ["light", "dark"];
const problems = [];
const looked = { pages: 0, views: 0, charts: 0, values: 0, rules: 0, controls: 0 };

// A page of its own context, with everything it must not do written down.
async function open(browser, page, options = {}) {
  const context = await browser.newContext({ serviceWorkers: "block", ...options });
  const complain = (what) => problems.push(`${page.name}: ${what}`);
  const address = pathToFileURL(path.resolve(page.file)).href;
  const own = (url) => url.split("#")[0] === address || url.startsWith("data:");
  await context.route("**/*", (route) => {
    const url = route.request().url();
    if (own(url)) return route.continue();
    complain(`asks for ${url}`);
    return route.abort();
  });
  const tab = await context.newPage();
  tab.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complain(`console: ${message.text()}`);
  });
  tab.on("pageerror", (error) => complain(`error: ${error.message}`));
  tab.on("dialog", (dialog) => {
    complain(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  await tab.goto(address);
  return { tab, complain, close: () => context.close() };
}

// What a reader without script finds: sections with their headings, and numbers.
const contents = () => ({
  headings: [...document.querySelectorAll("main h2, main h3, main h4")]
    .map((heading) => heading.textContent.trim()),
  values: document.querySelectorAll("main td").length,
  charts: document.querySelectorAll("svg.chart").length,
});

// Charts have a size and lie within the page, or within something that scrolls sideways.
const charts = () => {
  const wrong = [];
  const all = [...document.querySelectorAll("svg.chart")];
  for (const chart of all) {
    if (chart.closest("[hidden], details:not([open])")) continue;
    const name = chart.querySelector("title")?.textContent ?? "without a title";
    const box = chart.getBoundingClientRect();
    if (!(box.width > 0 && box.height > 0)) wrong.push(`chart "${name}" has no size`);
    let region = chart.parentElement;
    while (region && !["auto", "scroll"].includes(getComputedStyle(region).overflowX)) {
      region = region.parentElement;
    }
    const right = box.right + scrollX;
    if (!region && right > innerWidth + 1) wrong.push(`chart "${name}" ends at ${Math.round(right)} px`);
  }
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) {
    const out = [...document.querySelectorAll("body *")].filter((part) => {
      const box = part.getBoundingClientRect();
      return box.width > 0 && box.right + scrollX >= wide - 1 && !part.closest(".scroll, pre, svg");
    });
    const who = out.slice(-1).map((part) => `${part.localName}.${part.className} "${part.textContent.trim().slice(0, 60)}"`);
    wrong.push(`the page scrolls sideways: ${wide} px of ${innerWidth}: ${who}`);
  }
  return { wrong, count: all.length };
};

// Charts of the file that are not XML. Programs that draw SVG read each chart separately.
const parsed = (source) => {
  const all = [];
  let depth = 0;
  let start = 0;
  for (const { 0: tag, index } of source.matchAll(/<svg[\s>]|<\/svg>/g)) {
    if (tag !== "</svg>") {
      if (depth === 0) start = index;
      depth += 1;
    } else {
      depth -= 1;
      if (depth === 0) all.push(source.slice(start, index + tag.length));
    }
  }
  const broken = all.filter((svg) => {
    const own = svg.includes("xmlns=") ? svg : svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"');
    return new DOMParser().parseFromString(own, "image/svg+xml").querySelector("parsererror");
  });
  return broken.map((svg) => svg.slice(0, 200));
};

async function look(browser, page) {
  for (const colorScheme of SCHEMES) {
    const { tab, complain, close } = await open(browser, page, { colorScheme });
    for (const width of WIDTHS) {
      await tab.setViewportSize({ width, height: 900 });
      const seen = await tab.evaluate(charts);
      seen.wrong.forEach((what) => complain(`${what} (${width} px, ${colorScheme})`));
      looked.views += 1;
      if (width === WIDTHS[0]) looked.charts += seen.count;
      const file = path.join(job.artefacts, `${page.name}-${colorScheme}-${width}.png`);
      await tab.screenshot({ path: file, animations: "disabled" });
    }
    await tab.setViewportSize({ width: 1280, height: 900 });
    await tab.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
    await tab.evaluate(axe);
    const found = await tab.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    looked.rules += found.passes.length;
    for (const violation of found.violations) {
      const where = violation.nodes.slice(0, 3).map((node) => node.target.join(" ")).join("; ");
      const why = violation.nodes[0].failureSummary?.replace(/\s+/g, " ").slice(0, 300);
      complain(`axe ${violation.id} (${colorScheme}), ${violation.nodes.length}x: ${where}: ${why}`);
    }
    if (colorScheme === "light") {
      const source = fs.readFileSync(page.file, "utf8");
      (await tab.evaluate(parsed, source)).forEach((svg) => complain(`no XML: ${svg}`));
      const pdf = await tab.pdf({ format: "A4", path: path.join(job.artefacts, `${page.name}.pdf`) });
      if (pdf.subarray(0, 5).toString() !== "%PDF-" || pdf.length < 10000) complain("does not print");
    }
    await close();
  }
}

async function withoutScript(browser, page) {
  const scripted = await open(browser, page);
  const seen = await scripted.tab.evaluate(contents);
  await scripted.close();
  // The harness may look even where the page may not run anything.
  const plain = await open(browser, page, { javaScriptEnabled: false });
  const bare = await plain.tab.evaluate(contents);
  const controls = await plain.tab.locator("#controls").count();
  looked.values += bare.values;
  const lost = seen.headings.filter((heading) => !bare.headings.includes(heading));
  lost.forEach((heading) => plain.complain(`without script no "${heading}"`));
  for (const what of ["values", "charts"]) {
    if (bare[what] < seen[what]) plain.complain(`without script ${bare[what]} of ${seen[what]} ${what}`);
  }
  if (controls > 0) plain.complain("controls without script, which do nothing");
  if (bare.headings.length === 0 || bare.values === 0) plain.complain("a page without contents");
  await plain.close();
}

// Moves the focus with Tab until it is on what matches; answers whether it got there.
async function tabTo(tab, selector) {
  for (let step = 0; step < 400; step += 1) {
    if (await tab.evaluate((s) => document.activeElement?.matches(s) ?? false, selector)) return true;
    await tab.keyboard.press("Tab");
  }
  return false;
}

// What stands in the cells that turn into ratios, against the comparisons that the page holds.
const ratios = () => {
  const { filesystems, tests } = JSON.parse(document.getElementById("ratios").textContent);
  const base = filesystems.indexOf(document.getElementById("baseline").value);
  const seen = { told: 0, uncompared: 0, wrong: [] };
  for (const cell of document.querySelectorAll("td[data-of]")) {
    const [test, one] = cell.dataset.of.split(".").map(Number);
    const where = `${tests[test][0]} of ${filesystems[one]}`;
    const rel = cell.querySelector(".rel");
    if (!rel || getComputedStyle(rel).display === "none") {
      seen.wrong.push(`none at ${where}`);
      continue;
    }
    if (getComputedStyle(cell.querySelector("b")).display !== "none") seen.wrong.push(`the value stays at ${where}`);
    const text = rel.querySelector(".r1")?.textContent;
    const [, members, pairs] = tests[test];
    const pair = pairs.find((pair) => pair.slice(0, 2).includes(one) && pair.slice(0, 2).includes(base));
    if (one === base && members.includes(one)) {
      if (text !== "×1") seen.wrong.push(`"${text}" at the baseline, ${where}`);
    } else if (!members.includes(one) || !members.includes(base) || !pair) {
      seen.uncompared += 1;
      if (text || !rel.querySelector(".why")?.textContent) seen.wrong.push(`no reason at ${where}`);
    } else {
      seen.told += 1;
      const [better, , ratio, , , letter] = pair;
      const expected = better === one ? ratio : 1 / ratio;
      const apart = better === one ? "▲" : "▼";
      const glyph = { a: apart, u: apart, n: "=", e: "=" }[letter] ?? "?";
      const [, said, number, digits = ""] = text?.match(/^([▲▼=?]) ×(\d+(?:\.(\d+))?)$/) ?? [];
      if (said !== glyph) seen.wrong.push(`"${text}" at ${where} for the verdict "${letter}"`);
      const half = 0.5001 * 10 ** -digits.length;
      if (!(Math.abs(Number(number) - expected) <= half)) seen.wrong.push(`"${text}" at ${where} for ${expected}`);
    }
  }
  return seen;
};

// Every column that has ratios sorts by them, down and up, and what has none stands last.
const sortedRatios = () => {
  const seen = { columns: 0, uncompared: 0, wrong: [] };
  const { filesystems, tests } = JSON.parse(document.getElementById("ratios").textContent);
  const base = filesystems.indexOf(document.getElementById("baseline").value);
  // Unrounded: what is shown has as many digits as its interval allows.
  const number = (row, column) => {
    const cell = row.cells[column];
    if (!cell?.dataset.of || !cell.querySelector(".rel .r1")) return null;
    const [test, one] = cell.dataset.of.split(".").map(Number);
    if (one === base) return 1;
    const pair = tests[test][2].find((pair) => pair.slice(0, 2).includes(one) && pair.slice(0, 2).includes(base));
    return pair[0] === one ? pair[2] : 1 / pair[2];
  };
  for (const table of document.querySelectorAll("table.data:has(td[data-of])")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const rows = () => [...table.tBodies[0].rows];
      if (!rows().some((row) => number(row, column) !== null)) return;
      seen.columns += 1;
      seen.uncompared += rows().some((row) => row.cells[column]?.querySelector(".why"));
      for (const up of [false, true]) {
        head.querySelector("button").click();
        const order = rows().map((row) => number(row, column));
        const known = order.filter((value) => value !== null);
        const first = order.slice(0, known.length);
        const right = first.every((value, at) => value !== null && (at === 0 || (up ? first[at - 1] <= value : first[at - 1] >= value)));
        if (!right) seen.wrong.push(`${table.caption.textContent.slice(0, 40)}, column ${column}: ${order.map((value) => value ?? "none").join(" ")}`);
      }
    });
  }
  return seen;
};

// The controls by keyboard alone.
async function controls(browser, page) {
  const { tab, complain, close } = await open(browser, page);
  await tab.setViewportSize({ width: 1280, height: 900 });
  const has = (selector) => tab.locator(selector).count().then((count) => count > 0);
  const want = (condition, what) => {
    looked.controls += 1;
    if (!condition) complain(what);
  };
  // The first thing on the page that takes the focus.
  const start = () => tab.evaluate(() => document.querySelector("a[href], button, [tabindex]")?.focus());

  // Sorting by a header.
  await start();
  if (await tabTo(tab, "th button")) {
    const state = () => tab.evaluate(() => document.activeElement.closest("th").getAttribute("aria-sort"));
    await tab.keyboard.press("Enter");
    const once = await state();
    await tab.keyboard.press("Space");
    const twice = await state();
    want(["ascending", "descending"].includes(once) && twice && once !== twice,
      `sorting by keyboard: aria-sort is ${once}, then ${twice}`);
  } else {
    want(!page.controls, "no header that sorts can be reached by Tab");
  }

  if (await has("#controls")) {
    const shown = () => tab.locator("#shown").textContent();
    const before = await shown();
    want(/\d+ of \d+ tests? shown/.test(before ?? ""), `#shown says "${before}"`);
    want((await tab.locator("#shown").getAttribute("aria-live")) === "polite", "#shown is not aria-live");
    await start();
    want(await tabTo(tab, "#filters > summary"), "the filters cannot be reached by Tab");
    await tab.keyboard.press("Enter");

    // A filesystem that is left out is gone from every row and column.
    await start();
    if (await tabTo(tab, "#filter-filesystems input[name=filesystem]")) {
      const name = await tab.evaluate(() => document.activeElement.value);
      const visible = () => tab.evaluate((own) => [...document.querySelectorAll("[data-filesystem]")]
        .filter((part) => !part.closest("svg")).filter((part) => part.dataset.filesystem === own && part.checkVisibility()).length, name);
      const all = await visible();
      await tab.keyboard.press("Space");
      want(all > 0, `nothing is marked as of ${name}`);
      want((await visible()) === 0, `${await visible()} of ${all} parts of ${name} stay when it is left out`);
      await tab.keyboard.press("Space");
      want((await visible()) === all, `${name} comes back as ${await visible()} of ${all} parts`);
    } else {
      want(false, "#filter-filesystems cannot be reached by Tab");
    }

    // Words that no test has; then the reset.
    await start();
    if (await tabTo(tab, "#filter-workload")) {
      await tab.keyboard.type("no such workload");
      want((await shown())?.startsWith("0 of"), `a word that nothing has leaves "${await shown()}"`);
      want((await tabTo(tab, "#reset")), "#reset cannot be reached by Tab");
      await tab.keyboard.press("Enter");
      want((await shown()) === before, `after the reset "${await shown()}"`);
    } else {
      want(false, "#filter-workload cannot be reached by Tab");
    }

    // Ratios to a baseline.
    await start();
    if (await tabTo(tab, "#baseline")) {
      await tab.keyboard.press("ArrowDown");
      want((await tab.locator("#baseline").evaluate((s) => s.selectedIndex)) > 0, "the baseline does not move");
      want((await tabTo(tab, "input[name=values]")), "absolute or ratio cannot be reached by Tab");
      const chosen = () => tab.evaluate(() => document.querySelector("input[name=values]:checked")?.value);
      if ((await chosen()) !== "ratio") await tab.keyboard.press("ArrowDown");
      want((await chosen()) === "ratio", "ratio cannot be chosen by arrow");
      const shownRatios = await tab.evaluate(ratios);
      want(!page.controls || shownRatios.told > 0, "no ratio is shown");
      want(shownRatios.wrong.length === 0, `ratios: ${shownRatios.wrong.slice(0, 5).join("; ")}`);
      const sorted = await tab.evaluate(sortedRatios);
      want(!page.controls || sorted.columns > 0, "no column of ratios can be sorted");
      want(sorted.wrong.length === 0, `sorted ratios: ${sorted.wrong.slice(0, 5).join("; ")}`);
      if (page.controls) {
        want(shownRatios.uncompared > 0, "no value without a ratio says so");
        want(sorted.uncompared > 0, "no sorted column has a value without a ratio");
      }
      const file = path.join(job.artefacts, `${page.name}-ratio.png`);
      await tab.screenshot({ path: file, animations: "disabled" });
      await tab.evaluate(axe);
      const found = await tab.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      found.violations.forEach((v) => complain(`axe ${v.id} with ratios: ${v.nodes[0].target.join(" ")}`));
    } else {
      want(false, "#baseline cannot be reached by Tab");
    }
  } else {
    want(!page.controls, "no #controls");
  }
  await close();
}

const browser = await chromium.launch({
  executablePath: job.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none"],
});
try {
  for (const page of job.pages) {
    for (const check of [look, withoutScript, controls]) {
      try {
        await check(browser, page);
      } catch (error) {
        problems.push(`${page.name}: ${check.name} ended: ${error.message.split("\n")[0]}`);
      }
    }
    looked.pages += 1;
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify({ problems, looked }));
