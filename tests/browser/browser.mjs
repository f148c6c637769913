// Shared by the tests of the page: the program, a folder, a browser.
import {spawn, spawnSync} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {fileURLToPath, pathToFileURL} from "node:url";
import {chromium} from "playwright-core";

const root = resolve(fileURLToPath(import.meta.url), "../../..");
export const program = resolve(process.env.HANDGRAD_PROGRAM ?? join(root, "build/release/handgrad"));
export const config = (name) => join(root, "configs", name);

export const folder = mkdtempSync(join(tmpdir(), "handgrad page "));
process.on("exit", () => rmSync(folder, {recursive: true, force: true}));

const environment = {...process.env, HANDGRAD_CALLED_AS: ""};

/// Runs `handgrad ARGUMENTS` in `folder`.
export function handgrad(...words) {
  const {status, stdout, stderr} = spawnSync(program, words, {cwd: folder, env: environment, encoding: "utf8", maxBuffer: 1 << 28});
  return {status, out: stdout, err: stderr};
}

/// Starts it in the background.
export const start = (...words) => spawn(program, words, {cwd: folder, env: environment, stdio: ["ignore", "pipe", "pipe"]});

export const toy = (out, ...more) => handgrad("train", config("toy.json"), "--quiet", "--out", out, ...more);

export async function openBrowser() {
  return chromium.launch({executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"]});
}

/// Opens a page and collects its errors and requests.
export async function open(browser, address, options = {}) {
  const page = await browser.newPage({viewport: {width: 1280, height: 900}, ...options});
  page.setDefaultTimeout(120000);  // test machines are often busy
  const wrong = [], requests = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("dialog", (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(address.includes("://") ? address : pathToFileURL(join(folder, address)).href);
  return {page, wrong, requests};
}

/// Moves the slider until its label shows the step.
export async function goToStep(page, step) {
  await page.locator("#steps input").evaluate((slider, wanted) => {
    slider.value = wanted;
    slider.dispatchEvent(new Event("input", {bubbles: true}));
  }, step);
}

export const shownStep = (page) => page.locator("#steps output b").textContent();
