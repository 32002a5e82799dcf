// Pick a response: a conversation and candidates as rows; then, in their place, what matched and a
// ranking.

import { element, formatCount, makeBar, makeButton, makeHint, percent, softmax } from "./common.js";
import { MATCHES, shadeTurns } from "./attention.js";
import { acceptFile, tooLong } from "./files.js";
import { explain, predict } from "./requests.js";
import { addRow, firstLines, pasteRows, readRows, setRows } from "./rows.js";

const SHOWN = 5; // results of an index, before "more"

export const selection = {
  begin(panel) {
    panel.turns = panel.find(".rows.turns");
    panel.candidates = panel.find(".rows.candidates");
    panel.find(".example").after(panel.find(".actions")); // to rank within three Tab presses
    for (const button of panel.findAll("[data-add]")) {
      button.addEventListener("click", () => addRow(button.previousElementSibling, "").focus());
    }
    for (const button of panel.findAll("[data-edit]")) {
      button.addEventListener("click", () => editAgain(panel, button));
    }
    panel.form.addEventListener("paste", (event) => pasteRows(panel, event));
    panel.find("[data-index]").addEventListener("click", () => {
      setRows(panel.candidates, []);
      panel.form.requestSubmit();
    });
    acceptFile(panel, panel.find(".candidate-box"), (text) => {
      const { lines, note } = firstLines(text);
      const problem = tooLong(lines.join("").length);
      if (!problem) setRows(panel.candidates, lines);
      return problem || note;
    });
  },
  introduce(panel) { showIndex(panel, 0); },
  loaded(panel, { responses }) { showIndex(panel, responses || 0); },
  fill(panel, { turns = [], candidates = [] }) {
    setRows(panel.turns, turns);
    setRows(panel.candidates, candidates);
    showFields(panel);
  },
  input(panel) {
    return { turns: readRows(panel.turns), candidates: readRows(panel.candidates) };
  },
  instance(panel) {
    const { turns, candidates } = this.input(panel);
    return candidates.length || !panel.indexSize ? { turns, candidates } : { turns };
  },
  clear: showFields,
  check(panel) {
    if (!readRows(panel.turns).length) throw new Error("The conversation has no words yet.");
  },
  async submit(panel, signal) {
    const instance = this.instance(panel);
    if (instance.candidates && !instance.candidates.length) {
      throw new Error("Give responses to choose from, one per row.");
    }
    const names = panel.askedModels;
    const answers = await Promise.all(names.map((name) => predict(name, instance, signal)));
    const rankings = answers.map((answer, i) => makeRanking(panel, instance, answer, names, i));
    panel.result.replaceChildren(...rankings.map(({ view }) => view));
    showResults(panel);
    panel.answered();
    showFromTop(panel.result.closest("section"));
    await rankings[0].select(0);
  },
};

function showIndex(panel, size) {
  panel.indexSize = size;
  panel.find("[data-index]").hidden = !size;
  panel.find("[data-retrieval]").hidden = !size;
  const hint = `Without any, an index of ${formatCount(size)} responses is searched.`;
  panel.find("[data-retrieval]").textContent = hint;
}

// === Fields, or results in their place ===

function showFields(panel) {
  for (const place of panel.findAll(".fields")) place.hidden = false;
  for (const place of panel.findAll(".results")) place.hidden = true;
  for (const button of panel.findAll("[data-edit]")) button.hidden = true;
}

function showResults(panel) {
  for (const place of panel.findAll(".fields")) place.hidden = true;
  for (const place of panel.findAll(".results")) place.hidden = false;
  for (const button of panel.findAll("[data-edit]")) button.hidden = false;
}

/** Scrolls to a section that begins below the window, as on a phone. */
function showFromTop(section) {
  if (section.getBoundingClientRect().top > innerHeight / 2) section.scrollIntoView();
}

function editAgain(panel, button) {
  panel.stop();
  panel.clear();
  button.closest("section").querySelector("textarea").focus();
}

// === The ranking ===

/** The ranking of one model; `select(n)` shows what matched in its n-th response. */
function makeRanking(panel, instance, answer, names, i) {
  const candidates = answer.candidates || instance.candidates;
  if (!candidates.length) throw new Error("Nothing in the index has a word of that.");
  const model = names[i];
  const buttons = listResponses(panel, instance, answer, candidates);
  const select = async (n) => {
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", place === n));
    const chosen = { turns: instance.turns, candidates: [candidates[answer.order[n]]] };
    await panel.look(async (signal) => {
      const { attention } = await explain(model, chosen, signal);
      return attention.length ? shadeMatches(attention) : [makeHint("Nothing to show.")];
    });
  };
  const list = element("ol", { class: "ranked" });
  buttons.forEach((button, n) => {
    button.addEventListener("click", () => select(n));
    list.append(element("li", { hidden: answer.candidates && n >= SHOWN }, button));
  });
  const view = element("section", { class: "view", "aria-label": `Ranking by ${model}` });
  if (names.length > 1) view.append(element("h3", {}, model));
  view.append(list, ...makeMore(list));
  const scale = "Per cent: a softmax over these responses.";
  view.append(makeHint(`${scale} Choose one to see what matched.`));
  return { view, select };
}

function listResponses(panel, instance, answer, candidates) {
  const logits = answer.totals || answer.logits;
  const fractions = softmax(logits);
  const truth = panel.expected({ turns: instance.turns });
  const unit = answer.totals ? "logit + 16 × similarity of the questions" : "logit";
  return answer.order.map((number) => {
    const text = element("span", { dir: "auto" }, candidates[number]);
    if (truth.includes(candidates[number])) {
      text.append(" ", element("span", { class: "truth" }, "✓ true response"));
    }
    const title = `${unit}: ${logits[number].toFixed(2)}`;
    const bar = makeBar(fractions[number], percent(fractions[number]), title);
    const button = element("button", { type: "button", "aria-pressed": "false" }, bar, text);
    if (answer.said_to) {
      const context = `once said to: ${answer.said_to[number].join(" / ")}`;
      button.append(element("span", { class: "hint", dir: "auto" }, context));
    }
    return button;
  });
}

/** A button that shows the hidden items of a list, if it has any. */
function makeMore(list) {
  const rest = [...list.children].filter((item) => item.hidden);
  if (!rest.length) return [];
  const more = makeButton(`${rest.length} more`, () => {
    for (const item of rest) item.hidden = false;
    rest[0].querySelector("button").focus();
    more.remove();
  }, { class: "quiet" });
  return [more];
}

/** The matches of a response's words with those of each turn; at first the strongest of all. */
function shadeMatches(maps) {
  const response = maps[0].columns;
  const choices = [{ text: "all words" }];
  response.forEach((text, j) => {
    const weights = maps.flatMap((map) => map.weights.map((row) => row[j]));
    choices.push({ text, weight: Math.max(...weights), say: `matches of ${text}` });
  });
  return shadeTurns({
    label: "Response:",
    choices,
    turns: maps.map((map) => map.rows),
    lastIs: "them",
    weightOf(choice, t, k) {
      const row = maps[t].weights[k];
      return choice ? row[choice - 1] : Math.max(...row);
    },
    scale: MATCHES,
    maps,
  });
}
