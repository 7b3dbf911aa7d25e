// Cuts labels to fit their frames, by the measured width of each letter in the current font.
// SPDX-License-Identifier: MIT

const letterWidths = new Map();

// Measures all characters at once, because the first query of a length makes the browser lay out the page.
function measure(characters) {
  const probe = svgElement('text');
  probe.style.visibility = 'hidden';
  for (const character of characters) {
    const part = svgElement('tspan');
    part.textContent = character === ' ' ? '\u00a0' : character;
    probe.append(part);
  }
  layer.append(probe);
  characters.forEach((character, i) =>
    letterWidths.set(character, probe.childNodes[i].getComputedTextLength()));
  probe.remove();
}

function widthOf(character) {
  if (!letterWidths.has(character))
    measure([character]);
  return letterWidths.get(character);
}

function textWidth(text) {
  let width = 0;
  for (const character of text)
    width += widthOf(character);
  return width;
}

// Returns `name`, or as much of it as fits into `room` pixels together with "..", or an empty string.
function fitted(name, room) {
  const dots = 2 * widthOf('.');
  if (room < dots + widthOf('m'))
    return '';
  let used = 0;
  let kept = 0;
  let at = 0;
  for (const character of name) {
    used += widthOf(character);
    if (used > room)
      return name.slice(0, kept) + '..';
    at += character.length;
    if (used + dots <= room)
      kept = at;
  }
  return name;
}
