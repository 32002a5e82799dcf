// Pick a response: turns and candidates as rows, and the ranking with what matched.

import { acceptFile, bar, element, explain, lines, percent, predict, softmax, tooLong } from "./common.js";
import { matches } from "./attention.js";

const texts = (list) => [...list.querySelectorAll("textarea")].map((field) => field.value.trim()).filter(Boolean);
const MOST = 200; // rows that are made at once
const nameOf = (list) => list.nextElementSibling.dataset.add; // of its rows: Turn or Response
const changed = (list) => list.dispatchEvent(new Event("input", { bubbles: true }));

function row(list, text, before = null) {
  const field = element("textarea", { rows: Math.min(6, Math.ceil((text.length + 1) / 44)), dir: "auto" });
  field.value = text;
  const grip = element("button", { type: "button", class: "grip", title: "Drag, or press Alt and an arrow key" });
  const remove = element("button", { type: "button", class: "remove", onclick: () => {
    ((item.nextElementSibling || item.previousElementSibling)?.querySelector(".remove") || list.nextElementSibling).focus();
    discard(item);
  } }, "×");
  const item = element("li", {}, grip, field, remove);
  letMove(list, item, grip);
  list.insertBefore(item, before);
  number(list);
  return field;
}

function discard(item) {
  const list = item.parentNode;
  item.remove();
  number(list);
  changed(list);
}

/** Several lines that are pasted into an empty row become several rows. */
function paste(state, event) {
  const item = event.target.closest(".give li");
  const { found, note } = firstLines(event.clipboardData.getData("text"));
  if (!item || event.target.value || found.length < 2) return;
  event.preventDefault();
  found.map((text) => row(item.parentNode, text, item)).at(-1).focus();
  discard(item);
  state.say(note);
}

function firstLines(text) {
  const all = lines(text);
  const note = all.length > MOST ? `The text has ${all.length.toLocaleString("en")} lines: the first ${MOST} are here.` : "";
  return { found: all.slice(0, MOST), note };
}

/** Moves a row past its neighbours: by its grip with mouse, finger or arrow keys, and with Alt and arrow keys from anywhere in it. */
function letMove(list, item, grip) {
  const move = (step) => { // the neighbour moves, so that the row keeps the focus and the pointer
    if (step < 0) item.after(item.previousElementSibling);
    else item.before(item.nextElementSibling);
    item.scrollIntoView({ block: "nearest" });
    number(list);
    changed(list);
    document.getElementById("moved").textContent = `${nameOf(list)} moved to place ${[...list.children].indexOf(item) + 1} of ${list.children.length}.`;
  };
  const middle = (row) => { const { top, height } = row.getBoundingClientRect(); return top + height / 2; };
  grip.addEventListener("pointerdown", (event) => grip.setPointerCapture(event.pointerId));
  grip.addEventListener("pointermove", ({ pointerId, clientY }) => {
    if (!grip.hasPointerCapture(pointerId)) return;
    while (item.previousElementSibling && clientY < middle(item.previousElementSibling)) move(-1);
    while (item.nextElementSibling && clientY > middle(item.nextElementSibling)) move(1);
  });
  item.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step || !(event.altKey || event.target === grip)) return;
    event.preventDefault();
    if (step < 0 ? item.previousElementSibling : item.nextElementSibling) move(step);
  });
}

function number(list) {
  const name = nameOf(list);
  [...list.children].forEach((item, i, all) => {
    item.dataset.who = (all.length - i) % 2 ? "them" : "you";
    item.querySelector("textarea").setAttribute("aria-label", `${name} ${i + 1}`);
    for (const [kind, verb] of [["grip", "Move"], ["remove", "Remove"]]) item.querySelector(`.${kind}`).setAttribute("aria-label", `${verb} ${name.toLowerCase()} ${i + 1}`);
  });
}

function setRows(list, values) {
  list.replaceChildren();
  for (const text of values.length ? values : [""]) row(list, text);
}

const place = (state, name) => state.panel.querySelector(`.${name}`);

export const selection = {
  begin(state) {
    const candidates = place(state, "candidates");
    for (const button of state.panel.querySelectorAll("[data-add]")) {
      button.addEventListener("click", () => row(button.previousElementSibling, "").focus());
    }
    state.form.addEventListener("paste", (event) => paste(state, event));
    state.panel.querySelector("[data-empty]").addEventListener("click", () => {
      setRows(candidates, []);
      state.form.requestSubmit();
    });
    acceptFile(state, state.panel.querySelector(".candidate-box"), (text) => {
      const { found, note } = firstLines(text);
      const problem = tooLong(found.join("").length);
      if (!problem) setRows(candidates, found);
      return problem || note;
    });
  },
  introduce(state, { responses }) {
    const hint = state.panel.querySelector("[data-retrieval]");
    hint.hidden = state.panel.querySelector("[data-empty]").hidden = !responses;
    hint.textContent = `Or leave them out, and an index of ${(responses || 0).toLocaleString("en")} responses is searched.`;
  },
  fill(state, { turns = [], candidates = [] }) {
    setRows(place(state, "turns"), turns);
    setRows(place(state, "candidates"), candidates);
  },
  input: (state) => ({ turns: texts(place(state, "turns")), candidates: texts(place(state, "candidates")) }),
  instance(state) {
    const { turns, candidates } = this.input(state);
    return candidates.length || !state.details.responses ? { turns, candidates } : { turns };
  },
  async submit(state, signal) {
    const instance = this.instance(state);
    if (instance.candidates && !instance.candidates.length) throw new Error("Give candidate responses, one per row.");
    const found = await Promise.all(state.asked().map((model) => predict(model, instance, signal)));
    const shown = found.map((answer, i) => ranking(state, instance, answer, state.asked()[i]));
    state.result.replaceChildren(...shown.map(({ view }) => view));
    state.answered(shown[0].view);
    await shown[0].select(0);
  },
};

function ranking(state, instance, found, model) {
  const candidates = found.candidates || instance.candidates;
  if (!candidates.length) throw new Error("Nothing in the index has a word of that.");
  const logits = found.totals || found.logits;
  const shares = softmax(logits);
  const truth = state.expected({ turns: instance.turns });
  const buttons = [];
  const select = async (n) => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === n));
    await state.look(async (signal) => {
      const { attention } = await explain(model, { turns: instance.turns, candidates: [candidates[found.order[n]]] }, signal);
      return attention.length ? [matches(attention)] : [];
    });
  };
  const list = element("ol", { class: "ranked" }, ...found.order.map((i, n) => {
    const said = found.said_to ? [element("span", { class: "hint", dir: "auto" }, `once said to: ${found.said_to[i].join(" / ")}`)] : [];
    const isTrue = truth.includes(candidates[i]);
    const text = element("span", { dir: "auto" }, candidates[i]);
    if (isTrue) text.append(" ", element("span", { class: "truth" }, "✓ true response"));
    const title = `${found.totals ? "logit + 16 × similarity of the questions" : "logit"}: ${logits[i].toFixed(2)}`;
    buttons.push(element("button", { type: "button", "aria-pressed": "false", onclick: () => select(n).then(() => state.explanation.scrollIntoView({ block: "nearest" })) }, bar(shares[i], percent(shares[i]), title), text, ...said));
    return element("li", {}, buttons[n]);
  }));
  const note = element("p", { class: "hint" }, "Percentages: a softmax over these responses. Choose one to see what matched.");
  return { view: element("section", { class: "view", "aria-label": `Ranking by ${model}` }, element("h2", {}, state.asked().length > 1 ? model : "Ranking"), list, note), select };
}
