// Making elements. Text only ever becomes text: nothing here, and nothing else in the page, parses markup.

/** Make an element. `props` are attributes, but `on*` functions listen and `class` is the class. */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  append(made, children);
  return made;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put children in the place of those that an element has. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/** Find an element of the page by its id. */
export const by = (id) => document.getElementById(id);

/** Say how many bytes, for people. */
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB"];
  let size = count / 1000;
  while (size >= 1000 && units.length > 1) {
    size /= 1000;
    units.shift();
  }
  return `${size.toFixed(size < 10 ? 1 : 0)} ${units[0]}`;
}

/** Let the arrow keys, Home and End move among the options of a list; one of them is in the tab order. */
export function roving(list, selector, keys, choose) {
  list.addEventListener("keydown", (event) => {
    const items = [...list.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    const to = { [keys[0]]: at - 1, [keys[1]]: at + 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const next = items[Math.max(0, Math.min(items.length - 1, to))];
    next.focus();
    choose?.(next);
  });
}
