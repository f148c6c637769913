// The report in a real browser: npm ci && node --test
import assert from "node:assert/strict";
import {copyFileSync, existsSync, mkdirSync, readFileSync, statSync} from "node:fs";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {config, folder, goToStep, handgrad, open, openBrowser, shownStep, toy} from "./browser.mjs";

let browser;
before(async () => {
  browser = await openBrowser();
  assert.equal(toy("toy").status, 0);
});
after(() => browser.close());

/// One row of `inspect --values`: value, gradient and update of a feature, digit by digit.
function inspected(name, step, feature) {
  const {status, out} = handgrad("inspect", "toy", name, "--step", String(step), "--values");
  assert.equal(status, 0);
  const line = out.split("\n").find((text) => text.trim().startsWith(`[${feature}] `) && text.trim().split(/\s+/).length === 4);
  return line.trim().split(/\s+/).slice(1);
}

test("it opens from disk without an error, and requests no other file", async () => {
  const {page, wrong, requests} = await open(browser, "toy/report.html");
  await page.waitForSelector(".map");
  assert.deepEqual(wrong, []);
  assert.equal(requests.filter((url) => !url.startsWith("data:")).length, 1);
  assert.match(await page.title(), /^toy/);
  assert.match(await page.locator("#state").textContent(), /^finished, 300 of 300 steps$/);
  assert.match(await page.locator(".result").textContent(), /Validation loss fell from 3\.\d+ to 0\.\d+\.Scale moved from 1 by up to/);
  assert.ok(statSync(join(folder, "toy/report.html")).size < 3e6);
  await page.close();
});

test("slider, norm, scale and shift, feature: the page shows the numbers of inspect", async () => {
  const {page, wrong} = await open(browser, "toy/report.html");
  const owners = [["norm1", "trf_blocks.0.norm1"], ["norm2", "trf_blocks.0.norm2"], ["final_norm", "final_norm"]];
  for (const [button, owner] of owners) {
    await page.locator("#norms").getByRole("button", {name: button, exact: true}).click();
    for (const kind of ["scale", "shift"]) {
      await page.locator("#norms").getByRole("button", {name: kind, exact: true}).click();
      for (const step of [1, 150, 300]) {
        await goToStep(page, step);
        assert.equal(await shownStep(page), String(step));
        for (const feature of [0, 16, 31]) {
          await page.locator(".features").getByRole("button", {name: `[${feature}]`, exact: true}).click();
          const [value, gradient, update] = inspected(`${owner}.${kind}`, step, feature);
          assert.equal(await page.locator(".readout").textContent(),
                       `${owner}.${kind}[${feature}], step ${step}: ${value}, gradient ${gradient}, update ${update}`);
          const bold = await page.locator(".why .said b").allTextContents();
          assert.deepEqual(bold, [gradient, update, value]);
        }
        const state = JSON.parse(handgrad("inspect", "toy", `${owner}.${kind}`, "--step", String(step), "--values", "--json").out)[0];
        const shown = await page.locator(".rows.numbers > div").allTextContents();
        assert.deepEqual(shown.sort(), state.values.map((x) => Math.fround(x).toFixed(3)).sort());
        const sentence = `At step ${step} they are between ${state.min.toFixed(3)} and ${state.max.toFixed(3)}.`;
        assert.ok((await page.locator("#norms").textContent()).includes(sentence), sentence);
      }
    }
  }
  assert.deepEqual(wrong, []);
  await page.close();
});

test("ranking and agreement equal those of inspect", async () => {
  const {page} = await open(browser, "toy/report.html");
  await page.locator("#norms").getByRole("button", {name: "final_norm", exact: true}).click();
  await page.locator("#norms").getByRole("button", {name: "scale", exact: true}).click();
  const lines = handgrad("inspect", "toy", "final_norm.scale", "--all").out.split("\n").filter((line) => /^\s+\[\d+\]/.test(line));
  const features = await page.locator(".features button").allTextContents();
  assert.deepEqual(features, lines.map((line) => line.trim().split(/\s+/)[0]));
  for (const at of [0, 7, 31]) {
    await page.locator(".features button").nth(at).click();
    const agreement = lines[at].trim().split(/\s+/).at(-1);
    assert.match(await page.locator(".why .said").first().textContent(), new RegExp(`Agreement ${agreement.replace(".", "[.]")}[.]`));
  }
  await page.close();
});

test("the keyboard does what the page says", async () => {
  const {page, wrong} = await open(browser, "toy/report.html");
  await page.keyboard.press("Home");
  assert.equal(await shownStep(page), "0");
  assert.match(await page.locator(".readout").textContent(), /step 0: 1$/);
  await page.keyboard.press("ArrowRight");
  assert.equal(await shownStep(page), "1");
  const kind = async () => page.locator('#norms .choice button[aria-pressed="true"]').allTextContents();
  const first = await kind();
  await page.keyboard.press("s");
  assert.notDeepEqual(await kind(), first);
  await page.keyboard.press("n");
  assert.notEqual((await kind())[0], first[0]);
  const feature = async () => page.locator('.features button[aria-pressed="true"]').textContent();
  const before = await feature();
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await feature(), before);
  await page.keyboard.press(" ");
  await page.waitForFunction(() => Number(document.querySelector("#steps output b").textContent) > 3);
  await page.keyboard.press(" ");
  const stopped = await shownStep(page);
  await page.waitForTimeout(200);
  assert.equal(await shownStep(page), stopped);
  await page.keyboard.press("End");
  assert.equal(await shownStep(page), "300");
  assert.deepEqual(wrong, []);
  await page.close();
});

test("hovering over a cell shows its numbers, a click selects its step and feature", async () => {
  const {page} = await open(browser, "toy/report.html", {viewport: {width: 1280, height: 1600}});
  const box = await page.locator(".map").boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 5);
  assert.match(await page.locator(".readout").textContent(), /step 150: .*gradient .*update/);
  await page.mouse.click(box.x + box.width * 0.25, box.y + box.height - 5);
  assert.equal(await shownStep(page), "75");
  const features = await page.locator(".features button").allTextContents();
  assert.equal(await page.locator('.features button[aria-pressed="true"]').textContent(), features.at(-1));
  await page.close();
});

test("the row through the norm has the numbers of trace", async () => {
  const {page} = await open(browser, "toy/report.html");
  const letters = page.locator(".letters button");
  assert.ok(await letters.count() > 4);
  await letters.first().click();
  const shown = await page.locator(".strips .right").allTextContents();
  assert.equal(shown.length, 8);
  assert.equal(shown[4], "0");                    // normalized: its mean
  assert.ok(Math.abs(Number(shown[5]) - 1) < 1e-4);  // and its variance
  assert.match(await page.locator("#row .terminal code").textContent(), /^handgrad explain toy --layer \S+ --at \S/);
  await page.close();
});

test("a name with a closing script tag and quotes is harmless", async () => {
  mkdirSync(join(folder, "a<"), {recursive: true});
  const name = `a</script><script>alert(1)<b>"'&amp;{{data}}`;
  assert.equal(toy(name, "--set", "train.steps=3").status, 0);
  const {page, wrong} = await open(browser, join(name, "report.html"));
  assert.deepEqual(wrong, []);
  assert.equal(await page.locator("h1").textContent(), `script><script>alert(1)<b>"'&amp;{{data}}`);
  const command = await page.locator("#norms .terminal code").first().textContent();
  assert.ok(command.includes(`'a</script><script>alert(1)<b>"'\\''&amp;{{data}}'`), command);
  await page.close();
});

test("with nothing recorded the page still has the row through each norm, in float64 too", async () => {
  assert.equal(toy("unrecorded", "--set", "inspect.parameters=[]", "--set", "train.steps=3", "--dtype", "float64").status, 0);
  const {page, wrong} = await open(browser, "unrecorded/report.html");
  assert.match(await page.locator("#norms").textContent(), /Nothing was recorded/);
  const command = page.locator("#row .terminal code"), first = await command.textContent();
  for (let i = 0; i < 3; ++i) {
    const {size, variance} = await page.evaluate(() => {
      const row = runs[0].rowRead.norms.get(state.owner).normalized(0);
      return {size: row.length, variance: row.reduce((sum, x) => sum + x * x / row.length, 0)};
    });
    assert.equal(size, 32);
    assert.ok(Math.abs(variance - 1) < 0.01, String(variance));
    await page.keyboard.press("s");
    await page.keyboard.press("n");
    assert.equal(await command.textContent() === first, i === 2);
  }
  assert.deepEqual(wrong, []);
  await page.close();
});

test("a run without a step says so", async () => {
  mkdirSync(join(folder, "empty"));
  copyFileSync(join(folder, "toy/config.json"), join(folder, "empty/config.json"));
  assert.equal(handgrad("report", "empty").status, 0);
  const {page, wrong} = await open(browser, "empty/report.html");
  assert.deepEqual(wrong, []);
  assert.match(await page.locator(".result").textContent(), /No step has been made yet/);
  assert.match(await page.locator("#norms").textContent(), /Nothing was recorded/);
  await page.close();
});

test("a run with a non-finite loss names the step, and shows the steps before it", async () => {
  const run = toy("nan", "--set", "optimizer={\"type\":\"sgd\",\"lr\":1e20}", "--set", "schedule={}", "--set", "train.grad_clip=0");
  assert.equal(run.status, 1);
  assert.ok(existsSync(join(folder, "nan/report.html")));
  const {page, wrong} = await open(browser, "nan/report.html");
  const step = readFileSync(join(folder, "nan/metrics.jsonl"), "utf8").trim().split("\n").length;
  assert.deepEqual(wrong, []);
  assert.match(await page.locator("#state").textContent(), new RegExp(`stopped: not finite in step ${step} of 300`));
  assert.match(await page.locator(".warning").textContent(), /was not finite/);
  await page.close();
});

test("two runs share the slider; their differences are shown first", async () => {
  assert.equal(toy("no_shift", "--set", "train.freeze=[\"*.shift\"]", "--set", "train.steps=100").status, 0);
  const report = handgrad("report", "toy", "no_shift", "--out", "both.html");
  assert.equal(report.status, 0, report.err);
  const {page, wrong} = await open(browser, "both.html");
  assert.deepEqual(wrong, []);
  const differing = await page.locator("#top table tbody tr").allTextContents();
  assert.ok(differing.some((row) => row.startsWith("train.freeze[]")));
  assert.ok(differing.some((row) => row.startsWith("train.steps300100")));
  assert.equal(await page.locator(".map").count(), 2);
  await page.locator("#norms").getByRole("button", {name: "shift", exact: true}).click();
  await goToStep(page, 50);
  const texts = await page.locator("#norms .run > div > div > p:first-child").allTextContents();
  assert.match(texts[0], /At step 50 they are between -0\.\d+ and 0\.\d+/);
  assert.match(texts[1], /At step 50 they are between 0\.000 and 0\.000/);
  assert.ok(statSync(join(folder, "both.html")).size < 3e6);
  await page.close();
});

test("a resumed run is marked and has each step once", async () => {
  assert.equal(toy("parts", "--set", "train.stop_after=40", "--set", "train.steps=60").status, 0);
  assert.equal(handgrad("train", "--resume", "parts", "--quiet").status, 0);
  const {page} = await open(browser, "parts/report.html");
  assert.match(await page.locator("#loss .note").textContent(), /Interrupted after step 40 and resumed/);
  assert.equal(await page.locator("#steps input").getAttribute("max"), "60");
  await page.close();
});

test("light and dark, narrow and wide, large text: nothing is cut and nothing overlaps", async () => {
  for (const colorScheme of ["light", "dark"])
    for (const width of [320, 380, 768, 1280])
      for (const file of ["toy/report.html", "both.html"]) {
        const {page} = await open(browser, file, {colorScheme, viewport: {width, height: 800}});
        for (const size of ["100%", "150%"]) {
          await page.evaluate((text) => (document.documentElement.style.fontSize = text), size);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 0, `${file}, ${width} px, ${size}: ${wide} px too wide`);
          assert.deepEqual(await page.evaluate(overlaps), [], `${file}, ${width} px, ${size}`);
        }
        await page.close();
      }
});

/// Pairs of texts whose boxes overlap. Runs in the page.
function overlaps() {
  const boxes = [];
  for (const node of document.querySelectorAll("h1, h2, h3, p, button, dt, dd, code, .said, .label, .numbers > div, .end, .ends span, .ticks span")) {
    const box = node.getBoundingClientRect();
    if (box.width > 0 && node.closest("details:not([open])") === null) boxes.push([node, box]);
  }
  const found = [];
  for (let i = 0; i < boxes.length; ++i)
    for (let j = i + 1; j < boxes.length; ++j) {
      const [a, x] = boxes[i], [b, y] = boxes[j];
      if (a.contains(b) || b.contains(a) || a.closest("#steps") || b.closest("#steps")) continue;
      const width = Math.min(x.right, y.right) - Math.max(x.left, y.left), height = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
      if (width > 2 && height > 3) found.push(`${a.textContent.slice(0, 30)} | ${b.textContent.slice(0, 30)}`);
    }
  return found;
}

test("report rejects what it cannot show, with a reason", () => {
  const nothing = handgrad("report", "nowhere");
  assert.equal(nothing.status, 1);
  assert.match(nothing.err, /^report: .nowhere. does not exist/);
  copyFileSync(config("toy.json"), join(folder, "mine.html"));
  const mine = handgrad("report", "toy", "--out", "mine.html");
  assert.equal(mine.status, 1);
  assert.match(mine.err, /is not a report/);
});

