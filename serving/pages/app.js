// The page: its tabs, and what the address bar opens. No library.

import { ask } from "./requests.js";
import { showNotice } from "./common.js";
import { readLink, writeLink } from "./link.js";
import { Panel } from "./panel.js";
import { dialog } from "./dialog.js";
import { reading } from "./reading.js";
import { selection } from "./selection.js";
import { talk } from "./talk.js";

// The order of the tabs; the first with a model is opened.
const TASKS = {
  reading_comprehension: reading,
  generation: talk,
  dialog,
  selection,
};
const panels = new Map(); // task: its Panel
let openedTask = null;

/** Puts the template `part-NAME` in the place of each `data-part="NAME"`, within parts too. */
function putParts() {
  let place = document.querySelector("[data-part]");
  while (place) {
    const template = document.getElementById(`part-${place.dataset.part}`);
    const part = template.content.cloneNode(true);
    part.querySelector("slot").replaceWith(...place.childNodes);
    place.replaceWith(part);
    place = document.querySelector("[data-part]");
  }
}

// === The address bar ===

function remember(panel, isNew) {
  if (panel.name !== openedTask) return;
  const { task } = readLink();
  const isOtherEntry = panels.has(task) && task !== openedTask;
  if (isOtherEntry && !isNew) return; // another tab's entry, while the opened one is filled
  writeLink(panel, isNew);
}

async function restore(fallback) {
  const link = readLink();
  const isLinked = panels.has(link.task);
  const panel = panels.get(isLinked ? link.task : fallback);
  show(panel.name);
  // The panel shows what it wrote into this entry, and what came since.
  if (panel.entry && link.entry === panel.entry) {
    remember(panel, false);
    return;
  }
  const isKnown = (name) => panel.models.some((model) => model.name === name);
  const model = isKnown(link.model) ? link.model : panel.models[0].name;
  const hasModel = isLinked && link.model;
  const example = hasModel ? link.example ?? "" : null;
  await panel.choose(model, example, isLinked ? link.input : null);
  if (!link.model) remember(panel, false);
}

// === Tabs ===

function findTabs() {
  return [...document.querySelectorAll("[role=tab]")];
}

function taskOf(tab) {
  return tab.id.replace("tab-", "");
}

function show(task) {
  openedTask = task;
  for (const tab of findTabs()) {
    const isOpen = taskOf(tab) === task;
    tab.setAttribute("aria-selected", isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isOpen;
    if (isOpen) document.title = `${tab.textContent} - Colloquy`;
  }
}

async function openTab(task) {
  const before = panels.get(openedTask);
  if (before.opening) remember(before, false); // what was typed last
  show(task);
  const panel = panels.get(task);
  if (!panel.opening) panel.choose(panel.model);
  await panel.opening;
  if (openedTask === task) remember(panel, readLink().task !== task);
}

function moveByKey(event) {
  const usable = findTabs().filter((tab) => !tab.hidden);
  const place = usable.indexOf(event.target);
  const places = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: -1 };
  const next = places[event.key];
  if (next === undefined) return;
  event.preventDefault();
  const tab = usable.at(next % usable.length);
  openTab(taskOf(tab));
  tab.focus();
}

// === Menus ===

/** A menu closes by Escape, and when something else is pressed. */
function closeMenus(event) {
  for (const menu of document.querySelectorAll(".menu[open]")) {
    const isInside = menu.contains(event.target);
    if (event.type === "click" && isInside) continue;
    if (event.type === "keydown" && event.key !== "Escape") continue;
    menu.open = false;
    if (isInside) menu.querySelector("summary").focus();
  }
}

// === Start ===

async function start() {
  let models;
  try {
    models = (await ask("v1/models")).details;
  } catch (failure) {
    showNotice(failure.message);
    return;
  }
  for (const tab of findTabs()) makePanel(tab, models);
  const demos = document.querySelector(".demos");
  demos.hidden = !demos.querySelector("[role=tab]:not([hidden])");
  if (!panels.size) {
    showNotice("No model is served that these pages know.");
    document.querySelector("main").hidden = true;
    return;
  }
  addEventListener("popstate", () => restore(openedTask));
  addEventListener("click", closeMenus);
  addEventListener("keydown", closeMenus);
  await restore(panels.keys().next().value);
}

function makePanel(tab, models) {
  const name = taskOf(tab);
  const own = models.filter(({ task }) => task === name).sort(compareModels);
  tab.hidden = !own.length;
  if (tab.hidden) return;
  const panel = new Panel(name, TASKS[name], own, (isNew) => remember(panel, isNew));
  panels.set(name, panel);
  tab.addEventListener("click", () => openTab(name));
  tab.addEventListener("keydown", moveByKey);
}

/** The default model comes first, the others by name. */
function compareModels(first, second) {
  if (first.default !== second.default) return first.default ? -1 : 1;
  return first.name.localeCompare(second.name);
}

putParts();
start();
