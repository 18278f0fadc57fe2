// Names of controls, one heading, ids, language, and 4.5 to 1 between text and what is behind it.
const found = [], seen = (each) => each.checkVisibility?.() ?? true;
const named = (each) => each.getAttribute("aria-label") || each.innerText?.trim() ||
  (each.getAttribute("aria-labelledby") && document.getElementById(each.getAttribute("aria-labelledby"))?.innerText) ||
  (each.id && document.querySelector(`label[for="${each.id}"]`)?.innerText) || each.closest("label")?.innerText.trim();
if (!document.documentElement.lang) found.push("no language");
if (!document.title) found.push("no title");
const inMain = document.querySelectorAll("main h1").length;
if (inMain !== 1) found.push(`${inMain} headings of the first level`);
for (const each of document.querySelectorAll("button, a, input, select, textarea, dialog, table, nav, aside"))
  if (seen(each) && !named(each) && !(each.tagName === "INPUT" && each.type === "hidden"))
    found.push(`no name: ${each.outerHTML.slice(0, 120)}`);
const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
for (const each of new Set(ids)) if (ids.filter((other) => other === each).length > 1) found.push(`twice: #${each}`);
for (const each of document.querySelectorAll("[tabindex]"))
  if (Number(each.getAttribute("tabindex")) > 0) found.push("an order of its own");
for (const each of document.querySelectorAll("img:not([alt])")) found.push("an image without words");
const rgb = (text) => { const n = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0]; return n.length < 4 ? [...n, 1] : n; };
const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
const behind = (each) => {
  for (let at = each; at; at = at.parentElement) { const color = rgb(getComputedStyle(at).backgroundColor); if (color[3] === 1) return color; }
  return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
};
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const told = new Set();
while (walk.nextNode()) {
  const each = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !seen(each) || each.closest("script, noscript, :disabled, .skip")) continue;
  const [one, other] = [light(rgb(getComputedStyle(each).color)), light(behind(each))].sort((a, b) => b - a);
  const ratio = (one + .05) / (other + .05);
  if (ratio < 4.5) told.add(`contrast ${ratio.toFixed(2)} of ${each.tagName}.${each.className}: ${walk.currentNode.data.trim().slice(0, 40)}`);
}
return [...found, ...told];
