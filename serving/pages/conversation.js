// A conversation that the page keeps, so that any replica can answer the next turn.
//
// A task that talks has, beside what panel.js asks of it,
//   key                    the name of its turns in an instance: turns or history
//   drawTurn(panel, i)     shows a turn of `panel.talk`
//   openings(panel)        `{text, say}`: buttons that begin a conversation
//   reply(panel, ...)      asks for the reply, writes it into its bubble
//   showBest(answer)       shows what else was considered, as nodes
//   showAttention(answer)  shows the attention, as nodes

import { element, isComposing, makeButton } from "./common.js";

export function beginTalk(panel) {
  panel.list = panel.find(".talk");
  panel.talk = [];
  panel.find("[data-reset]").addEventListener("click", () => {
    panel.task.fill(panel, {});
    panel.clear();
    panel.changed();
    panel.fields.text.focus();
  });
}

/**
 * Shows the conversation of an input, and puts its draft into the field: of an instance its last
 * turn, ready to be said.
 */
export function fillTalk(panel, input) {
  const turns = [...(input[panel.task.key] || [])];
  const draft = input.draft ?? textOf(turns.pop());
  panel.stop();
  panel.talk = turns;
  panel.fields.text.value = draft;
  drawTalk(panel);
}

function drawTalk(panel) {
  panel.list.replaceChildren();
  panel.talk.forEach((_, i) => panel.task.drawTurn(panel, i));
  showOpenings(panel);
}

export function readTalk(panel) {
  return { [panel.task.key]: panel.talk, draft: panel.fields.text.value };
}

function showOpenings(panel) {
  const place = panel.find(".openings");
  const openings = panel.task.openings(panel);
  place.hidden = panel.list.children.length > 0 || !openings.length;
  const buttons = openings.map(({ text, say }) => makeButton(text, say, { class: "opening" }));
  place.querySelector("div").replaceChildren(...buttons);
}

// === Bubbles ===

/** Adds a bubble; `place` is that of the user's own turn in the talk, which can be edited. */
export function addBubble(panel, who, content, place = null) {
  const bubble = element("li", { "data-who": who, dir: "auto" });
  const nodes = Array.isArray(content) ? content : [content];
  bubble.append(...nodes);
  if (place !== null) bubble.append(makeEdit(panel, bubble, place));
  panel.list.append(bubble);
  panel.list.scrollTop = panel.list.scrollHeight;
  panel.find(".openings").hidden = true;
  return bubble;
}

function makeEdit(panel, bubble, place) {
  const text = textOf(panel.talk[place]);
  return makeButton("", () => editBubble(panel, bubble, text, place), {
    class: "edit",
    "aria-label": `Edit “${text.slice(0, 40)}”`,
    title: "Edit, and continue from here",
  });
}

/** The text of a turn, which is a string or has a speaker; of silence nothing. */
export function textOf(turn) {
  return typeof turn === "string" ? turn : turn?.text ?? "";
}

/** A field in the place of a bubble; the talk ends before it and continues with its text. */
function editBubble(panel, bubble, text, place) {
  const nodes = [...bubble.childNodes];
  const field = element("textarea", { rows: 1, dir: "auto", enterkeyhint: "send" });
  field.setAttribute("aria-label", "What you said");
  field.value = text;
  const cancel = () => {
    bubble.replaceChildren(...nodes);
    bubble.querySelector("button").focus();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !isComposing(event)) cancel();
  });
  const send = () => panel.submit({ bubble, place, text: field.value.trim() });
  const quiet = { class: "quiet" };
  bubble.replaceChildren(
    field,
    makeButton("Say this instead", send, { ...quiet, "data-send": true }),
    makeButton("Cancel", cancel, quiet),
  );
  field.focus();
}

// === A turn ===

/** What is said next: the text of the field, at the end of the talk. */
export function nextTurn(panel) {
  return { place: panel.talk.length, text: panel.fields.text.value.trim() };
}

/**
 * Shows what the user says and a bubble that waits, which `answer(bubble)` fills. If it fails, all
 * is as before.
 */
async function exchange(panel, next, answer) {
  const { talk, list } = panel;
  const field = panel.fields.text;
  const bubbles = [...list.children];
  const cut = next.bubble ? bubbles.slice(bubbles.indexOf(next.bubble)) : [];
  for (const bubble of cut) bubble.remove();
  const own = addBubble(panel, "you", next.text || "(silence)");
  const bubble = addBubble(panel, "bot", "…");
  bubble.setAttribute("aria-busy", true);
  if (next.bubble) field.focus();
  else field.value = "";
  try {
    await answer(bubble);
    own.append(makeEdit(panel, own, next.place));
  } catch (failure) {
    if (panel.talk === talk) { // neither answered nor started again
      own.remove();
      bubble.remove();
      list.append(...cut);
      if (!next.bubble && !field.value) field.value = next.text;
      showOpenings(panel);
    }
    throw failure;
  } finally {
    bubble.removeAttribute("aria-busy");
  }
}

/** Says the next turn, and shows the reply. */
export async function sayTurn(panel, signal, next = nextTurn(panel)) {
  const instance = panel.task.instance(panel, next);
  const { model } = panel;
  await exchange(panel, next, async (bubble) => {
    const answer = await panel.task.reply(panel, { model, instance, bubble, signal });
    panel.list.scrollTop = panel.list.scrollHeight;
    panel.result.replaceChildren(...panel.task.showBest(answer));
    panel.explanation.replaceChildren(...panel.task.showAttention(answer));
    panel.answered(instance);
  });
}
