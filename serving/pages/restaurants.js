// Restaurants as cards: name, rating as stars, price, address, phone.

import { element, formatCount, makeButton, makeHint } from "./common.js";

const MOST_CARDS = 2; // of a search, before "more"
const MOST_LISTED = 100; // of the knowledge base
const KINDS = { address: "address", phone: "phone number", post_code: "post code" };

/** The restaurants that the page knows, by name. */
export class Restaurants {
  constructor(rows = []) {
    this.byName = new Map();
    this.add(rows);
  }

  add(rows) {
    for (const row of rows) this.byName.set(row.name, row);
  }

  /** The best rated first. */
  named(names) {
    const rows = names.map((name) => this.byName.get(name)).filter(Boolean);
    return rows.sort((a, b) => (b.rating ?? 0) - (a.rating ?? 0));
  }

  /** Those that a sentence names, also by their address or phone number. */
  namedIn(text) {
    const names = text.split(/\s+/).map((word) => splitValue(word).name);
    return this.named([...new Set(names)]);
  }

  get mostStars() {
    const ratings = [...this.byName.values()].map(({ rating }) => rating ?? 0);
    return Math.max(0, ...ratings);
  }
}

// === Names ===

/** Splits `NAME_phone` into the name and the kind of value; of other words the kind is missing. */
function splitValue(word) {
  for (const kind of Object.keys(KINDS)) {
    const end = `_${kind}`;
    if (word.endsWith(end)) return { name: word.slice(0, -end.length), kind };
  }
  return { name: word, kind: null };
}

/** `resto_rome_6stars` as `Resto Rome 6 Stars`. */
function writeName(name) {
  const words = name.replace(/(\d)stars/g, "$1_stars").split("_");
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(" ");
}

export function nameValue(value) {
  return value.replaceAll("_", " ");
}

/** A sentence of the bot with the names of restaurants as people write them. */
export function nameRestaurant(text) {
  const words = text.split(" ").map((word) => {
    if (!word.includes("_") || word.startsWith("R_")) return word; // of a search: any value
    const { name, kind } = splitValue(word);
    if (kind) return `the ${KINDS[kind]} of ${writeName(name)}`;
    return word === "api_call" ? "search:" : writeName(word);
  });
  return words.filter((word) => !word.startsWith("R_")).join(" ");
}

/** `resto_rome_6stars R_price cheap` as `Resto Rome 6 Stars: price cheap`. */
export function nameFact(fact) {
  const [name, relation, value] = fact.split(" ");
  if (!value || !relation.startsWith("R_")) return nameRestaurant(fact);
  const { kind } = splitValue(value);
  const shown = kind && value.startsWith(name) ? "" : ` ${nameValue(value)}`;
  return `${writeName(name)}: ${nameValue(relation.slice(2))}${shown}`;
}

// === Cards ===

export function makeCards(restaurants, mostStars) {
  const cards = restaurants.map((restaurant, i) => {
    const card = makeCard(restaurant, mostStars);
    card.hidden = i >= MOST_CARDS;
    return card;
  });
  const rest = cards.slice(MOST_CARDS);
  if (!rest.length) return cards;
  const more = makeButton(`${rest.length} more`, () => {
    for (const card of rest) card.hidden = false;
    more.remove();
  }, { class: "quiet" });
  return [...cards, more];
}

function makeCard(restaurant, mostStars) {
  const { name, rating, price, cuisine, location } = restaurant;
  const facts = [cuisine, location, price].filter(Boolean).map(nameValue).join(" · ");
  const card = element("div", { class: "restaurant" });
  card.append(element("strong", {}, writeName(name)));
  if (rating != null) card.append(makeStars(rating, mostStars));
  card.append(element("span", { class: "facts" }, facts));
  for (const kind of Object.keys(KINDS)) {
    if (restaurant[kind]) card.append(makeLine(name, kind, restaurant[kind]));
  }
  return card;
}

function makeStars(rating, most) {
  const said = `${rating} of ${most} stars`;
  const stars = "★".repeat(rating) + "☆".repeat(Math.max(0, most - rating));
  return element("span", { class: "stars", role: "img", "aria-label": said, title: said }, stars);
}

/** The corpora have placeholders, `NAME_phone`, for what nobody should call or visit. */
function makeLine(name, kind, value) {
  const isPlaceholder = value === `${name}_${kind}`;
  const shown = isPlaceholder ? "not in the data" : nameValue(value);
  const label = element("span", { class: "hint" }, KINDS[kind]);
  const text = element("span", { class: isPlaceholder ? "hint" : null, title: value }, shown);
  return element("span", { class: "line" }, label, text);
}

// === The knowledge base ===

/** Lists the restaurants that have the words of the field `find`. */
export function browse(panel) {
  const wanted = panel.fields.find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...panel.restaurants.byName.values()];
  const found = rows.filter((row) => {
    const text = Object.values(row).join(" ").toLowerCase().replaceAll("_", " ");
    return wanted.every((word) => text.includes(word));
  });
  const shown = found.slice(0, MOST_LISTED);
  const list = shown.map((row) => makeRow(row));
  const count = found.length === 1 ? "1 restaurant" : `${formatCount(found.length)} restaurants`;
  const note = found.length > shown.length ? `${count}, the first ${MOST_LISTED}` : count;
  panel.find(".facts-found").replaceChildren(makeHint(`${note}.`), element("ul", {}, ...list));
}

function makeRow({ name, cuisine, location, price, rating }) {
  const stars = rating == null ? null : `${rating} stars`;
  const facts = [cuisine, location, price, stars].filter(Boolean).map(nameValue).join(" · ");
  return element("li", {}, element("strong", {}, writeName(name)), element("span", {}, facts));
}
