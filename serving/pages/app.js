// The page: tabs, models and examples, requests that can be stopped, the address bar. No library.

import { ask, composes, element, needsKey, notice, pathOf, tooLong } from "./common.js";
import { selection } from "./selection.js";
import { reading_comprehension } from "./reading.js";
import { dialog, generation } from "./talk.js";

const TASKS = { selection, reading_comprehension, generation, dialog };
const LONGEST_LINK = 4000; // characters of the input; a longer one is kept by the browser's history alone
const METRICS = {
  "R2@1": "How often the true response is ranked first of 2.", "R10@1": "How often the true response is ranked first of 10.",
  "R10@2": "How often the true response is among the first 2 of 10.", "R10@5": "How often the true response is among the first 5 of 10.",
  EM: "Exact match: fraction of answers that are the same as one of the annotators'.", F1: "Overlap of the words of the answer and the annotators', averaged over the questions.",
  perplexity: "How many words the model hesitates between, on average: lower is better.", "BLEU-1": "Fraction of the reply's words that are in the true reply.", "BLEU-2": "The same for pairs of words.",
  per_response: "Fraction of responses that are right.", per_dialog: "Fraction of dialogs in which every response is right.",
};
const panels = Object.create(null); // task: a Panel; without a prototype, so that a link #constructor names none
let opened = null; // the task that is shown

/** Puts what the tabs share, the templates `part-NAME`, in the place of each `data-part="NAME"`, whose children fill its slot. */
function putParts() {
  for (const place of document.querySelectorAll("[data-part]")) {
    const part = document.getElementById(`part-${place.dataset.part}`).content.cloneNode(true);
    part.querySelector("slot").replaceWith(...place.children);
    place.replaceWith(part);
  }
}

// === A panel ===

class Panel {
  constructor(task, models) {
    this.task = TASKS[task];
    this.name = task;
    this.panel = document.getElementById(`panel-${task}`);
    this.form = this.panel.querySelector("form");
    this.fields = this.form.elements;
    this.result = this.panel.querySelector(".result");
    this.explanation = this.panel.querySelector(".explanation");
    this.models = models;
    this.talk = [];
    this.details = {};
    const { model, compare } = this.fields;
    const options = () => models.map((each) => element("option", { value: each.name }, each.title || each.name));
    model.replaceChildren(...options());
    compare.replaceChildren(element("option", { value: "" }, "no other"), ...options());
    compare.closest("label").hidden = models.length < 2;
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.form.addEventListener("keydown", (event) => { // Enter sends
      if (event.key !== "Enter" || event.shiftKey || composes(event) || !event.target.matches("textarea:read-write:not([name=passage])")) return;
      event.preventDefault();
      (event.target.parentNode.querySelector("[data-send]") || this.form.querySelector("[type=submit]")).click();
    });
    for (const kind of ["paste", "drop"]) this.form.addEventListener(kind, (event) => this.checkLength(event));
    this.form.addEventListener("invalid", ({ target }) => target.closest("details")?.toggleAttribute("open", true), true);
    this.form.addEventListener("input", (event) => event.target.closest("select") || this.changed());
    model.addEventListener("change", () => this.choose(model.value).then(() => { if (opened === this.name) remember(true); }));
    compare.addEventListener("change", () => {
      if (!this.isLoading) { this.stop(); this.clear(); }
      this.changed();
    });
    this.fields.example.addEventListener("change", () => { this.fillExample(); remember(true); });
    this.panel.querySelector("[data-stop]").addEventListener("click", () => {
      this.choosing?.abort();
      this.stop();
      this.form.querySelector("[type=submit]").focus(); // the button is hidden now
    });
    this.panel.querySelector("[data-card]").addEventListener("click", () => showCard(this.details));
    for (const button of this.panel.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(this, button.dataset.copy));
    this.task.begin(this);
  }

  asked() { return [...new Set([this.fields.model.value, this.fields.compare.value])].filter(Boolean); }
  example() { return this.details.examples?.[this.fields.example.value]; }

  /** The true answers of the example, if the fields in `instance` are still the example's. */
  expected(instance) {
    const example = this.example();
    const same = example && Object.keys(instance).every((key) => JSON.stringify(instance[key]) === JSON.stringify(example.instance[key]));
    return (same && example.expected) || [];
  }

  /** Refuses a text that is pasted or dropped into a field and would make it too long. */
  checkLength(event) {
    const { value = "", selectionStart, selectionEnd } = event.target;
    const added = (event.clipboardData || event.dataTransfer).getData("text").length;
    const problem = added && tooLong(value.length - selectionEnd + selectionStart + added);
    if (!problem) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // it becomes no rows
    this.say(problem);
  }

  say(text) { this.form.querySelector(".error").textContent = text; }

  /** Removes the results; `text` says why. */
  clear(text = "") {
    for (const place of this.panel.querySelectorAll(".result, .explanation, .other, .took")) place.replaceChildren();
    this.say(text);
  }

  changed() { // by hand
    clearTimeout(this.later);
    this.later = setTimeout(() => remember(false), 300);
  }

  choose(...given) { return (this.loading = this.load(...given)); }

  /** Fetches the details of a model and introduces it; `input` replaces its first example. */
  async load(name, number = null, input = null) {
    this.stop();
    this.clear();
    this.choosing?.abort();
    const { model, example } = this.fields;
    model.value = name;
    this.introduce({ examples: [] });
    const { signal } = (this.choosing = new AbortController());
    this.wait(true);
    this.panel.querySelector(".took").textContent = "Loading the model…";
    try {
      const { metadata } = await ask(pathOf(name, "/metadata"), null, signal);
      this.introduce(metadata);
    } catch (failure) {
      if (this.choosing.signal === signal) this.clear(failure.name === "AbortError" ? "The model is not loaded. Choose the tab again to load it." : failure.message);
      return;
    } finally {
      if (this.choosing.signal === signal) this.wait(false);
    }
    example.value = number ?? (this.details.examples.length ? 0 : "");
    this.fillExample();
    try {
      if (input) this.task.fill(this, input);
    } catch { this.fillExample(); } // a link that is damaged
  }

  introduce(details) {
    this.details = details;
    const { model, example } = this.fields;
    this.panel.querySelector(".settings summary").textContent = `Model and settings · ${model.selectedOptions[0].text}`;
    this.panel.querySelector(".about").replaceChildren(...(details.name ? about(details) : []));
    this.panel.querySelector("[data-card]").hidden = !details.card;
    example.replaceChildren(...details.examples.map((each, i) => element("option", { value: i }, each.title || `Example ${i + 1}`)), element("option", { value: "" }, "none"));
    this.task.introduce?.(this, details);
  }

  /** While a model is loaded, nothing can be typed that its example would replace. */
  wait(is) {
    this.isLoading = is;
    this.busy(is);
    for (const each of this.form.querySelectorAll(".give > :not(.chosen, .actions, .error)")) each.inert = is;
  }

  fillExample() {
    this.stop();
    this.clear();
    this.task.fill(this, this.example()?.instance || {});
    const { source } = this.example() || {};
    this.panel.querySelector(".source").textContent = source ? `The example is from ${source}.` : "";
  }

  stop() {
    for (const each of [this.working, this.looking]) each?.abort();
    this.working = null;
    this.busy(false);
  }

  busy(is) { this.panel.querySelector(".get").setAttribute("aria-busy", is); }

  /** Sends what was given; `more` is the task's own: the bubble that was edited. */
  async submit(...more) {
    if (this.working && this.list) return; // a reply is being written
    this.stop();
    this.clear();
    const { signal } = (this.working = new AbortController());
    this.began = performance.now();
    this.busy(true);
    try {
      await this.task.submit(this, signal, ...more);
    } catch (failure) {
      if (failure.name === "AbortError") return;
      this.clear(failure.message);
    } finally {
      if (this.working?.signal === signal) { // an explanation that was chosen meanwhile may be under way
        this.working = null;
        this.busy(false);
      }
    }
    remember(false);
  }

  answered(place) {
    const seconds = (performance.now() - this.began) / 1000;
    this.panel.querySelector(".took").textContent = `${seconds < 10 ? seconds.toFixed(2) : Math.round(seconds)} s`;
    const { top, bottom } = place.getBoundingClientRect();
    const isSeen = top >= 0 && Math.min(bottom, top + 200) <= innerHeight;
    if (!isSeen && !this.list) place.scrollIntoView({ block: "start" });
  }

  /** Shows beside the result what `request(signal)` gives, or why it fails. The next one replaces it. */
  async look(request) {
    this.looking?.abort();
    const { signal } = (this.looking = new AbortController());
    this.explanation.setAttribute("aria-busy", true);
    const shown = await request(signal).catch(({ name, message }) => (name === "AbortError" ? [] : [element("p", { class: "error", role: "alert" }, message)]));
    if (this.looking.signal !== signal) return;
    this.explanation.setAttribute("aria-busy", false);
    this.explanation.replaceChildren(...shown);
  }
}

function about({ model, corpus, scores, note }) {
  const split = ["dev", "test", ...Object.keys(scores)].find((name) => scores[name]);
  const said = [`${model}, trained on ${corpus}`];
  for (const [i, [name, value]] of Object.entries(scores[split] || {}).slice(0, 3).entries()) {
    said.push(i ? ", " : `; ${split}: `, METRICS[name] ? element("abbr", { title: METRICS[name] }, name) : name, ` ${value.toFixed(3)}`);
  }
  return [...said, split ? "." : "; not measured.", note ? ` ${note}` : ""];
}

function showCard({ name, card }) {
  const shown = document.getElementById("card");
  shown.querySelector("h2").textContent = name;
  shown.querySelector("pre").textContent = card;
  shown.showModal();
}

// === Copying ===

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function copyOf(panel, kind) {
  const url = new URL(pathOf(panel.fields.model.value, ":predict"), location.href.split("#")[0]).href;
  const body = { instances: [panel.task.instance(panel)] };
  const [bearer, os, header] = needsKey ? [' -H "Authorization: Bearer $COLLOQUY_API_KEY"', "import os\n", ', "Authorization": "Bearer " + os.environ["COLLOQUY_API_KEY"]'] : ["", "", ""];
  if (kind === "link") return location.href;
  if (kind === "JSON") return JSON.stringify(body, null, 1);
  if (kind === "curl") return `curl${bearer} --json ${quoted(JSON.stringify(body))} ${quoted(url)}`;
  return `import json
${os}import urllib.request

body = ${JSON.stringify(body, null, 4)}
headers = {"Content-Type": "application/json"${header}}
request = urllib.request.Request(${JSON.stringify(url)}, json.dumps(body).encode(), headers)
print(json.load(urllib.request.urlopen(request)))
`;
}

async function copy(panel, kind) {
  const place = panel.panel.querySelector(".copied");
  if (kind === "link") remember(false);
  const text = copyOf(panel, kind);
  const isCut = kind === "link" && isLong(panel.task.input(panel));
  try {
    await navigator.clipboard.writeText(text);
    place.replaceChildren(isCut ? "Copied without the text, which is too long for a link." : `Copied: ${kind}.`);
  } catch { // without HTTPS, or refused: to be copied by hand
    const field = element("textarea", { readonly: true, rows: 5, "aria-label": `Copy as ${kind}` });
    field.value = text;
    place.replaceChildren(field);
    field.select();
  }
}

// === The address bar: #task?model=NAME&example=NUMBER, or &input=JSON of what was typed and said ===

const linked = () => location.hash.slice(1).split("?");
const isLong = (input) => JSON.stringify(input).length > LONGEST_LINK;

function remember(push) {
  if (!opened) return;
  const [task] = linked();
  if (!push && panels[task] && task !== opened) return; // another tab's entry, while the opened one's model is loaded
  const panel = panels[opened];
  const { model, compare, example } = panel.fields;
  const input = panel.task.input(panel);
  const said = new URLSearchParams({ model: model.value });
  if (compare.value) said.set("compare", compare.value);
  if (example.value) said.set("example", example.value);
  if (!isLong(input)) said.set("input", JSON.stringify(input));
  panel.entry = Math.random(); // the last one of this panel
  history[push ? "pushState" : "replaceState"]({ input, entry: panel.entry }, "", `#${opened}?${said}`);
}

async function restore(fallback) {
  const [task, query] = linked();
  const said = new URLSearchParams(query);
  const panel = panels[task] || panels[fallback];
  if (!panel) return;
  if (panel.entry && history.state?.entry === panel.entry) { // it has this input, and what came since
    show(panel.name);
    return remember(false);
  }
  let input = history.state?.input;
  try {
    input ??= JSON.parse(said.get("input"));
  } catch { /* a link that was cut: the example */ }
  const named = panel.models.some((each) => each.name === said.get("model")) ? said.get("model") : panel.models[0].name;
  show(panel.name);
  if (panel.models.some((each) => each.name === said.get("compare"))) panel.fields.compare.value = said.get("compare");
  await panel.choose(named, panels[task] && said.get("model") ? said.get("example") ?? "" : null, panels[task] ? input : null);
  if (!said.get("model")) remember(false);
}

// === Tabs ===

const tabs = () => [...document.querySelectorAll("[role=tab]")];

function show(task) {
  opened = task;
  for (const tab of tabs()) {
    const is = tab.id === `tab-${task}`;
    tab.setAttribute("aria-selected", is);
    tab.tabIndex = is ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !is;
  }
}

async function open(task, focus = false) {
  if (panels[opened].details.name) remember(false); // what was typed last
  show(task);
  if (focus) document.getElementById(`tab-${task}`).focus();
  const panel = panels[task];
  if (!panel.details.name) await (panel.isLoading ? panel.loading : panel.choose(panel.fields.model.value));
  if (opened === task) remember(linked()[0] !== task);
}

function onTabKey(event) {
  const usable = tabs().filter((tab) => !tab.disabled);
  const at = usable.indexOf(event.target);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  open(usable.at(next % usable.length).id.slice(4), true);
}

// === Start ===

async function start() {
  const found = await ask("v1/models").catch(({ status, message }) => { if (status) notice(message); });
  if (!found) {
    addEventListener("back", start, { once: true });
    return;
  }
  const rows = found.data.map((each) => ({ name: each.id, ...each }));
  for (const tab of tabs()) {
    const task = tab.id.slice(4);
    const models = rows.filter((model) => model.task === task).sort((a, b) => !a.default - !b.default || a.name.localeCompare(b.name));
    tab.disabled = !models.length;
    tab.title = tab.disabled ? "No model of this kind is served" : "";
    if (models.length) panels[task] = new Panel(task, models);
    tab.addEventListener("click", () => open(task));
    tab.addEventListener("keydown", onTabKey);
  }
  if (!Object.keys(panels).length) notice("These pages need runs. Only exported models are served, by REST.");
  addEventListener("popstate", () => restore(opened));
  await restore(Object.keys(TASKS).find((task) => panels[task]));
}

putParts();
start();
