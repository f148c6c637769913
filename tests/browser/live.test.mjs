// train --serve in a real browser: the page grows during training.
import assert from "node:assert/strict";
import {closeSync, existsSync, openSync, readFileSync, statSync, writeSync} from "node:fs";
import {request} from "node:http";
import {networkInterfaces} from "node:os";
import {connect} from "node:net";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {config, folder, handgrad, open, openBrowser, start} from "./browser.mjs";

let browser, training, url, errors = "";

/// Waits until the training prints the page's address to stderr.
function addressOf(child) {
  return new Promise((found, failed) => {
    child.stderr.on("data", (text) => {
      errors += text;
      const address = errors.match(/http:\/\/127\.0\.0\.1:\d+\//);
      if (address) found(address[0]);
    });
    child.on("exit", () => failed(new Error(`it ended: ${errors}`)));
  });
}

const ended = (child) => new Promise((done) => child.exitCode === null ? child.on("exit", done) : done(child.exitCode));

/// Sends a request with extra headers; resolves to the response's status and headers.
function ask(path, headers = {}) {
  return new Promise((done, failed) => {
    const asked = request(new URL(path, url), {headers}, (answer) => {
      answer.destroy();
      done({status: answer.statusCode, headers: answer.headers});
    });
    asked.on("error", failed);
    asked.end();
  });
}

/// Connects as a viewer until at least `wanted` full updates have arrived; resolves to their number.
function viewer(wanted) {
  return new Promise((done, failed) => {
    let events = 0;
    const asked = request(new URL("/events", url), (answer) => {
      answer.setEncoding("utf8");
      answer.on("data", (text) => {
        events += text.split("event: data\n").length - 1;
        if (events < wanted) return;
        asked.destroy();
        done(events);
      });
    });
    asked.on("error", (error) => events >= wanted || failed(error));
    asked.end();
  });
}

before(async () => {
  browser = await openBrowser();
  training = start("train", config("toy.json"), "--out", "live", "--set", "train.steps=100000", "--pace", "20", "--serve", "0");
  training.stdout.resume();
  url = await addressOf(training);
});
after(async () => {
  training.kill("SIGKILL");
  await browser.close();
});

const sliderMax = (page) => page.locator("#steps input").evaluate((slider) => Number(slider.max));

test("the page follows the training, survives a reload, and serves many viewers", async () => {
  const {page, wrong, requests} = await open(browser, url);
  await page.waitForFunction(() => Number(document.querySelector("#steps input").max) >= 10);
  const before = await sliderMax(page);
  assert.match(await page.locator("#state").textContent(), /^running, [\d,]+ of 100,000 steps/);
  await page.waitForFunction((max) => Number(document.querySelector("#steps input").max) > max, before);
  await page.reload();
  assert.ok(await sliderMax(page) >= before);
  const viewers = await Promise.all(Array.from({length: 30}, () => viewer(2)));
  assert.ok(viewers.every((events) => events >= 2));
  assert.deepEqual(wrong, []);
  for (const asked of requests) assert.ok(asked.startsWith(url) || asked.startsWith("data:"), asked);
  await page.close();
});

test("a chosen step stays while updates arrive", async () => {
  const {page} = await open(browser, url);
  await page.keyboard.press("Home");
  const before = await sliderMax(page);
  await page.waitForFunction((max) => Number(document.querySelector("#steps input").max) > max, before);
  assert.equal(await page.locator("#steps output b").textContent(), "0");
  await page.close();
});

test("other hosts and other origins are rejected", async () => {
  const host = new URL(url).host;
  assert.equal((await ask("/")).status, 200);
  assert.equal((await ask("/", {Origin: `http://${host}`})).status, 200);
  for (const headers of [{Host: "example.org"}, {Host: `evil.example:${new URL(url).port}`}, {Origin: "http://example.org"}, {Origin: "null"},
                         {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}])
    for (const path of ["/", "/events"]) assert.equal((await ask(path, headers)).status, 403, JSON.stringify(headers));
  assert.equal((await ask("/other")).status, 404);
  const {headers} = await ask("/");
  assert.equal(headers["access-control-allow-origin"], undefined);
  assert.equal(headers["x-frame-options"], "DENY");
});

test("it listens on the loopback address only", async () => {
  const addresses = Object.values(networkInterfaces()).flat().filter((a) => a.family === "IPv4" && !a.internal);
  for (const {address} of addresses) {
    const reached = await new Promise((done) => {
      const socket = connect({host: address, port: Number(new URL(url).port)});
      socket.on("connect", () => { socket.destroy(); done(true); });
      socket.on("error", () => done(false));
    });
    assert.equal(reached, false, address);
  }
});

test("too many viewers do not disturb the training", async () => {
  const answers = await Promise.all(Array.from({length: 80}, () => new Promise((done) => {
    const asked = request(new URL("/events", url), (answer) => done({answer, asked}));
    asked.on("error", () => done(null));
    asked.end();
    setTimeout(() => done(null), 5000);
  })));
  const taken = answers.filter((a) => a?.answer.statusCode === 200).length;
  assert.ok(taken >= 20 && taken < 80, String(taken));
  for (const a of answers) a?.asked.destroy();  // all disconnect at once, in the middle of a response
  assert.equal(training.exitCode, null);
});

test("Ctrl-C ends it as without --serve, and leaves a report", async () => {
  training.kill("SIGINT");
  assert.equal(await ended(training), 130);
  const {page, wrong} = await open(browser, "live/report.html");
  assert.match(await page.locator("#state").textContent(), /^interrupted after step [\d,]+ of 100,000$/);
  assert.deepEqual(wrong, []);
  await page.close();
});

test("at the end the page is complete, and the run has the same bytes as one without viewers", async () => {
  const short = start("train", config("toy.json"), "--out", "short", "--pace", "60", "--serve", "0");
  short.stdout.resume();
  errors = "";
  const {page, wrong} = await open(browser, await addressOf(short));
  await page.waitForFunction(() => document.querySelector("#state")?.textContent.startsWith("finished"));
  assert.ok(await page.locator(".letters button").count() > 4);
  await page.reload();
  assert.match(await page.locator("#state").textContent(), /^finished, 300 of 300 steps$/);
  assert.deepEqual(wrong, []);
  await page.close();
  short.kill("SIGINT");
  assert.equal(await ended(short), 0);
  assert.equal(handgrad("train", config("toy.json"), "--quiet", "--out", "alone").status, 0);
  for (const file of ["metrics.jsonl", "recording.bin", "samples.jsonl"])
    assert.ok(readFileSync(join(folder, "short", file)).equals(readFileSync(join(folder, "alone", file))), file);
});

/// Everything that the server sends to a viewer, until the end.
const seen = (address) => new Promise((done, failed) => request(new URL("/events", address), (answer) => {
  let text = "";
  answer.setEncoding("utf8");
  answer.on("data", (more) => (text += more));
  answer.on("close", () => done(text));
}).on("error", failed).end());

const until = async (true_) => {
  for (let i = 0; i < 1200 && !true_(); ++i) await new Promise((done) => setTimeout(done, 50));
  assert.ok(true_());
};

test("a page that cannot be built is a warning; viewers still receive the end", async () => {
  const child = start("train", config("toy.json"), "--out", "damaged", "--set", "train.steps=60", "--pace", "30", "--serve", "0");
  child.stdout.resume();
  errors = "";
  const sent = seen(await addressOf(child));
  const recording = join(folder, "damaged/recording.bin");
  await until(() => existsSync(recording) && statSync(recording).size > 1000);
  const file = openSync(recording, "r+");
  writeSync(file, "no record");
  closeSync(file);
  assert.match(await sent, /event: end\n/);
  await until(() => errors.includes("until Ctrl-C"));
  child.kill("SIGINT");
  assert.equal(await ended(child), 0);
  assert.match(errors, /there is no page: .*recording\.bin/);
});

test("a training that fails sends its viewers the end, and its page stays until Ctrl-C", async () => {
  const child = start("train", config("toy.json"), "--out", "nan", "--pace", "4", "--serve", "0", "--set", "schedule={}",
                      "--set", "optimizer={\"type\":\"sgd\",\"lr\":1e20}", "--set", "train.grad_clip=0");
  child.stdout.resume();
  errors = "";
  const sent = await seen(await addressOf(child));
  assert.match(sent, /"state":"non_finite"[^\n]*\n\n(event: step\n.*\n\n)*event: end\n/);
  const again = await seen(errors.match(/http:\/\/127\.0\.0\.1:\d+\//)[0]);
  assert.match(again, /"state":"non_finite"/);
  child.kill("SIGINT");
  assert.equal(await ended(child), 1);
});
