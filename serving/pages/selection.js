// Pick a response: a conversation and candidates as rows; then, in the place of the candidates, their
// order.

import {
  element, fieldError, formatCount, makeBar, makeDoubt, makeHint, makeMore,
} from "./common.js";
import { MATCHES, shadeTurns } from "./attention.js";
import { acceptFile, tooLong } from "./files.js";
import { explain, predict } from "./requests.js";
import { addRow, firstLines, pasteRows, readRows, setRows } from "./rows.js";

const SHOWN = 5; // results of an index, before "more"

export const selection = {
  begin(panel) {
    panel.turns = panel.find(".rows.turns");
    panel.candidates = panel.find(".rows.candidates");
    panel.match = () => {};
    panel.find(".fold").addEventListener("toggle", () => panel.match());
    for (const button of panel.findAll("[data-add]")) {
      button.addEventListener("click", () => addRow(button.previousElementSibling, "").focus());
    }
    panel.find("[data-edit]").addEventListener("click", () => {
      panel.stop();
      panel.clear();
      panel.candidates.querySelector("textarea").focus();
    });
    panel.form.addEventListener("paste", (event) => pasteRows(panel, event));
    panel.find("[data-index]").addEventListener("click", () => {
      setRows(panel.candidates, []);
      panel.forgetExample();
      panel.form.requestSubmit();
    });
    acceptFile(panel, panel.find(".candidate-box"), (text) => {
      const { lines, note } = firstLines(text);
      const problem = tooLong(lines.join("").length);
      if (problem) return problem;
      panel.forgetExample();
      setRows(panel.candidates, lines);
      return note;
    });
  },
  introduce(panel) { showIndex(panel, 0); },
  loaded(panel, { responses }) { showIndex(panel, responses || 0); },
  fill(panel, { turns = [], candidates = [] }) {
    setRows(panel.turns, turns);
    setRows(panel.candidates, candidates);
    showFields(panel, true);
  },
  input(panel) {
    return { turns: readRows(panel.turns), candidates: readRows(panel.candidates) };
  },
  instance(panel) {
    const { turns, candidates } = this.input(panel);
    return candidates.length || !panel.indexSize ? { turns, candidates } : { turns };
  },
  clear(panel) {
    panel.match = () => {};
    showFields(panel, true);
  },
  check(panel) {
    const first = (list) => list.querySelector("textarea") || list.nextElementSibling;
    const { turns, candidates } = this.input(panel);
    if (!turns.length) throw fieldError("The conversation has no words yet.", first(panel.turns));
    if (candidates.length || panel.indexSize) return;
    throw fieldError("There are no responses yet: type some, one per row.", first(panel.candidates));
  },
  async submit(panel, signal) {
    const instance = this.instance(panel);
    const answer = await predict(panel.model, instance, signal);
    const { view, select } = makeRanking(panel, instance, answer);
    panel.result.replaceChildren(view);
    showFields(panel, false);
    panel.answered(instance);
    showFromTop(panel.result.closest("section"));
    select(0);
  },
};

function showIndex(panel, size) {
  panel.indexSize = size;
  panel.find("[data-index]").hidden = !size;
  panel.find("[data-retrieval]").hidden = !size;
  const hint = `Without any, the best of ${formatCount(size)} responses that people gave are found.`;
  panel.find("[data-retrieval]").textContent = hint;
}

/** Shows the candidates as fields, or their order in that place. */
function showFields(panel, isShown) {
  panel.find(".fields").hidden = !isShown;
  panel.result.hidden = isShown;
  panel.find("[data-edit]").hidden = isShown;
}

/** Scrolls to a section that begins below the window, as on a phone. */
function showFromTop(section) {
  if (section.getBoundingClientRect().top > innerHeight / 2) section.scrollIntoView();
}

// === The order ===

/** The order; `select(n)` shows what matched in its n-th response, if one looks. */
function makeRanking(panel, instance, answer) {
  const candidates = answer.candidates || instance.candidates;
  if (!candidates.length) throw new Error("Nothing in the index has a word of that.");
  const buttons = listResponses(panel, instance, answer, candidates);
  const select = (n) => {
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", place === n));
    const chosen = { turns: instance.turns, candidates: [candidates[answer.order[n]]] };
    panel.match = () => {
      if (!panel.find(".fold").open) return;
      panel.look((signal) => findMatches(panel.model, chosen, signal));
    };
    panel.match();
  };
  const list = element("ol", { class: "ranked" });
  buttons.forEach((button, n) => {
    button.addEventListener("click", () => select(n));
    list.append(element("li", { hidden: answer.candidates && n >= SHOWN }, button));
  });
  const view = element("section", { class: "view", "aria-label": "Order" });
  const doubt = makeDoubt("None of these may be a good response", answer);
  view.append(...doubt, list, ...makeMore(list));
  view.append(makeHint("The longer the bar, the better the response; the worst has none."));
  return { view, select };
}

function listResponses(panel, instance, answer, candidates) {
  const scores = answer.totals || answer.logits;
  const lowest = Math.min(...scores);
  const range = Math.max(...scores) - lowest;
  const truth = panel.expected({ turns: instance.turns });
  const turns = new Set(instance.turns.map(simplify));
  return answer.order.map((number) => {
    const response = candidates[number];
    const text = element("span", { dir: "auto" }, response);
    if (truth.includes(response)) text.append(" ", makeMark("✓ true response"));
    if (turns.has(simplify(response))) text.append(" ", makeMark("an echo: repeats a turn"));
    const bar = makeBar(range ? (scores[number] - lowest) / range : 1);
    const button = element("button", { type: "button", "aria-pressed": "false" }, bar, text);
    if (answer.said_to) {
      const context = `once said to: ${answer.said_to[number].join(" / ")}`;
      button.append(element("span", { class: "hint", dir: "auto" }, context));
    }
    return button;
  });
}

const makeMark = (text) => element("span", { class: "truth" }, text);

/** A text by its words alone, to tell whether it repeats another. */
function simplify(text) {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [text]).join(" ");
}

// === What matched ===

async function findMatches(model, instance, signal) {
  const { attention } = await explain(model, instance, signal);
  return attention.length ? shadeMatches(attention) : [makeHint("Nothing to show.")];
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
