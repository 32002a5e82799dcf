// Talk: a model writes replies.

import { fieldError, makeDoubt, makeHint, makeRanking, softmax } from "./common.js";
import { END, shadeTurns, WEIGHTS } from "./attention.js";
import { addBubble, beginTalk, fillTalk, nextTurn, readTalk, sayTurn } from "./conversation.js";
import { explain } from "./requests.js";

const SHOWN = 5; // replies that the search found

export const talk = {
  key: "turns",
  opensEmpty: true,
  begin(panel) {
    beginTalk(panel);
    panel.find(".example").hidden = true; // its examples are openings
    const { search, temperature } = panel.fields;
    const adapt = () => {
      temperature.disabled = search.value !== "sample";
    };
    search.addEventListener("change", adapt);
    adapt();
  },
  fill: fillTalk,
  input: readTalk,
  openings(panel) {
    return panel.card.examples.slice(0, 4).map(({ instance }) => {
      const [text] = instance.turns;
      return { text, say: () => panel.submit({ place: 0, text }) };
    });
  },
  drawTurn(panel, i) {
    const isOwn = (panel.talk.length - i) % 2 === 0; // the last turn is the bot's
    addBubble(panel, isOwn ? "you" : "bot", panel.talk[i] || "(silence)", isOwn ? i : null);
  },
  instance(panel, { place, text } = nextTurn(panel)) {
    return { turns: [...panel.talk.slice(0, place), text], decode: readDecode(panel) };
  },
  check(panel, { text } = nextTurn(panel)) {
    if (!text) throw fieldError("Say something first.", panel.fields.text);
  },
  submit: sayTurn,
  async reply(panel, { model, instance, bubble, signal }) {
    const answer = await explain(model, instance, signal);
    bubble.replaceChildren(answer.response || "(silence)");
    panel.talk = [...instance.turns, answer.response];
    return answer;
  },
  showBest(answer) {
    const doubt = makeDoubt("This reply may make no sense", answer);
    const replies = answer.best.slice(0, SHOWN);
    if (replies.length < 2) return [...doubt, makeHint("It considered one reply only.")];
    const fractions = softmax(replies.map(({ score }) => score));
    const rows = replies.map(({ text, score }, i) => {
      const title = `Score: ${score.toFixed(2)}, a log probability`;
      return { text, fraction: fractions[i], title };
    });
    const hint = makeHint("Per cent: of the replies shown, which add up to 100.");
    return [...doubt, makeRanking(rows), hint];
  },
  showAttention({ attention }) {
    if (!attention.length) return [makeHint("The program answered here, not the network.")];
    return shadeSources(attention[0]);
  },
};

function readDecode(panel) {
  const { search, temperature } = panel.fields;
  if (search.value !== "sample") return search.value;
  const degrees = Number(temperature.value);
  if (!(degrees >= 0.1 && degrees <= 2)) {
    throw fieldError("Temperature is a number from 0.1 to 2.", temperature);
  }
  return `sample=true,temperature=${degrees},top_p=0.9`;
}

/** A reply's attention to the turns: while one word was written, or the mean of all. */
function shadeSources({ title, rows, columns, weights }) {
  const turns = splitTurns(columns);
  const mean = columns.map((_, j) => {
    return weights.reduce((sum, row) => sum + row[j], 0) / weights.length;
  });
  const written = rows.map(nameEnd);
  const choices = [{ text: "mean" }];
  for (const text of written) {
    choices.push({ text, weight: 0, say: `attention while writing ${text}` });
  }
  const read = columns.map(nameEnd);
  return shadeTurns({
    label: "While it wrote:",
    choices,
    turns: turns.map((places) => places.map((j) => read[j])),
    lastIs: "you",
    weightOf: (choice, t, k) => (choice ? weights[choice - 1] : mean)[turns[t][k]],
    scale: WEIGHTS,
    maps: [{ title, rows: written, columns: read, weights }],
  });
}

function nameEnd(word) {
  return word === END ? "(end)" : word;
}

/** The places of the words of each turn; `_EOS_` ends one. */
function splitTurns(words) {
  const turns = [[]];
  words.forEach((word, j) => {
    turns.at(-1).push(j);
    if (word === END && j < words.length - 1) turns.push([]);
  });
  return turns;
}
