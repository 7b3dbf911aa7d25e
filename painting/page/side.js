// The panel beside the graph: the table of functions, the callers and callees of one, and the facts of the profile.
// SPDX-License-Identifier: MIT

const MOST_ROWS = 500;

// Pairs of key and value, as the file carries them: "key: value" lines.
const facts = Array.from(page.querySelectorAll('metadata.facts')).flatMap((element) => element.textContent.split('\n'))
  .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]).filter(([key]) => key !== '');

const side = {
  shows: '',  // "functions", "around", "facts", or "": closed
  subject: 0,  // the function whose callers and callees are shown
  sortedBy: 'self',
  isAscending: false,
  rows: [],

  isOpen(what) {
    return this.shows === what;
  },

  toggle(what) {
    changeView(() => {
      this.shows = this.shows === what ? '' : what;
      parts.side.classList.toggle('hidden', this.shows === '');
      fitWindow();
    }, false);
  },

  // Shows the callers and callees of a function; of the same one again: closes the panel.
  lookAround(name) {
    const subject = view.tree.names.indexOf(name);
    const isSame = this.shows === 'around' && this.subject === subject;
    this.subject = subject;
    if (isSame || this.shows !== 'around')
      this.toggle('around');
    else
      this.show();
  },

  show() {
    if (this.shows === 'functions')
      this.showFunctions();
    else if (this.shows === 'around')
      this.showAround();
    else if (this.shows === 'facts')
      parts.side.replaceChildren(html('dl', {}, ...facts.flatMap(([key, value]) => [html('dt', {}, key), html('dd', {}, value)])));
  },

  // Returns the names to list: those that match the search, the largest first.
  sorted() {
    const { tree } = view;
    const sums = orders.counted.sums();
    const names = Array.from(tree.names.keys()).filter((name) => name > 0 && sums.total[name] > 0 && tree.names[name] !== '' &&
      (searching.names === null || searching.names[name] > 0));
    const sign = this.isAscending ? -1 : 1;
    const byName = (a, b) => tree.names[a] < tree.names[b] ? -1 : 1;
    if (this.sortedBy === 'name')
      return names.sort((a, b) => -sign * byName(a, b));
    const column = sums[this.sortedBy];
    return names.sort((a, b) => sign * (column[b] - column[a]) || byName(a, b));
  },

  heading(key, label) {
    const button = html('button', { type: 'button' }, label, this.sortedBy === key ? this.isAscending ? ' \u25b4' : ' \u25be' : '');
    button.addEventListener('click', () => {
      this.isAscending = this.sortedBy === key ? !this.isAscending : false;
      this.sortedBy = key;
      this.show();
    });
    const order = this.sortedBy !== key ? 'none' : this.isAscending ? 'ascending' : 'descending';
    return html('th', { scope: 'col', 'aria-sort': order }, button);
  },

  row(name) {
    const { tree } = view;
    const sums = orders.counted.sums();
    const button = html('button', { type: 'button', title: shortened(tree.names[name], 2000) }, shortened(tree.names[name], 120));
    button.addEventListener('click', () => select(name));
    button.addEventListener('dblclick', () => addStep({ kind: 'callees', name: tree.names[name] }));
    const row = html('tr', {}, html('td', {}, shareText(sums.self[name])), html('td', {}, shareText(sums.total[name])),
      html('td', { class: 'name' }, button));
    row.functionName = name;
    return row;
  },

  showFunctions() {
    const names = this.sorted();
    const body = html('tbody', {}, ...names.slice(0, MOST_ROWS).map((name) => this.row(name)));
    const table = html('table', {}, html('thead', {}, html('tr', {}, this.heading('self', 'Self'), this.heading('total', 'Total'),
      this.heading('name', 'Function'))), body);
    const left = names.length - MOST_ROWS;
    parts.side.replaceChildren(table, ...(left > 0 ? [html('p', {}, grouped(left) + ' more: search to narrow them down')] : []));
    this.rows = Array.from(body.children);
    this.mark();
  },

  // The neighbours of the function in a tree of its callers or callees, whose first node is the function.
  neighbours(tree, itself) {
    const rows = [];
    let own = tree.size > 1 ? tree.total[1] : 0;
    for (let node = 2; node < tree.size; node = tree.end[node]) {
      rows.push([tree.total[node], tree.isGap(node) ? 0 : tree.name[node]]);
      own -= tree.total[node];
    }
    rows.sort((a, b) => b[0] - a[0]);
    return [...rows.slice(0, MOST_ROWS).map(([count, name]) => this.neighbourRow(count, name)),
      ...(own > 0 ? [html('tr', {}, html('td', {}, shareText(own)), html('td', { class: 'name' }, itself))] : [])];
  },

  neighbourRow(count, name) {
    const { names } = view.tree;
    const text = name === 0 ? 'others' : names[name];
    const button = html('button', { type: 'button', title: shortened(text, 2000) }, shortened(text, 120));
    button.addEventListener('click', () => {
      if (name !== 0)
        this.lookAround(names[name]);
    });
    return html('tr', {}, html('td', {}, shareText(count)), html('td', { class: 'name' }, button));
  },

  showAround() {
    const { counted } = orders;
    const name = counted.names[this.subject];
    const table = (title, rows) => html('table', {}, html('thead', {}, html('tr', {}, html('th', { scope: 'colgroup', colspan: 2 }, title))),
      html('tbody', {}, ...rows));
    const { self, total } = counted.sums();
    parts.side.replaceChildren(
      table('Callers', this.neighbours(callersOf(counted, this.subject), 'no caller')),
      html('p', { class: 'subject' }, name, html('br'), shareText(total[this.subject]) + ', self ' + shareText(self[this.subject])),
      table('Callees', this.neighbours(calleesOf(counted, this.subject), 'itself')));
    view.selected = this.subject;
    drawSelected();
  },

  // Marks the row of the selected function.
  mark() {
    for (const row of this.shows === 'functions' ? this.rows : [])
      row.classList.toggle('selected', row.functionName === view.selected);
  },
};
