// The buttons, the search field, and the keys that work everywhere.
// SPDX-License-Identifier: MIT

let box = null;  // the element around the search field, while it is open

function closeBox() {
  if (box === null)
    return;
  const hadFocus = box.contains(document.activeElement);
  box.remove();
  box = null;
  byId('search').classList.remove('hidden');
  if (hadFocus)
    byId('search').focus({ preventScroll: true });
}

function searchField() {
  const field = document.createElementNS(XHTML, 'input');
  field.setAttribute('type', 'text');
  field.setAttribute('aria-label', 'Search: regular expression');
  field.setAttribute('placeholder', 'regular expression');
  field.setAttribute('spellcheck', 'false');
  field.value = searching.pattern;
  field.addEventListener('input', () => {
    search(field.value);
    saveAddress();
  });
  return field;
}

function openBox() {
  if (box === null) {
    const width = Math.min(280, view.usable / 2);
    box = svgElement('foreignObject', {
      x: margin + view.usable - width,
      y: fontSize * 0.5 + Math.max(0, inSight().top),
      width,
      height: fontSize * 2.2,
    });
    box.append(searchField());
    page.append(box);
    byId('search').classList.add('hidden');
  }
  box.firstChild.focus();
  box.firstChild.select();
}

function endSearch() {
  closeBox();
  search('');
  saveAddress();
}

function onButton(id, action) {
  const button = byId(id);
  button.classList.remove('hidden');
  button.addEventListener('click', action);
  button.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      action();
    }
  });
}

function onAnyKey(event) {
  const isTyping = box !== null && event.target === box.firstChild;
  const control = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (event.key === 'F3' || (control && key === 'f') || (key === '/' && !isTyping && !control)) {
    event.preventDefault();
    openBox();
  } else if (control && key === 'i') {
    event.preventDefault();
    searching.ignoresCase = !searching.ignoresCase;
    search(searching.pattern);
    saveAddress();
  } else if (event.key === 'Enter' && isTyping) {
    closeBox();
  } else if (event.key === 'Escape') {
    endSearch();
    zoom(0);
  }
}

function listenToButtons() {
  onButton('unzoom', () => zoom(0));
  onButton('invert', toggleInverted);
  onButton('heavy', toggleHeavy);
  onButton('search', () => {
    if (searching.pattern === '')
      openBox();
    else
      endSearch();
  });
  window.addEventListener('keydown', onAnyKey);
}
