// Dialog bAbI: a dialog of the benchmark, played step by step. As long as its sentences are said
// unchanged, the conversation continues as the dialog has it; after another sentence it continues
// with the network's own responses.

import { element, fieldError, isSame, makeDoubt, makeHint, makeRanking } from "./common.js";
import {
  addBubble, beginTalk, fillTalk, nextTurn, readTalk, sayTurn, textOf,
} from "./conversation.js";
import { showMemories } from "./memories.js";
import { explain } from "./requests.js";

const SILENCE = "<SILENCE>"; // how the corpus writes that the user says nothing

export const dialog = {
  key: "history",
  asksAtOnce: true,
  begin(panel) {
    beginTalk(panel);
    panel.script = [];
    panel.find("[type=submit]").textContent = "Next";
    panel.find(".example span").textContent = "Dialog";
  },
  /** Begins the dialog of an example, or returns to the conversation of a link. */
  fill(panel, input) {
    panel.script = readScript(panel.example);
    const isExample = input === panel.example?.instance;
    fillTalk(panel, isExample ? { history: [], draft: "" } : input);
    proposeNext(panel, input.draft);
  },
  input: readTalk,
  openings: () => [],
  drawTurn,
  instance(panel, { place, text } = nextTurn(panel)) {
    return { history: [...panel.talk.slice(0, place), { speaker: "user", text }] };
  },
  check(panel, { text } = nextTurn(panel)) {
    const problem = "The dialog is over: choose another, or say something.";
    if (panel.isOver && !text) throw fieldError(problem, panel.fields.example);
  },
  submit: sayTurn,
  async reply(panel, { model, instance, bubble, signal }) {
    const answer = await explain(model, instance, signal);
    const { history } = instance;
    const own = { speaker: "bot", text: answer.response };
    const isScripted = isSame(history, panel.script.slice(0, history.length));
    const scripted = isScripted ? panel.script[history.length] : null;
    bubble.remove();
    addBubble(panel, "bot", [answer.response, ...compare(own, scripted)]);
    if (scripted) {
      panel.talk = [...history, scripted];
    } else {
      panel.talk = [...history, ...answer.said];
      drawFrom(panel, history.length + 1);
      panel.forgetExample();
    }
    proposeNext(panel);
    return answer;
  },
  showBest(answer) {
    const { best } = answer;
    if (!best.length) {
      const doubt = makeDoubt("The network has no response", answer);
      return [...doubt, makeHint("A rule of the program answered, not the network.")];
    }
    const rows = best.map(({ text, score }) => ({ text, fraction: score }));
    const note = best[0].score > 0.995 ? " The network has no doubt here." : "";
    return [makeRanking(rows), makeHint(`Probability among all responses it knows.${note}`)];
  },
  showAttention({ attention, best }) {
    if (!best.length) return [];
    return attention.length ? showMemories(attention[0]) : [makeHint("Nothing was said before.")];
  },
};

/** The turns of an example's dialog, its last response included. */
function readScript(example) {
  if (!example) return [];
  const responses = (example.expected || []).slice(0, 1);
  const last = responses.map((text) => ({ speaker: "bot", text }));
  return [...example.instance.history, ...last].map(({ speaker, text }) => {
    return { speaker, text: text === SILENCE ? "" : text };
  });
}

/** Moves over the facts that follow, and puts the dialog's next sentence into the field. */
function proposeNext(panel, draft = null) {
  const { script, talk } = panel;
  const isScripted = isSame(talk, script.slice(0, talk.length));
  let next = talk.length;
  while (isScripted && script[next]?.speaker === "fact") next += 1;
  if (next > talk.length) {
    const first = talk.length;
    panel.talk = script.slice(0, next);
    drawFrom(panel, first);
  }
  const sentence = isScripted ? textOf(script[next]) : "";
  panel.fields.text.value = draft ?? sentence;
  panel.isOver = isScripted && script.length > 0 && next >= script.length;
  panel.fields.text.placeholder = panel.isOver ? "The dialog is over." : "(silence)";
}

function drawFrom(panel, first) {
  for (let i = first; i < panel.talk.length; i += 1) drawTurn(panel, i);
}

/** What the dialog has in the place of a response. */
function compare(own, scripted) {
  if (!scripted) return [];
  const isEqual = isSame(own, scripted);
  const text = isEqual ? "✓ as in the dialog" : `The dialog has: ${scripted.text}`;
  return [element("span", { class: isEqual ? "verdict truth" : "verdict" }, text)];
}

// === Bubbles ===

function drawTurn(panel, i) {
  const { speaker, text } = panel.talk[i];
  if (speaker === "fact") drawFact(panel, text);
  else if (speaker === "bot") addBubble(panel, "bot", text);
  else addBubble(panel, "you", textOf(panel.talk[i]) || "(silence)", i);
}

/** Facts that follow each other fold behind their number; they are shown as the data have them. */
function drawFact(panel, text) {
  let place = panel.list.lastElementChild;
  if (place?.dataset.who !== "facts") {
    place = addBubble(panel, "facts", element("details", {}, element("summary")));
  }
  const details = place.querySelector("details");
  details.append(element("p", {}, text));
  const count = details.children.length - 1;
  const noun = count === 1 ? "fact" : "facts";
  place.querySelector("summary").textContent = `${count} ${noun} of the knowledge base`;
}
