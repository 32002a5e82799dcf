// Ask a text: the answer is marked in the text, whose words are shaded by attention.

import { element, fieldError, formatCount, makeBar, makeHint, percent } from "./common.js";
import { makeChooser, makeLegend, shadeText, WEIGHTS } from "./attention.js";
import { acceptFile, tooLong } from "./files.js";
import { explain } from "./requests.js";

export const reading = {
  asksAtOnce: true,
  begin(panel) {
    panel.passage = panel.find(".passage");
    panel.shade = () => {};
    panel.find(".fold").addEventListener("toggle", () => panel.shade());
    panel.find("[data-edit]").addEventListener("click", () => {
      panel.stop();
      panel.clear(); // the answer was to the text as it was
      panel.fields.passage.setSelectionRange(0, 0);
      panel.fields.passage.focus();
    });
    acceptFile(panel, panel.find(".text"), (text) => {
      const problem = tooLong(text.length);
      if (problem) return problem;
      panel.forgetExample();
      this.fill(panel, { ...this.input(panel), passage: text });
      return "";
    });
  },
  fill(panel, { passage = "", question = "" }) {
    panel.fields.passage.value = passage;
    panel.fields.question.value = question;
    showField(panel);
  },
  input(panel) {
    const { passage, question } = panel.fields;
    return { passage: passage.value, question: question.value };
  },
  instance(panel) { return this.input(panel); },
  clear: showField,
  check(panel) {
    const { passage, question } = panel.fields;
    if (!question.value.trim()) throw fieldError("Ask a question first.", question);
    const isEmpty = !passage.value.trim();
    if (isEmpty) throw fieldError("There is no text to ask: paste one, or open a file.", passage);
    const problem = tooLong(passage.value.length);
    if (problem) throw fieldError(problem, passage);
  },
  async submit(panel, signal) {
    const instance = this.instance(panel);
    const answer = await explain(panel.model, instance, signal);
    const truth = panel.expected(instance);
    panel.result.replaceChildren(makeAnswer(panel, instance.passage, answer, truth));
    showPassage(panel, instance.passage, answer, answer);
    panel.answered(instance);
  },
};

// === The text, to write in or with its marks ===

function showField(panel) {
  const { passage } = panel.fields;
  passage.hidden = false;
  panel.passage.hidden = true;
  panel.passage.replaceChildren();
  panel.shade = () => {};
  panel.find("[data-edit]").hidden = true;
  panel.explanation.replaceChildren();
  panel.find(".where").textContent = "";
}

/**
 * Shows the text in the place of its field, with a span of the answer marked: its own, or an
 * alternative. Its words are shaded while the panel of attention is open.
 */
function showPassage(panel, text, answer, span) {
  const choices = listShades(answer.attention);
  const marked = [span.start, span.end].map((offset) => toUnits(text, offset));
  const window = [answer.window_start, answer.window_end].map((offset) => toUnits(text, offset));
  const isWithin = window[0] <= marked[0] && marked[1] <= window[1];
  let chosen = 0;
  panel.shade = () => {
    const isOpen = panel.find(".fold").open;
    const { words = [], weights = [] } = (isOpen && choices[chosen]) || {};
    const shown = isWithin ? window : [0, text.length];
    panel.passage.replaceChildren(shadeText(text, words, weights, marked, shown));
  };
  const draw = (i) => {
    chosen = i;
    panel.shade();
  };
  draw(0);
  panel.passage.hidden = false;
  panel.fields.passage.hidden = true;
  panel.find("[data-edit]").hidden = false;
  panel.find(".where").textContent = sayWindow(text, window);
  scrollToMark(panel.passage);
  const shades = [makeChooser("Shade by", choices, draw), makeLegend(WEIGHTS)];
  const nothing = makeHint("This network has no attention to show.");
  panel.explanation.replaceChildren(...(choices.length ? shades : [nothing]));
}

/** The server counts characters, a string UTF-16 units. */
function toUnits(text, offset) {
  return [...text].slice(0, Math.max(offset, 0)).join("").length;
}

/** Says which part of a long text answered. */
function sayWindow(text, [start, end]) {
  const hasNoWords = (part) => !/[\p{L}\p{N}]/u.test(part);
  if (hasNoWords(text.slice(0, start)) && hasNoWords(text.slice(end))) return "";
  const count = (part) => part.split(/\s+/).filter(Boolean).length;
  const first = count(text.slice(0, start)) + 1;
  const last = first + count(text.slice(start, end)) - 1;
  const [from, to, total] = [first, last, count(text)].map(formatCount);
  return `Words ${from} to ${to} of ${total} answered; the rest is grey.`;
}

function scrollToMark(passage) {
  const mark = passage.querySelector("mark");
  if (!mark) return;
  const top = mark.getBoundingClientRect().top - passage.getBoundingClientRect().top;
  passage.scrollTop += top - passage.clientHeight / 2;
}

/** What the words can be shaded by: probabilities, or attention from and to the question. */
function listShades(maps) {
  const general = [];
  const ofWords = []; // of one word of the question
  for (const { title, rows, columns, weights } of maps) {
    if (title === "probabilities") {
      const most = columns.map((_, j) => Math.max(...weights.map((row) => row[j])));
      general.push({ text: "first and last word", words: columns, weights: most });
    } else if (rows.length === 1) {
      general.push({ text: "whole question", words: columns, weights: weights[0] });
    } else {
      columns.forEach((text, j) => {
        const column = weights.map((row) => row[j]);
        const say = `attention to ${text}`;
        ofWords.push({ text, weight: 0, say, words: rows, weights: column });
      });
    }
  }
  return [...general, ...ofWords];
}

// === The answer ===

function makeAnswer(panel, passage, answer, truth) {
  const isDoubtful = answer.good === false;
  const text = element("p", { class: "answer", dir: "auto" }, answer.answer || "none found");
  if (truth.length) text.append(" ", compare(answer.answer, truth));
  const view = element("section", { class: isDoubtful ? "view doubtful" : "view" }, text);
  view.setAttribute("aria-label", "Answer");
  view.append(sayVerdict(answer));
  if (answer.remark) view.append(element("p", { class: "remark" }, answer.remark));
  if (answer.unknown_percent) {
    view.append(makeHint(`The network does not know ${answer.unknown_percent} % of the words.`));
  }
  view.append(...listSpans(panel, passage, answer));
  return view;
}

function compare(answer, truth) {
  const isCorrect = truth.includes(answer);
  return element("span", { class: "truth" }, isCorrect ? "✓ correct" : `correct: ${truth[0]}`);
}

/** How sure the network is, in words; the per cent and its limit are a hover away. */
function sayVerdict({ confidence, threshold, verdict }) {
  if (confidence == null) return makeHint("How sure it is was not measured for this network.");
  const title = `Of 100 answers with this score about ${Math.round(100 * confidence)} are right, `
    + "if every second question can be answered. "
    + `From ${percent(threshold)} on, an answer is shown as good.`;
  const word = element("abbr", { class: "verdict", title, tabindex: 0 }, verdict);
  return element("p", { class: "hint" }, "How sure: ", word);
}

/** The answer and its alternatives, each a button that marks it in the text. */
function listSpans(panel, passage, answer) {
  const others = answer.n_best.filter((span) => {
    return span.answer !== answer.answer && /[\p{L}\p{N}]/u.test(span.answer);
  });
  const list = element("ol", { class: "ranked" });
  const buttons = [answer, ...others].map((span) => {
    const fraction = span.confidence ?? span.probability;
    const bar = makeBar(fraction, "", `Confidence: ${percent(fraction)}`);
    const text = element("span", { dir: "auto" }, span.answer);
    const button = element("button", { type: "button" }, bar, text);
    button.addEventListener("click", () => press(button, span));
    list.append(element("li", {}, button));
    return button;
  });
  if (buttons.length === 1) return [];
  const mark = (pressed) => {
    for (const button of buttons) button.setAttribute("aria-pressed", button === pressed);
  };
  const press = (button, span) => {
    mark(button);
    showPassage(panel, passage, answer, span);
  };
  mark(buttons[0]);
  return [makeHint("Choose an answer to mark it in the text."), list];
}
