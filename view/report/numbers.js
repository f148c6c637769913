"use strict";
// Numbers and elements, used by every panel.

/// The numbers of a base64 text, little-endian, of 4 or 8 bytes each.
function decode(text, bytes) {
  const raw = atob(text);
  const octets = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) octets[i] = raw.charCodeAt(i);
  return bytes === 8 ? new Float64Array(octets.buffer) : new Float32Array(octets.buffer);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/// As `inspect` prints it with --values: 8 significant digits, no trailing zeros.
function general(value, digits = 8) {
  if (!isNumber(value)) return notFinite(value);
  if (value === 0) return "0";
  const exponent = Number(value.toExponential(digits - 1).split("e")[1]);
  if (exponent >= -4 && exponent < digits) return String(Number(value.toPrecision(digits)));
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const sign = power[0] === "-" ? "-" : "+";
  return `${Number(mantissa)}e${sign}${power.replace(/[+-]/, "").padStart(2, "0")}`;
}

/// With a fixed number of decimals, as tables print it; from a million on with an exponent.
function fixed(value, decimals = 3) {
  if (!isNumber(value)) return notFinite(value);
  return Math.abs(value) < 1e6 ? value.toFixed(decimals) : general(value, 2);
}

function notFinite(value) {
  if (value === null || value === undefined) return "-";
  return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

/// 15296 as "15,296".
const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

const plural = (n, one, many) => `${grouped(n)} ${n === 1 ? one : many}`;

/// A word quoted for a shell.
function shellWord(word) {
  return /^[A-Za-z0-9_\-./:=,+@%]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/// An element. Text goes in as text, so nothing in a run can become markup.
function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function shape(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/// A picture whose coordinates are stretched to its size on the page.
function picture(width, height, attributes = {}) {
  return shape("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", ...attributes});
}

/// The command that prints what a panel shows, with a button that copies it; `more`: further buttons.
function terminal(command, ...more) {
  const code = element("code", {}, command);
  const copy = element("button", {type: "button", onclick: () => copyText(command, copy, code)}, "copy");
  return element("p", {class: "terminal"}, "terminal", code, copy, ...more);
}

async function copyText(text, button, code) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  button.textContent = "copied";
  setTimeout(() => (button.textContent = "copy"), 1200);
}

/// Buttons of which one is pressed; `options`: [value, text] pairs.
function choice(name, options, value, choose) {
  const buttons = options.map(([option, text]) =>
    element("button", {type: "button", "aria-pressed": String(option === value), onclick: () => choose(option)}, text));
  return element("span", {class: "choice", role: "group", "aria-label": name},
                 element("span", {class: "name"}, name), ...buttons);
}

/// The same as a drop-down list when there are too many options for buttons.
function chooseFrom(name, options, value, choose) {
  if (options.length <= 7) return choice(name, options, value, choose);
  const list = element("select", {"aria-label": name, onchange: () => choose(list.value)},
                       ...options.map(([option, text]) => element("option", {value: option}, text)));
  list.value = value;
  return element("label", {class: "choice"}, element("span", {class: "name"}, name), list);
}
