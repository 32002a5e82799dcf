// Rows of texts that can be edited, added, removed and pasted.

import { element, formatCount, makeButton, splitLines } from "./common.js";

const MOST = 200; // rows that are made at once

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
  const remove = makeButton("×", () => removeByHand(item), { class: "remove" });
  const item = element("li", {}, field, remove);
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
  list.dispatchEvent(new Event("input", { bubbles: true }));
}

function numberRows(list) {
  const { name } = list.dataset; // Turn or Response
  const items = [...list.children];
  items.forEach((item, i) => {
    item.dataset.who = (items.length - i) % 2 ? "them" : "you";
    const label = `${name} ${i + 1}`;
    item.querySelector("textarea").setAttribute("aria-label", label);
    item.querySelector(".remove").setAttribute("aria-label", `Remove ${label.toLowerCase()}`);
  });
}
