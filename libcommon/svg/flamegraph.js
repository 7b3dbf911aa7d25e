// What a flame graph page does when it is clicked, typed at or linked to.
//
// Frames are in the document depth first, so a subtree is a range of indices
// and nothing is searched by position.  Text goes in as textContent only, and
// handlers are added here: a policy that allows just this script is enough.
// SPDX-License-Identifier: MIT
(function () {
  'use strict';

  const SVG = 'http://www.w3.org/2000/svg';
  const XHTML = 'http://www.w3.org/1999/xhtml';
  const page = document.currentScript.closest('svg');
  const byId = (id) => page.querySelector('#' + id);
  const layer = byId('frames');
  const details = byId('details');
  const matched = byId('matched');
  const unzoomButton = byId('unzoom');
  const searchButton = byId('search');
  const hint = details.textContent;
  const margin = Number(layer.dataset.margin);
  const usable = Number(layer.dataset.width);
  const inset = Number(layer.dataset.inset);
  const fontSize = parseFloat(getComputedStyle(layer).fontSize);

  // "name (1,234 samples, 12.34%)" -> "name"; the name of the count may hold " (", too.
  function nameOf(title) {
    let end = title.length;
    for (let i = layer.dataset.countname.split(' (').length; i > 0; --i)
      end = title.lastIndexOf(' (', end - 1);
    return title.slice(0, end);
  }

  function readFrame(group, index) {
    const [start, count, depth] = group.dataset.at.split(' ').map(Number);
    const rect = group.querySelector('rect');
    const title = group.querySelector('title').textContent;
    return {
      group, index, start, count, depth, rect, title, name: nameOf(title),
      label: group.querySelector('text'), parent: null, end: index + 1,
      x: Number(rect.getAttribute('x')), y: Number(rect.getAttribute('y')),
    };
  }

  const frames = Array.from(layer.querySelectorAll('g'), readFrame);
  const root = frames[0];
  const frameOf = new Map(frames.map((frame) => [frame.group, frame]));
  const open = [];  // the frame at hand and those above it
  for (const frame of frames) {
    open.length = frame.depth;
    frame.parent = open[frame.depth - 1] || null;
    open.push(frame);
  }
  for (const frame of frames.slice().reverse())
    if (frame.parent)
      frame.parent.end = Math.max(frame.parent.end, frame.end);

  // Labels, cut by what the letters really measure in the font at hand.

  const widths = new Map();

  // All at once: the first length asked for makes the browser lay out the page.
  function measure(characters) {
    const probe = document.createElementNS(SVG, 'text');
    probe.style.visibility = 'hidden';
    for (const character of characters) {
      const part = document.createElementNS(SVG, 'tspan');
      part.textContent = character === ' ' ? '\u00a0' : character;
      probe.append(part);
    }
    page.append(probe);
    characters.forEach((character, i) =>
      widths.set(character, probe.childNodes[i].getComputedTextLength()));
    probe.remove();
  }

  function widthOf(character) {
    if (!widths.has(character))
      measure([character]);
    return widths.get(character);
  }

  function fitted(name, room) {
    const dots = 2 * widthOf('.');
    if (room < dots + widthOf('m'))
      return '';
    let used = 0;
    let kept = '';  // as much as fits together with the dots
    let all = '';
    for (const character of name) {
      used += widthOf(character);
      if (used > room)
        return kept + '..';
      all += character;
      if (used + dots <= room)
        kept = all;
    }
    return name;
  }

  function setLabel(frame, left, width) {
    const text = fitted(frame.name, width - 2 * inset);
    if (!frame.label) {
      if (text === '')
        return;
      const height = Number(frame.rect.getAttribute('height'));
      frame.label = document.createElementNS(SVG, 'text');
      frame.label.setAttribute('y', frame.y + height / 2 + fontSize * 0.36);
      frame.group.append(frame.label);
    }
    frame.label.setAttribute('x', left + inset);
    frame.label.textContent = text;
  }

  // The bar stays in view, however high the picture is.

  const bar = byId('bar');

  function followView() {
    const shown = page.getBoundingClientRect();
    const bottom = (window.visualViewport || { height: window.innerHeight }).height;
    const up = Math.min(Math.max(0, shown.bottom - bottom), shown.height - 4 * fontSize);
    bar.setAttribute('transform', 'translate(0 ' + -up + ')');
  }

  // Zoom

  let zoomed = root;

  function place(frame, left, right) {
    const x = Math.round(left * 10) / 10;
    const width = Math.max(0, Math.round(right * 10) / 10 - x);
    frame.rect.setAttribute('x', x);
    frame.rect.setAttribute('width', width.toFixed(1));
    setLabel(frame, x, width);
  }

  function zoom(to) {
    zoomed = to;
    const above = new Set();
    for (let frame = to.parent; frame; frame = frame.parent)
      above.add(frame);
    const scale = to.count > 0 ? usable / to.count : 0;
    for (const frame of frames) {
      const inside = frame.index >= to.index && frame.index < to.end;
      frame.group.classList.toggle('above', above.has(frame));
      frame.group.classList.toggle('hidden', !inside && !above.has(frame));
      if (above.has(frame)) {
        place(frame, margin, margin + usable);
      } else if (inside) {
        const left = margin + (frame.start - to.start) * scale;
        place(frame, left, left + frame.count * scale);
      }
    }
    unzoomButton.classList.toggle('hidden', to === root);
    showMatched();
  }

  // Search

  let pattern = '';
  let ignoreCase = false;
  let badPattern = '';

  function isMatch(frame) {
    return frame.group.classList.contains('match');
  }

  // The counts under `top` that have a match on their stack, each once.
  function matchedCount(top) {
    for (let frame = top; frame; frame = frame.parent)
      if (isMatch(frame))
        return top.count;
    let sum = 0;
    for (let i = top.index; i < top.end;) {
      const hit = isMatch(frames[i]);
      sum += hit ? frames[i].count : 0;
      i = hit ? frames[i].end : i + 1;
    }
    return sum;
  }

  function percent(part, whole) {
    return (whole > 0 ? 100 * part / whole : 0).toFixed(2) + '%';
  }

  function showMatched() {
    let text = badPattern;
    if (pattern !== '' && badPattern === '') {
      text = 'Matched: ' + percent(matchedCount(root), root.count);
      if (zoomed !== root)
        text += ' (of this view: ' + percent(matchedCount(zoomed), zoomed.count) + ')';
      if (ignoreCase)
        text += ', ignoring case';
    }
    matched.textContent = text;
    matched.classList.toggle('bad', badPattern !== '');
  }

  function search(text) {
    pattern = text;
    badPattern = '';
    let expression = null;
    try {
      expression = text === '' ? null : new RegExp(text, ignoreCase ? 'i' : '');
    } catch (error) {
      badPattern = 'Bad regular expression: ' + text;
    }
    for (const frame of frames)  // the root is not a function
      frame.group.classList.toggle('match',
        expression !== null && frame !== root && expression.test(frame.name));
    searchButton.textContent = text === '' ? 'Search' : 'Reset Search';
    showMatched();
  }

  let box = null;  // the element around the input field, while it is open

  function closeBox() {
    if (box) {
      box.remove();
      box = null;
      searchButton.classList.remove('hidden');
    }
  }

  function openBox() {
    if (!box) {
      const width = Math.min(280, usable / 2);
      box = document.createElementNS(SVG, 'foreignObject');
      box.setAttribute('x', margin + usable - width);
      box.setAttribute('y', fontSize * 0.5 + Math.max(0, -page.getBoundingClientRect().top));
      box.setAttribute('width', width);
      box.setAttribute('height', fontSize * 2.2);
      const field = document.createElementNS(XHTML, 'input');
      field.setAttribute('type', 'text');
      field.setAttribute('aria-label', 'Search: regular expression');
      field.setAttribute('placeholder', 'regular expression');
      field.setAttribute('spellcheck', 'false');
      field.value = pattern;
      field.addEventListener('input', () => { search(field.value); saveAddress(); });
      box.append(field);
      page.append(box);
      searchButton.classList.add('hidden');
    }
    box.firstChild.focus();
    box.firstChild.select();
  }

  // The address: #x=..&y=.. is the zoomed frame's corner, s= the search.  The same
  // after "?" is read, too.  What does not fit this page is ignored.

  function saveAddress() {
    const state = new URLSearchParams();
    if (zoomed !== root) {
      state.set('x', zoomed.x);
      state.set('y', zoomed.y);
    }
    if (pattern !== '')
      state.set('s', pattern);
    try {
      history.replaceState(null, '', '#' + state);
    } catch (error) {
      // A page inside another may have no address of its own.
    }
  }

  function loadAddress() {
    const hash = location.hash.slice(1);
    const state = new URLSearchParams(hash !== '' ? hash : location.search);
    const isAt = (name, value) => state.has(name) && Math.abs(Number(state.get(name)) - value) < 0.06;
    zoom(frames.find((frame) => isAt('x', frame.x) && isAt('y', frame.y)) || root);
    search(state.get('s') || '');
  }

  // Events

  function targetFrame(event) {
    const group = event.target.closest('g');
    return group ? frameOf.get(group) : undefined;
  }

  function showDetails(frame) {
    details.textContent = frame ? (layer.dataset.nametype + ' ' + frame.title).trim() : hint;
    details.classList.toggle('hint', !frame);
  }

  function zoomAndSave(frame) {
    zoom(frame);
    saveAddress();
  }

  function searchAndSave(text) {
    search(text);
    saveAddress();
  }

  function onButton(button, action) {
    button.classList.remove('hidden');
    button.addEventListener('click', action);
    button.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        action();
      }
    });
  }

  layer.addEventListener('click', (event) => {
    const frame = targetFrame(event);
    if (frame && !event.defaultPrevented)
      zoomAndSave(frame);
  });
  layer.addEventListener('mouseover', (event) => showDetails(targetFrame(event)));
  layer.addEventListener('mouseleave', () => showDetails(null));
  onButton(unzoomButton, () => zoomAndSave(root));
  onButton(searchButton, () => {
    if (pattern === '')
      openBox();
    else
      searchAndSave('');
  });

  window.addEventListener('keydown', (event) => {
    const typing = box !== null && event.target === box.firstChild;
    const control = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (event.key === 'F3' || (control && key === 'f') || (key === '/' && !typing && !control)) {
      event.preventDefault();
      openBox();
    } else if (control && key === 'i') {
      event.preventDefault();
      ignoreCase = !ignoreCase;
      search(pattern);
    } else if (event.key === 'Enter' && typing) {
      closeBox();
    } else if (event.key === 'Escape') {
      closeBox();
      search('');
      zoomAndSave(root);
    }
  });
  window.addEventListener('hashchange', loadAddress);
  window.addEventListener('scroll', followView);
  window.addEventListener('resize', followView);
  followView();
  measure(Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)));

  loadAddress();
})();
