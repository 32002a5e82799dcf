// Rows of texts that can be edited, added, removed, moved and pasted.

import { announce, element, formatCount, makeButton, splitLines } from "./common.js";

const MOST = 200; // rows that are made at once
const STEPS = { ArrowUp: -1, ArrowDown: 1 };

/** The texts of a list, without empty rows. */
export function readRows(list) {
  const fields = [...list.querySelectorAll("textarea")];
  return fields.map((field) => field.value.trim()).filter(Boolean);
}

export function setRows(list, texts) {
  list.replaceChildren();
  for (const text of texts.length ? texts : [""]) addRow(list, text);
}

/** Adds a row before another one, or at the end; returns its field. */
export function addRow(list, text, before = null) {
  const lines = Math.min(6, Math.ceil((text.length + 1) / 44));
  const field = element("textarea", { rows: lines, dir: "auto" });
  field.value = text;
  const title = "Drag, or press Alt and an arrow key";
  const grip = element("button", { type: "button", class: "grip", title });
  const remove = makeButton("×", () => removeByHand(item), { class: "remove" });
  const item = element("li", {}, grip, field, remove);
  letMove(list, item, grip);
  list.insertBefore(item, before);
  numberRows(list);
  return field;
}

/** The lines of a text that become rows, and what to say if there are more. */
export function firstLines(text) {
  const all = splitLines(text);
  const note = `The text has ${formatCount(all.length)} lines: the first ${MOST} are here.`;
  return { lines: all.slice(0, MOST), note: all.length > MOST ? note : "" };
}

/** Several lines that are pasted into an empty row become several rows. */
export function pasteRows(panel, event) {
  const item = event.target.closest(".rows li");
  const { lines, note } = firstLines(event.clipboardData.getData("text"));
  if (!item || event.target.value || lines.length < 2) return;
  event.preventDefault();
  let field;
  for (const line of lines) field = addRow(item.parentNode, line, item);
  field.focus();
  removeRow(item);
  panel.say(note);
}

function removeByHand(item) {
  const list = item.parentNode;
  const neighbour = item.nextElementSibling || item.previousElementSibling;
  const next = neighbour?.querySelector(".remove") || list.nextElementSibling;
  removeRow(item);
  next.focus();
}

function removeRow(item) {
  const list = item.parentNode;
  item.remove();
  numberRows(list);
  tellChange(list);
}

function tellChange(list) {
  list.dispatchEvent(new Event("input", { bubbles: true }));
}

/** `Turn` or `Response`. */
function nameOf(list) {
  return list.dataset.name;
}

function numberRows(list) {
  const name = nameOf(list);
  const items = [...list.children];
  items.forEach((item, i) => {
    item.dataset.who = (items.length - i) % 2 ? "them" : "you";
    const label = `${name} ${i + 1}`;
    item.querySelector("textarea").setAttribute("aria-label", label);
    item.querySelector(".grip").setAttribute("aria-label", `Move ${label.toLowerCase()}`);
    item.querySelector(".remove").setAttribute("aria-label", `Remove ${label.toLowerCase()}`);
  });
}

// === Moving ===

/** By its grip with mouse, finger or arrow keys, and with Alt and arrow keys from anywhere. */
function letMove(list, item, grip) {
  grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
  grip.addEventListener("pointermove", ({ pointerId, clientY }) => {
    if (grip.hasPointerCapture(pointerId)) moveTo(list, item, clientY);
  });
  item.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step || !(event.altKey || event.target === grip)) return;
    event.preventDefault();
    move(list, item, step);
  });
}

/** The neighbour moves, so that the row keeps the focus and the pointer. */
function move(list, item, step) {
  const neighbour = step < 0 ? item.previousElementSibling : item.nextElementSibling;
  if (!neighbour) return;
  if (step < 0) item.after(neighbour);
  else item.before(neighbour);
  item.scrollIntoView({ block: "nearest" });
  numberRows(list);
  tellChange(list);
  const place = [...list.children].indexOf(item) + 1;
  announce(`${nameOf(list)} moved to place ${place} of ${list.children.length}.`);
}

function moveTo(list, item, y) {
  const middle = (row) => {
    const { top, height } = row.getBoundingClientRect();
    return top + height / 2;
  };
  while (item.previousElementSibling && y < middle(item.previousElementSibling)) {
    move(list, item, -1);
  }
  while (item.nextElementSibling && y > middle(item.nextElementSibling)) {
    move(list, item, 1);
  }
}
