// A tab's panel: its models and examples, a request that can be stopped, its error.
//
// A task is an object with
//   begin(panel)              once, at the start
//   introduce(panel, card)    a model was chosen; optional
//   loaded(panel, model)      it is loaded; optional
//   fill(panel, input)        puts an example or the input of a link into the fields
//   input(panel)              what was given, for a link
//   instance(panel)           the same as the server takes it
//   check(panel, next)        throws what is wrong with the fields; optional
//   submit(panel, signal)     asks and shows the answer
//   clear(panel)              removes what it shows beside the results; optional
//   asksAtOnce                true: an example is answered when it is chosen
//   opensEmpty                true: no example is chosen at first
//
// A panel with a `list` holds a conversation, see conversation.js.

import { copyAs } from "./copy.js";
import { element, isComposing, isSame } from "./common.js";
import { setLongest } from "./files.js";
import { ask, pathOf } from "./requests.js";

const METRICS = {
  "R2@1": "How often the true response is ranked first of 2.",
  "R10@1": "How often the true response is ranked first of 10.",
  "R10@2": "How often the true response is among the first 2 of 10.",
  "R10@5": "How often the true response is among the first 5 of 10.",
  EM: "Exact match: fraction of answers that are the same as one of the annotators'.",
  F1: "Overlap of the words of the answer and the annotators', averaged over the questions.",
  perplexity: "How many words the model hesitates between, on average: lower is better.",
  "BLEU-1": "Fraction of the reply's words that are in the true reply.",
  "BLEU-2": "The same for pairs of words.",
  per_response: "Fraction of responses that are right.",
  per_dialog: "Fraction of dialogs in which every response is right.",
};
const TYPED = "textarea:read-write:not([name=passage])"; // fields in which Enter submits

export class Panel {
  /** `remember(isNew)` writes the panel's input into the address bar. */
  constructor(name, task, models, remember) {
    this.name = name;
    this.task = task;
    this.models = models;
    this.remember = remember;
    this.place = document.getElementById(`panel-${name}`);
    this.form = this.find("form");
    this.fields = this.form.elements;
    this.result = this.find(".result");
    this.explanation = this.find(".explanation");
    this.card = { examples: [] };
    this.loading = Promise.resolve();
    this.fillModels();
    this.listen();
    task.begin(this);
  }

  find(selector) { return this.place.querySelector(selector); }
  findAll(selector) { return this.place.querySelectorAll(selector); }

  // === Models ===

  get model() { return this.fields.model.value; }

  fillModels() {
    for (const { name, title } of this.models) {
      this.fields.model.append(element("option", { value: name }, title || name));
    }
    this.fillSwitch();
  }

  /** The models with a label, such as a language, are a switch too. */
  fillSwitch() {
    const place = this.find(".switch");
    const labelled = this.models.filter(({ label }) => label);
    place.hidden = labelled.length < 2;
    if (place.hidden) return;
    for (const { name, label } of labelled) {
      const choice = element("input", { type: "radio", name: "switch", value: name });
      choice.addEventListener("change", () => this.chooseByHand(name));
      place.append(element("label", {}, choice, element("span", {}, label)));
    }
  }

  chooseByHand(name) {
    this.choose(name);
    this.opening.then(() => this.remember(true));
  }

  /**
   * Chooses a model. `example` is the number of one of its examples, `input` replaces it.
   * `this.opening` ends when the fields are filled, `this.loading` when the model is loaded.
   */
  choose(name, example = null, input = null) {
    this.stop();
    this.clear();
    this.choosing?.abort();
    this.choosing = new AbortController();
    this.fields.model.value = name;
    for (const choice of this.findAll(".switch input")) choice.checked = choice.value === name;
    this.isTyped = false;
    const { signal } = this.choosing;
    this.loading = this.load(name, signal);
    this.loading.catch(() => {}); // whoever needs the model awaits it
    this.opening = this.open(name, example, input, signal);
    return this.opening;
  }

  /** Fills the fields; the model need not be loaded for that. */
  async open(name, example, input, signal) {
    try {
      const card = await ask(pathOf(name, "/card"), null, signal);
      this.introduce(card);
    } catch (failure) {
      if (this.choosing.signal === signal) this.say(failure.message);
      return;
    }
    if (this.isTyped) { // meanwhile; what one typed stays
      if (this.task.opensEmpty && !this.working) this.task.fill(this, this.task.input(this));
      return;
    }
    const { examples } = this.card;
    const hasFirst = examples.length && !this.task.opensEmpty;
    this.fields.example.value = example ?? (hasFirst ? 0 : "");
    try {
      if (input) this.task.fill(this, input);
    } catch {
      input = null; // a link that is damaged
    }
    if (!input) this.fillExample();
    else if (this.task.asksAtOnce && !this.list) this.submit();
  }

  async load(name, signal) {
    const note = this.find(".took");
    note.textContent = "Loading the model…";
    this.hasFailed = false;
    try {
      const model = await ask(pathOf(name, ""), null, signal);
      await this.opening;
      await this.task.loaded?.(this, model);
    } catch (failure) {
      if (this.choosing.signal === signal) {
        this.hasFailed = true;
        this.say(failure.message);
      }
      throw failure;
    } finally {
      const isStillLoading = note.textContent.startsWith("Loading");
      if (this.choosing.signal === signal && isStillLoading) note.textContent = "";
    }
  }

  introduce(card) {
    this.card = card;
    setLongest(card.text_characters);
    this.find(".about").replaceChildren(...describe(card));
    this.find("[data-card]").hidden = !card.card_html;
    if (card.lead) this.find(".lead span").textContent = card.lead;
    this.fields.example.replaceChildren(...listExamples(card.examples));
    this.task.introduce?.(this, card);
  }

  // === Examples ===

  get example() { return this.card.examples[this.fields.example.value]; }

  fillExample() {
    this.stop();
    this.clear();
    this.task.fill(this, this.example?.instance || {});
    const source = this.example?.source;
    this.find(".source").textContent = source ? `The example is from ${source}.` : "";
    if (this.example && this.task.asksAtOnce) this.submit();
  }

  /** What is in the fields is no longer the example. */
  forgetExample() {
    this.fields.example.value = "";
    this.find(".source").textContent = "";
  }

  /** The true answers of the example, if the fields in `instance` are still the example's. */
  expected(instance) {
    if (!this.example) return [];
    const isOwn = ([key, value]) => isSame(value, this.example.instance[key]);
    return Object.entries(instance).every(isOwn) ? this.example.expected || [] : [];
  }

  // === Events ===

  listen() {
    const { model, example } = this.fields;
    this.form.noValidate = true; // the page says in its own words what is wrong
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.form.addEventListener("keydown", (event) => this.submitByKey(event));
    this.form.addEventListener("input", (event) => {
      if (event.target.matches("select, [type=radio]")) return;
      if (!this.list && !event.target.closest(".menu")) this.forgetExample();
      this.changed();
    });
    model.addEventListener("change", () => this.chooseByHand(model.value));
    example.addEventListener("change", () => {
      this.fillExample();
      this.remember(true);
    });
    this.find("[data-stop]").addEventListener("click", () => {
      this.stop();
      this.find("[type=submit]").focus(); // the button is hidden now
    });
    this.find("[data-card]").addEventListener("click", () => showCard(this.card));
    for (const button of this.findAll("[data-copy]")) {
      button.addEventListener("click", () => copyAs(this, button.dataset.copy));
    }
  }

  /** Enter submits from a field of a line, Ctrl and Enter from any field. */
  submitByKey(event) {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    const isAnyField = event.ctrlKey || event.metaKey;
    if (!isAnyField && !event.target.matches(TYPED)) return;
    event.preventDefault();
    const ownButton = event.target.parentNode.querySelector("[data-send]");
    (ownButton || this.find("[type=submit]")).click();
  }

  /** Something was typed: what was wrong may be mended. */
  changed() {
    this.isTyped = true;
    if (this.find(".error").textContent) this.say("");
    clearTimeout(this.changedTimer);
    this.changedTimer = setTimeout(() => this.remember(false), 300);
  }

  // === Asking ===

  say(text) { this.find(".error").textContent = text || ""; }

  /** Removes the results. */
  clear() {
    this.request = null;
    for (const place of this.findAll(".result, .explanation, .took")) {
      place.replaceChildren();
    }
    this.say("");
    this.task.clear?.(this);
  }

  stop() {
    this.working?.abort();
    this.looking?.abort();
    this.working = null;
    this.setBusy(false);
  }

  setBusy(isBusy) { this.find(".busy").setAttribute("aria-busy", isBusy); }

  /**
   * Sends what was given, once the model is loaded; `next` is the task's own. Whether it was
   * answered.
   */
  async submit(next) {
    if (this.working && this.list) return false; // a reply is being written
    this.stop();
    this.say("");
    this.working = new AbortController();
    const { signal } = this.working;
    this.setBusy(true);
    try {
      await this.waitForModel(signal, next);
      this.began = performance.now();
      await this.task.submit(this, signal, next);
    } catch (failure) {
      if (failure.name === "AbortError") return false;
      this.clear();
      this.say(failure.message);
      focusOn(failure.field);
      return false;
    } finally {
      if (this.working?.signal === signal) {
        this.working = null;
        this.setBusy(false);
      }
    }
    this.remember(false);
    return true;
  }

  async waitForModel(signal, next) {
    this.task.check?.(this, next);
    const note = this.find(".took");
    note.textContent = "Loading the model…";
    if (this.hasFailed) {
      this.loading = this.load(this.model, this.choosing.signal);
    }
    await this.loading;
    note.textContent = "";
    signal.throwIfAborted();
  }

  /** The first answer is there: says how long it took. `instance` is what was asked. */
  answered(instance) {
    this.request = { model: this.model, instance };
    const seconds = (performance.now() - this.began) / 1000;
    const shown = seconds < 10 ? seconds.toFixed(2) : Math.round(seconds);
    this.find(".took").textContent = `${shown} s`;
  }

  /** Shows in the explanation what `request(signal)` gives, or why it fails. */
  async look(request) {
    this.looking?.abort();
    this.looking = new AbortController();
    const { signal } = this.looking;
    this.explanation.setAttribute("aria-busy", true);
    let shown = [];
    try {
      shown = await request(signal);
    } catch (failure) {
      if (failure.name !== "AbortError") shown = [makeAlert(failure.message)];
    }
    if (this.looking.signal !== signal) return;
    this.explanation.setAttribute("aria-busy", false);
    this.explanation.replaceChildren(...shown);
  }
}

function focusOn(field) {
  if (!field) return;
  const menu = field.closest(".menu");
  if (menu) menu.open = true;
  field.focus();
}

/** The examples as options; those with titles such as `Task 1: a table` in groups. */
function listExamples(examples) {
  const groups = new Map();
  const options = [];
  examples.forEach(({ title }, i) => {
    const [, group, rest] = title.match(/^([^:]+): (.+)$/) || [null, "", title];
    const option = element("option", { value: i }, rest || `Example ${i + 1}`);
    if (group && !groups.has(group)) {
      groups.set(group, element("optgroup", { label: group }));
      options.push(groups.get(group));
    }
    if (group) groups.get(group).append(option);
    else options.push(option);
  });
  return [...options, element("option", { value: "" }, "your own")];
}

const makeAlert = (text) => element("p", { class: "error", role: "alert" }, text);

/** What a model is and how well it does, as nodes of a sentence. */
function describe({ model, corpus, scores, note }) {
  const split = ["dev", "test", ...Object.keys(scores)].find((name) => scores[name]);
  const shown = [`${model}, trained on ${corpus}`];
  if (!split) return [...shown, "; not measured."];
  shown.push(`; ${split}: `);
  Object.entries(scores[split]).slice(0, 3).forEach(([name, value], i) => {
    if (i) shown.push(", ");
    const title = METRICS[name];
    shown.push(title ? element("abbr", { title }, name) : name, ` ${value.toFixed(3)}`);
  });
  shown.push(".");
  if (note) shown.push(` ${note}`);
  return shown;
}

/** The server renders the card, without any markup of the card's own. */
function showCard({ name, card_html }) {
  const dialog = document.getElementById("card");
  dialog.querySelector("#card-title").textContent = name;
  dialog.querySelector(".markdown").innerHTML = card_html;
  dialog.showModal();
}
