// JSON with its lines and colours, from its text: numbers stay as they were written, however long.

import { h } from "./dom.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity|[{}[\],:]|\s+|./gs;
const MOST_TOKENS = 20000;

export function pretty(text) {
  const parts = [];
  let depth = 0, held = "", count = 0;
  const flush = () => { if (held) { parts.push(held); held = ""; } };
  const line = () => { held += `\n${"  ".repeat(depth)}`; };
  const tokens = (text.match(TOKEN) || []).filter((each) => each.trim());
  tokens.slice(0, MOST_TOKENS).forEach((each, at) => {
    count += 1;
    const next = tokens[at + 1];
    if (each === "{" || each === "[") {
      held += each;
      depth += 1;
      if (next !== "}" && next !== "]") line();
    } else if (each === "}" || each === "]") {
      depth = Math.max(0, depth - 1);
      if (tokens[at - 1] !== "{" && tokens[at - 1] !== "[") line();
      held += each;
    } else if (each === ",") { held += each; line(); } else if (each === ":") held += ": ";
    else {
      flush();
      const kind = each[0] === '"' ? (next === ":" ? "k" : "s") : /^[-\d]/.test(each) ? "n" : "w";
      parts.push(h("span", { class: kind }, each));
    }
  });
  flush();
  if (count < tokens.length) parts.push("\n…");
  return parts;
}
