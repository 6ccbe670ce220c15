// What the other scripts share: numbers in words, elements, colours of the style sheet.
"use strict";

const encore = {
  // A number with four digits or so, thousands apart: 12 345, 0.0123.
  number(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e9 || size < 1e-3) return value.toExponential(2);
    const text = size >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(4)));
    const [whole, fraction] = text.split(".");
    const apart = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    return fraction ? `${apart}.${fraction}` : apart;
  },

  // A text with narrow spaces in its numbers, as numbers.rs writes them.
  apart(text) {
    const grouped = text.replace(/(?<![\w.])\d{1,3}(?:,\d{3})+(?!\d)/g, number => number.replaceAll(",", "\u202f"));
    return grouped.replace(/(?<![\w.=-])(\d[\d.\u202f]*)(ns|us|ms|s)(?!\w)/g, (_, number, unit) => `${number}\u202f${unit.replace("us", "µs")}`);
  },

  // The unit at the end of the label of an axis, in parentheses, or the whole label.
  unit(label) {
    const found = /\(([^)]*)\)$/.exec(label);
    return found ? found[1] : label;
  },

  withUnit(value, label) {
    const unit = encore.unit(label);
    return `${encore.number(value)}${unit ? `\u202f${unit}` : ""}`;
  },

  // An element with attributes and children. Texts become text, never HTML.
  element(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  },

  // A colour of the style sheet, as it is now.
  token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  },

  // Black lines are ink, so that they are seen on dark paper too.
  colour(hex) {
    return hex === "#000000" ? encore.token("--ink") : hex;
  },
};
