// Ask a text: the answer is marked in the text, whose words are shaded by attention.

import { element, formatCount, makeBar, makeButton, makeHint, percent } from "./common.js";
import { makeChooser, makeLegend, shadeText, WEIGHTS } from "./attention.js";
import { acceptFile, tooLong } from "./files.js";
import { explain } from "./requests.js";

export const reading = {
  asksAtOnce: true,
  begin(panel) {
    panel.passage = panel.find(".passage");
    panel.find("[data-edit]").addEventListener("click", () => {
      panel.stop();
      panel.clear(); // the answer was to the text as it was
      panel.fields.passage.setSelectionRange(0, 0);
      panel.fields.passage.focus();
    });
    acceptFile(panel, panel.find(".text"), (text) => {
      const problem = tooLong(text.length);
      if (!problem) this.fill(panel, { ...this.input(panel), passage: text });
      return problem;
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
    const { passage, question } = this.input(panel);
    if (!question.trim()) throw new Error("Ask a question first.");
    if (!passage.trim()) throw new Error("There is no text to ask: paste one, or open a file.");
    const problem = tooLong(passage.length);
    if (problem) throw new Error(problem);
  },
  async submit(panel, signal) {
    const instance = this.instance(panel);
    const names = panel.askedModels;
    const answers = await Promise.all(names.map((name) => explain(name, instance, signal)));
    const truth = panel.expected(instance);
    const views = answers.map((answer, i) => {
      const isOnly = names.length === 1;
      const show = isOnly ? null : () => showPassage(panel, instance.passage, answer);
      return makeAnswer(answer, truth, isOnly ? "Answer" : names[i], show);
    });
    panel.result.replaceChildren(...views);
    showPassage(panel, instance.passage, answers[0]);
    panel.answered();
  },
};

// === The text, to write in or with its marks ===

function showField(panel) {
  const { passage } = panel.fields;
  passage.hidden = false;
  panel.passage.hidden = true;
  panel.passage.replaceChildren();
  panel.find("[data-edit]").hidden = true;
  panel.explanation.replaceChildren();
  panel.find(".where").textContent = "";
}

/** Shows the text with the answer marked, in the place of its field. */
function showPassage(panel, text, answer) {
  const choices = listShades(answer.attention);
  const marked = [answer.start, answer.end].map((offset) => toUnits(text, offset));
  const window = [answer.window_start, answer.window_end].map((offset) => toUnits(text, offset));
  const draw = (i) => {
    const { words = [], weights = [] } = choices[i] || {};
    panel.passage.replaceChildren(shadeText(text, words, weights, marked, window));
  };
  draw(0);
  panel.passage.hidden = false;
  panel.fields.passage.hidden = true;
  panel.find("[data-edit]").hidden = false;
  panel.find(".where").textContent = sayWindow(text, window);
  scrollToMark(panel.passage);
  if (!choices.length) return;
  panel.explanation.replaceChildren(
    makeChooser("Shade by", choices, draw),
    makeLegend(WEIGHTS),
  );
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

function makeAnswer(answer, truth, title, show) {
  const isDoubtful = answer.good === false;
  const heading = element("h2", {}, title);
  const text = element("p", { class: "answer", dir: "auto" }, answer.answer || "none found");
  if (truth.length) text.append(" ", makeVerdict(answer.answer, truth));
  const view = element("section", { class: isDoubtful ? "view doubtful" : "view" }, heading, text);
  view.setAttribute("aria-label", title);
  view.append(makeHint(sayDoubt(answer)));
  if (answer.unknown_percent) {
    view.append(makeHint(`The model does not know ${answer.unknown_percent} % of the words.`));
  }
  if (show) view.append(makeButton("Mark it in the text", show, { class: "quiet" }));
  const others = listOthers(answer);
  if (others.children.length) view.append(element("h3", {}, "Other answers"), others);
  return view;
}

function makeVerdict(answer, truth) {
  const isCorrect = truth.includes(answer);
  return element("span", { class: "truth" }, isCorrect ? "✓ correct" : `correct: ${truth[0]}`);
}

function sayDoubt({ good, confidence, threshold }) {
  if (confidence == null) return "Confidence unknown: it was not measured for this model.";
  const shown = percent(confidence);
  const limit = threshold == null ? "" : ` A good answer has ${percent(threshold)} or more.`;
  if (good === false) {
    return `This text may not answer it, ${shown}: these words come nearest.${limit}`;
  }
  const right = Math.round(100 * confidence);
  const condition = "if the text answers every second question";
  return `Confidence ${shown}: of 100 such answers about ${right} are right, ${condition}.${limit}`;
}

function listOthers({ answer, n_best }) {
  const list = element("ol", { class: "ranked" });
  for (const other of n_best || []) {
    if (other.answer === answer || !/[\p{L}\p{N}]/u.test(other.answer)) continue;
    const fraction = other.confidence ?? other.probability;
    const text = element("span", { dir: "auto" }, other.answer);
    list.append(element("li", {}, makeBar(fraction, percent(fraction)), text));
  }
  return list;
}
