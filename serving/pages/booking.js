// Book a table: what the bot understood, its conversation, restaurants and memory.

import { element, makeButton, makeHint, makeRanking } from "./common.js";
import {
  addBubble, beginTalk, drawTalk, fillTalk, nextTurn, readTalk, sayTurn, SILENCE, textOf,
} from "./conversation.js";
import { showMemories } from "./memories.js";
import { ask, explain, pathOf } from "./requests.js";
import { browse, makeCards, nameRestaurant, nameValue, Restaurants } from "./restaurants.js";

const CALL = "api_call ";
const SHOWN = 5; // responses
const SLOT_NAMES = { location: "place", number: "people" };

export const booking = {
  key: "history",
  opensEmpty: true,
  begin(panel) {
    beginTalk(panel);
    panel.wishes = [];
    panel.slots = [];
    panel.restaurants = new Restaurants();
    const { find } = panel.fields;
    find.addEventListener("input", () => browse(panel));
    find.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // nothing is said
      event.stopPropagation();
    });
  },
  introduce(panel) {
    panel.restaurants = new Restaurants();
    browse(panel);
  },
  async loaded(panel) {
    const { slots, restaurants } = await ask(pathOf(panel.model, "/knowledge"));
    panel.slots = slots;
    panel.restaurants = new Restaurants(restaurants);
    browse(panel);
    drawTalk(panel); // with their names
    showWishes(panel);
  },
  fill(panel, input) {
    panel.wishes = input.wishes || [];
    fillTalk(panel, input);
    showWishes(panel);
  },
  input(panel) {
    return { ...readTalk(panel), wishes: panel.wishes };
  },
  openings(panel) {
    return panel.card.examples.slice(0, 4).map(({ title, instance }) => {
      const history = instance.history.map((turn) => ({ ...turn, text: textOf(turn) }));
      const { text } = history.pop();
      const say = () => {
        this.fill(panel, { history, draft: "" });
        panel.submit({ place: history.length, text });
      };
      return { text: title, say };
    });
  },
  drawTurn,
  instance(panel, { place, text } = nextTurn(panel)) {
    const own = { speaker: "user", text: text || SILENCE };
    return { history: [...panel.talk.slice(0, place), own] };
  },
  async submit(panel, signal, next = nextTurn(panel)) {
    await sayTurn(panel, signal, next);
  },
  async reply(panel, { model, instance, bubble, own, signal }) {
    const answer = await explain(model, instance, signal);
    const { history } = instance;
    panel.talk = [...history, ...answer.said];
    panel.wishes = answer.wishes;
    panel.restaurants.add(answer.restaurants);
    markUnknown(own, answer.unknown);
    bubble.remove();
    for (let i = history.length; i < panel.talk.length; i += 1) drawTurn(panel, i);
    showWishes(panel);
    return answer;
  },
  spokenText({ said }) {
    const spoken = said.filter(({ speaker }) => speaker === "bot");
    return spoken.map(({ text }) => nameRestaurant(text)).join(" · ");
  },
  showBest({ best }) {
    if (best.length < 2) return [];
    const rows = best.slice(0, SHOWN).map(({ text, score }) => {
      return { text: nameRestaurant(text), fraction: score };
    });
    return [makeRanking(rows), makeHint("Probability among all responses that the model knows.")];
  },
  showAttention({ attention }) {
    return attention.length ? showMemories(attention[0]) : [];
  },
};

// === Bubbles ===

function drawTurn(panel, i) {
  const { speaker, text } = panel.talk[i];
  const previous = panel.talk[i - 1];
  const isAfterFacts = previous?.speaker === "fact";
  if (speaker === "fact") return;
  if (speaker === "user") {
    const isContinuing = text === "" || (isAfterFacts && text === SILENCE);
    if (!isContinuing) addBubble(panel, "you", textOf(panel.talk[i]) || "(silence)", i);
    return;
  }
  addBubble(panel, "bot", text.startsWith(CALL) ? showCall(panel, i) : showSentence(panel, text));
}

/** A search: what for, what was found, and its raw line. */
function showCall(panel, i) {
  const { text } = panel.talk[i];
  const wanted = text.split(" ").slice(1).filter((word) => !word.startsWith("R_"));
  const facts = [];
  let next = i + 1;
  while (panel.talk[next]?.speaker === "fact") {
    facts.push(textOf(panel.talk[next]));
    next += 1;
  }
  const names = new Set(facts.map((fact) => fact.split(" ")[0]));
  const found = panel.restaurants.named([...names]);
  const count = found.length === 1 ? "1 restaurant" : `${found.length || "no"} restaurants`;
  const values = wanted.map(nameValue).join(", ") || "any restaurant";
  return [
    `I looked for ${values}: ${count}.`,
    ...makeCards(found, panel.restaurants.mostStars),
    makeRaw(text),
  ];
}

function makeRaw(text) {
  const raw = element("code", {}, text);
  return element("details", { class: "raw" }, element("summary", {}, "details"), raw);
}

/** A sentence of the bot, with the restaurant that it names as a card. */
function showSentence(panel, text) {
  const words = nameRestaurant(text);
  const named = panel.restaurants.namedIn(text);
  if (!named.length) return [words];
  return [words, ...makeCards(named, panel.restaurants.mostStars), makeRaw(text)];
}

/** Underlines the words of the user's own bubble that the model does not know. */
function markUnknown(bubble, unknown) {
  if (!unknown.length) return;
  const words = new Set(unknown.map((word) => word.toLowerCase()));
  const title = "The model does not know this word.";
  for (const text of [...bubble.childNodes]) {
    if (text.nodeType !== Node.TEXT_NODE) continue;
    const pieces = text.data.split(/([\p{L}\p{N}'_-]+)/u);
    const nodes = pieces.map((piece) => {
      const isUnknown = words.has(piece.toLowerCase());
      return isUnknown ? element("u", { class: "unknown", title }, piece) : piece;
    });
    text.replaceWith(...nodes);
  }
}

// === Wishes ===

function nameSlot(slot) {
  return SLOT_NAMES[slot] || slot;
}

/** A chip for each slot, empty until the bot has understood a value. */
function showWishes(panel) {
  const wishes = new Map(panel.wishes.map((wish) => [wish.slot, wish]));
  const slots = panel.slots.length ? panel.slots : [...wishes.keys()];
  const chips = slots.map((slot) => makeWish(panel, slot, wishes.get(slot)));
  panel.find(".wishes").replaceChildren(...chips);
}

function makeWish(panel, slot, wish) {
  const name = nameSlot(slot);
  const label = element("span", { class: "hint" }, name);
  if (!wish) return element("li", { class: "wish empty" }, label, "any");
  const value = nameValue(wish.value);
  const title = `Take back ${name}: ${value}`;
  const remove = makeButton("×", () => takeBack(panel, wish), { "aria-label": title, title });
  return element("li", { class: "wish" }, label, value, remove);
}

/**
 * Takes a wish back: the talk returns to before it was said, and the other wishes since then are
 * said again. Of a sentence with several wishes the others stay.
 */
async function takeBack(panel, wish) {
  if (panel.working) return;
  const places = wish.mentions.map(({ sentence }) => sentence);
  const first = Math.min(...places);
  const others = panel.wishes.filter((other) => other !== wish);
  const sentences = new Map(); // place: what is said again
  for (const { mentions } of others) {
    for (const { sentence } of mentions) {
      if (sentence >= first) sentences.set(sentence, { text: textOf(panel.talk[sentence]) });
    }
  }
  for (const { sentence, without } of wish.mentions) {
    if (!sentences.has(sentence)) continue;
    const shown = strike(textOf(panel.talk[sentence]), wish.value);
    sentences.set(sentence, { text: without, shown });
  }
  const again = [...sentences].sort(([a], [b]) => a - b).map(([, said]) => said);
  const draft = panel.fields.text.value;
  panel.clear();
  const wishes = panel.wishes.filter(({ mentions }) => {
    return mentions.every(({ sentence }) => sentence < first);
  });
  booking.fill(panel, { history: panel.talk.slice(0, first), draft, wishes });
  for (const said of again) {
    const isAnswered = await panel.submit({ place: panel.talk.length, ...said });
    if (!isAnswered) break;
  }
  panel.fields.text.value = draft;
  panel.remember(false);
}

/** A sentence as nodes, with a value struck out; nothing if it was said in other words. */
function strike(text, value) {
  const start = text.toLowerCase().indexOf(nameValue(value));
  if (start < 0) return null;
  const end = start + value.length;
  const struck = element("s", { title: "You took this back." }, text.slice(start, end));
  return [text.slice(0, start), struck, text.slice(end)];
}
