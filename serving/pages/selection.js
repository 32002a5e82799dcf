// Pick a response: turns and candidates as rows, and the ranking with what matched.

import { acceptFile, bar, element, explain, lines, percent, predict, softmax } from "./common.js";
import { matches } from "./attention.js";

const texts = (list) => [...list.querySelectorAll("textarea")].map((field) => field.value.trim()).filter(Boolean);

function row(list, text, name) {
  const field = element("textarea", { rows: Math.min(6, Math.ceil((text.length + 1) / 44)), dir: "auto" });
  field.value = text;
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    field.form.requestSubmit();
  });
  field.addEventListener("paste", (event) => { // several lines become several rows
    const pasted = lines(event.clipboardData.getData("text"));
    if (pasted.length < 2 || field.value) return;
    event.preventDefault();
    setRows(list, [...texts(list), ...pasted], name);
    list.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const remove = element("button", { type: "button", class: "remove", onclick: () => { item.remove(); number(list, name); list.dispatchEvent(new Event("input", { bubbles: true })); } }, "×");
  const item = element("li", {}, field, remove);
  list.append(item);
  number(list, name);
  return field;
}

function number(list, name) {
  [...list.children].forEach((item, i, all) => {
    item.dataset.who = (all.length - i) % 2 ? "them" : "you";
    item.querySelector("textarea").setAttribute("aria-label", `${name} ${i + 1}`);
    item.querySelector("button").setAttribute("aria-label", `Remove ${name.toLowerCase()} ${i + 1}`);
  });
}

function setRows(list, values, name) {
  list.replaceChildren();
  for (const text of values.length ? values : [""]) row(list, text, name);
}

const place = (state, name) => state.panel.querySelector(`.${name}`);

export const selection = {
  begin(state) {
    const candidates = place(state, "candidates");
    for (const button of state.panel.querySelectorAll("[data-add]")) {
      button.addEventListener("click", () => row(button.previousElementSibling, "", button.dataset.add).focus());
    }
    state.panel.querySelector("[data-empty]").addEventListener("click", () => {
      setRows(candidates, [], "Response");
      state.form.requestSubmit();
    });
    acceptFile(state.panel.querySelector(".candidate-box"), state.panel.querySelector("[data-file]"), (text) => {
      setRows(candidates, lines(text).slice(0, 200), "Response");
      state.changed();
    });
  },
  introduce(state, { responses }) {
    const hint = state.panel.querySelector("[data-retrieval]");
    hint.hidden = state.panel.querySelector("[data-empty]").hidden = !responses;
    hint.textContent = `Without any: the best of an index of ${(responses || 0).toLocaleString("en")} responses.`;
  },
  fill(state, { turns = [], candidates = [] }) {
    setRows(place(state, "turns"), turns, "Turn");
    setRows(place(state, "candidates"), candidates, "Response");
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
    const answer = await state.look((signal) => explain(model, { turns: instance.turns, candidates: [candidates[found.order[n]]] }, signal));
    if (answer) state.explanation.replaceChildren(...(answer.attention.length ? [matches(answer.attention)] : []));
  };
  const list = element("ol", { class: "ranked" }, ...found.order.map((i, n) => {
    const said = found.said_to ? [element("span", { class: "hint", dir: "auto" }, `once said to: ${found.said_to[i].join(" / ")}`)] : [];
    const isTrue = truth.includes(candidates[i]);
    const text = element("span", { dir: "auto" }, candidates[i]);
    if (isTrue) text.append(" ", element("span", { class: "truth" }, "✓ true response"));
    const title = `${found.totals ? "logit + 16 × similarity of the questions" : "logit"}: ${logits[i].toFixed(2)}`;
    buttons.push(element("button", { type: "button", "aria-pressed": "false", onclick: () => select(n) }, bar(shares[i], percent(shares[i]), title), text, ...said));
    return element("li", {}, buttons[n]);
  }));
  const note = element("p", { class: "hint" }, "Bars: a softmax over these candidates. Choose one to see what matched.");
  return { view: element("section", { class: "view", "aria-label": `Ranking by ${model}` }, element("h2", {}, state.asked().length > 1 ? model : "Ranking"), list, note), select };
}
