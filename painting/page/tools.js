// The tools above the graph: search field, buttons, the menu, the list of keys.  Each action has one entry in
// ACTIONS, from which the menu, the keys and the list of keys are made.
// SPDX-License-Identifier: MIT

// The frame that an action is for: that under the pointer, else that of the keyboard.
const actedOn = () => pointed.node > 0 ? pointed.node : cursor.node;
const functionName = () => actedOn() > 0 && !view.tree.isGap(actedOn()) ? view.tree.nameOf(actedOn()) : '';

// `of`: the action is for a function.  `is`: whether a switch is on.
const ACTIONS = [
  { key: 'c', label: 'Callers of all its places', of: true, run: (name) => addStep({ kind: 'callers', name }) },
  { key: 'e', label: 'Callees of all its places', of: true, run: (name) => addStep({ kind: 'callees', name }) },
  { key: 's', label: 'List its callers and callees', of: true, run: (name) => side.lookAround(name) },
  { key: 'x', label: 'Hide it; its time goes to its callers', of: true, run: (name) => addStep({ kind: 'hide', name }) },
  { key: 'l', label: 'Hide its library', of: true, isPossible: (name) => libraryOf(name) !== '',
    run: (name) => addStep({ kind: 'library', name: libraryOf(name) }) },
  { key: 'y', label: 'Copy its name', of: true, run: (name) => copy(name) },
  { key: 'Y', label: 'Copy its stack', of: true, run: () => copy(stackText(actedOn())) },
  { key: '0', label: 'Reset zoom', id: 'unzoom', run: resetView },
  { key: 'i', label: 'Icicle: callers on top', id: 'invert', is: () => view.inverted, run: toggleInverted },
  { key: 'r', label: 'Merge from the leaf', is: () => hasStep('leaf'), run: () => toggleStep('leaf') },
  { key: 'f', label: 'Fold recursion', is: () => hasStep('recursion'), run: () => toggleStep('recursion') },
  { key: 'h', label: 'Left heavy', id: 'heavy', is: () => view.heavy, run: toggleHeavy },
  { key: 'b', label: 'Widths: before', is: () => isSide('before'), isPossible: () => isCompared(), run: () => toggleSide('before') },
  { key: 'a', label: 'Widths: after', is: () => isSide('after'), isPossible: () => isCompared(), run: () => toggleSide('after') },
  { key: 'u', label: 'Colours by counts, not shares', is: () => view.tree.compared.byCount, isPossible: () => isCompared(),
    run: () => toggleCompared('byCount') },
  { key: 'o', label: 'Dim changes that may be noise', is: () => view.tree.compared.dimsNoise, isPossible: () => isCompared(),
    run: () => toggleCompared('dimsNoise') },
  { key: 'm', label: 'Compare with the next time that you drag over', id: 'compare', is: () => timeMap.compares, isPossible: () => timeline.steps > 1,
    run: () => timeMap.toggleCompares() },
  { key: 'z', label: 'Times of UTC, not of this place', is: () => timeline.isUtc, isPossible: () => timeline.steps > 1 && !Number.isNaN(timeline.zeroMs),
    run: () => timeMap.toggleUtc() },
  { key: 't', label: 'Table of functions', id: 'table', is: () => side.isOpen('functions'), run: () => side.toggle('functions') },
  { key: 'p', label: 'Facts of the profile', is: () => side.isOpen('facts'), isPossible: () => facts.length > 0, run: () => side.toggle('facts') },
  { key: 'k', label: 'Next colours', run: () => nextScheme() },
  { key: 'd', label: 'Dark or light', isPossible: () => theme.rule !== null, run: () => theme.toggle() },
  { key: 'w', label: 'Copy this view as folded text', run: () => copy(foldedText()) },
  { key: 'S', label: 'Save this view as SVG', run: () => saveSvg() },
  { key: 'P', label: 'Save this view as PNG', run: () => savePng() },
  { key: 'n', label: 'Next match', run: () => goToMatch(1) },
  { key: 'N', label: 'Previous match', run: () => goToMatch(-1) },
  { key: '?', label: 'Keys', run: () => tools.toggleHelp() },
];

const isCompared = () => view.tree.compared !== null;
const isSide = (name) => view.steps.some((step) => step.kind === 'side' && step.name === name);

function toggleSide(name) {
  if (isSide(name))
    removeSteps((step) => step.kind === 'side');
  else
    addStep({ kind: 'side', name });
}

function toggleCompared(key) {
  changeView(() => {
    const isOn = !view.tree.compared[key];
    for (const tree of [orders.given, orders.byName, orders.heavy])
      if (tree !== null && tree.compared !== null)
        tree.compared[key] = isOn;
  }, false);
}

function nextScheme() {
  const at = SCHEMES.findIndex(([scheme]) => scheme === view.scheme);
  changeView(() => { view.scheme = SCHEMES[(at + 1) % SCHEMES.length][0]; }, false);
  tools.report('Colours ' + SCHEMES[(at + 1) % SCHEMES.length][1]);
}

const isPossible = (action, name) => (!action.of || name !== '') && (!action.isPossible || action.isPossible(name));

function perform(action) {
  const name = functionName();
  if (isPossible(action, name))
    action.run(name);
}

// Lists the keys that are not those of an action.
const OTHER_KEYS = [
  ['/ or Ctrl-F', 'Search; ";" separates several terms'], ['Enter, F3', 'Next match; with Shift the previous'],
  ['Ctrl-I', 'Toggle case sensitivity of the search'], ['Arrows, Home', 'Move between callers, callees and siblings'],
  ['Arrows on the timeline', 'Select time; with Shift more, with Control to compare'],
  ['Enter, Space', 'Zoom to the frame'], ['Escape', 'End search, menu and zoom'],
];

const tools = {
  field: html('input', { id: 'search', type: 'search', 'aria-label': 'Search: regular expression', spellcheck: 'false',
    placeholder: 'Search (regular expression)' }),
  buttons: new Map(),
  menu: html('div', { id: 'menu', class: 'hidden', role: 'menu' }),
  help: html('div', { id: 'help', class: 'hidden', role: 'dialog', 'aria-label': 'Keys' }),

  button(action, label) {
    const button = html('button', { id: action.id, type: 'button', title: action.label + ' (' + action.key + ')' }, label);
    button.addEventListener('click', () => perform(action));
    this.buttons.set(action.id, { button, action });
    return button;
  },

  build() {
    const byId = (id) => ACTIONS.find((action) => action.id === id);
    this.previous = html('button', { type: 'button', class: 'hidden', title: 'Previous match (N)', 'aria-label': 'Previous match' }, '\u2039');
    this.next = html('button', { type: 'button', class: 'hidden', title: 'Next match (n)', 'aria-label': 'Next match' }, '\u203a');
    this.previous.addEventListener('click', () => goToMatch(-1));
    this.next.addEventListener('click', () => goToMatch(1));
    this.more = html('button', { id: 'more', type: 'button', 'aria-haspopup': 'menu', 'aria-expanded': 'false' }, 'More');
    this.more.addEventListener('click', () => {
      const { right, bottom } = this.more.getBoundingClientRect();
      this.openMenu(right, bottom, -1);
    });
    const keys = html('button', { id: 'keys', type: 'button', title: 'Keys (?)', 'aria-label': 'Keys' }, '?');
    keys.addEventListener('click', () => this.toggleHelp());
    parts.tools.append(this.button(byId('unzoom'), 'Reset zoom'), this.field, this.previous, this.next,
      this.button(byId('invert'), 'Icicle'), this.button(byId('heavy'), 'Left heavy'),
      this.button(byId('table'), 'Table'), this.more, keys);
    app.append(this.menu, this.help);
    this.field.addEventListener('input', () => {
      search(this.field.value);
      saveAddress();
    });
    app.addEventListener('pointerdown', (event) => {
      if (!this.menu.contains(event.target) && event.target !== this.more)
        this.closeMenu();
    });
    window.addEventListener('keydown', onAnyKey);
  },

  showState() {
    for (const { button, action } of this.buttons.values())
      if (action.is)
        button.setAttribute('aria-pressed', action.is());
    this.buttons.get('unzoom').button.classList.toggle('hidden', view.zoomed === 0 && view.steps.length === 0);
  },

  showSearch() {
    if (this.field.value !== searching.pattern)
      this.field.value = searching.pattern;
    for (const button of [this.previous, this.next])
      button.classList.toggle('hidden', searching.names === null);
  },

  // Opens the menu with one corner at this point of the window.  With a node, it begins with the actions for
  // that function.
  openMenu(x, y, node) {
    const name = node > 0 ? functionName() : '';
    const items = ACTIONS.filter((action) => node > 0 ? action.of && isPossible(action, name) : !action.of && isPossible(action, ''));
    this.menu.replaceChildren(...(node > 0 ? [html('div', { class: 'heading' }, shortened(name, 60))] : []),
      ...items.map((action) => this.menuItem(action)));
    this.menu.classList.remove('hidden');
    const around = app.getBoundingClientRect();
    const growth = around.width > 0 ? app.offsetWidth / around.width : 1;
    const place = (at, size, room) => Math.max(2, Math.min(at, room - size - 4)) + 'px';
    this.menu.style.maxHeight = app.offsetHeight - 8 + 'px';
    this.menu.style.left = place((x - around.left) * growth, this.menu.offsetWidth, app.offsetWidth);
    this.menu.style.top = place((y - around.top) * growth, this.menu.offsetHeight, app.offsetHeight);
    this.more.setAttribute('aria-expanded', 'true');
    this.menu.querySelector('button').focus({ preventScroll: true });
  },

  menuItem(action) {
    const state = action.is ? { role: 'menuitemcheckbox', 'aria-checked': action.is() } : { role: 'menuitem' };
    const item = html('button', { type: 'button', ...state }, html('span', {}, action.label), html('kbd', {}, action.key));
    item.addEventListener('click', () => {
      this.closeMenu();
      perform(action);
    });
    return item;
  },

  closeMenu() {
    const hadFocus = this.menu.contains(document.activeElement);
    this.menu.classList.add('hidden');
    this.more.setAttribute('aria-expanded', 'false');
    if (hadFocus)
      cursor.mark.focus({ preventScroll: true });
  },

  moveInMenu(step) {
    const items = Array.from(this.menu.querySelectorAll('button'));
    items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
  },

  toggleHelp() {
    if (this.help.firstChild === null) {
      const rows = [...OTHER_KEYS, ...ACTIONS.map((action) => [action.key, action.label + (action.of ? ' (of the frame under the pointer)' : '')])];
      const close = html('button', { type: 'button' }, 'Close');
      close.addEventListener('click', () => this.toggleHelp());
      this.help.append(html('dl', {}, ...rows.flatMap(([key, label]) => [html('dt', {}, html('kbd', {}, key)), html('dd', {}, label)])), close);
    }
    this.help.classList.toggle('hidden');
    if (!this.help.classList.contains('hidden'))
      this.help.lastChild.focus();
  },

  // Shows a text in the details line until the pointer moves on.
  report(text) {
    parts.details.textContent = text;
    cursor.voice.textContent = text;
  },
};

function endEverything() {
  const isOpen = (element) => !element.classList.contains('hidden');
  if (isOpen(tools.menu))
    tools.closeMenu();
  else if (isOpen(tools.help))
    tools.toggleHelp();
  else {
    search('');
    saveAddress();
    zoom(0);
  }
}

function onMenuKey(event) {
  if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault();
    tools.moveInMenu(event.key === 'ArrowDown' ? 1 : -1);
  }
}

function onAnyKey(event) {
  const isTyping = event.target === tools.field;
  const control = event.ctrlKey || event.metaKey;
  if ((control && event.key === 'f') || (event.key === '/' && !isTyping && !control) ||
      (event.key === 'F3' && searching.names === null)) {
    event.preventDefault();
    tools.field.focus();
    tools.field.select();
  } else if (event.key === 'F3' || (event.key === 'Enter' && isTyping)) {
    event.preventDefault();
    goToMatch(event.shiftKey ? -1 : 1);
  } else if (control && event.key === 'i') {
    event.preventDefault();
    searching.ignoresCase = !searching.ignoresCase;
    search(searching.pattern);
    saveAddress();
  } else if (event.key === 'Escape') {
    endEverything();
  } else if (!isTyping && !control && !event.altKey) {
    if (tools.menu.contains(event.target))
      onMenuKey(event);
    const action = ACTIONS.find(({ key }) => key === event.key);
    if (action) {
      event.preventDefault();
      tools.closeMenu();
      perform(action);
    }
  }
}
