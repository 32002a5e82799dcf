// The address bar: #task?model=NAME&example=NUMBER, or &input=JSON of what was typed and said.

const LONGEST = 4000; // characters of the input; only the browser's history keeps a longer one

export function isLong(input) {
  return JSON.stringify(input).length > LONGEST;
}

/** Reads the address: its task, model, example and input, `null` where missing. */
export function readLink() {
  const [task, query] = location.hash.slice(1).split("?");
  const values = new URLSearchParams(query);
  return {
    task,
    model: values.get("model"),
    example: values.get("example"),
    input: history.state?.input ?? readInput(values.get("input")),
    entry: history.state?.entry,
  };
}

function readInput(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a link that was cut
  }
}

/** Writes a panel's input into the address, as a new entry of the history or over the last one. */
export function writeLink(panel, isNew) {
  const { example } = panel.fields;
  const input = panel.task.input(panel);
  const values = new URLSearchParams({ model: panel.model });
  if (example.value) values.set("example", example.value);
  if (!isLong(input)) values.set("input", JSON.stringify(input));
  panel.entry = Math.random(); // tells the panel's newest entry from older ones
  const address = `#${panel.name}?${values}`;
  const state = { input, entry: panel.entry };
  if (isNew) history.pushState(state, "", address);
  else history.replaceState(state, "", address);
}
