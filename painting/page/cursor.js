// Keyboard navigation in the graph.  It is one stop of the Tab key; the arrow keys lead from there to
// callers, callees and siblings.  Screen readers announce the frame under the cursor.
// SPDX-License-Identifier: MIT

const cursor = {
  node: 0,
  mark: svgElement('rect', { id: 'cursor', tabindex: 0, role: 'treeitem', fill: 'none' }),
  voice: html('div', { id: 'voice', role: 'status', 'aria-live': 'polite' }),

  hasFocus() {
    return document.activeElement === this.mark;
  },

  // Moves the mark to its node, or to the zoomed node if its node is not in the view.
  place() {
    const { tree, zoomed } = view;
    const isInView = isOnPath(this.node) || (this.node >= zoomed && this.node < tree.end[zoomed]);
    if (!isInView)
      this.node = zoomed;
    placeMark(this.mark, this.node);
    const siblings = this.siblings();
    this.mark.setAttribute('aria-label', describe(this.node));
    this.mark.setAttribute('aria-level', tree.depth[this.node] + 1);
    this.mark.setAttribute('aria-setsize', siblings.length);
    this.mark.setAttribute('aria-posinset', siblings.indexOf(this.node) + 1);
  },

  siblings() {
    const { tree } = view;
    const above = tree.parent[this.node];
    const nodes = [];
    if (this.node === 0)
      return [0];
    for (let child = above + 1; child < tree.end[above]; child = tree.end[child])
      nodes.push(child);
    return nodes;
  },

  heaviestChild() {
    const { tree } = view;
    let heaviest = -1;
    for (let child = this.node + 1; child < tree.end[this.node]; child = tree.end[child])
      if (!tree.isGap(child) && (heaviest < 0 || tree.total[child] > tree.total[heaviest]))
        heaviest = child;
    return heaviest;
  },

  // Returns the node to which the key leads from here, or -1.
  target(key) {
    const { tree } = view;
    const isAway = key === (view.inverted ? 'ArrowDown' : 'ArrowUp');  // from the root
    if (key === 'ArrowUp' || key === 'ArrowDown')
      return isAway ? this.onward() : this.node === 0 ? -1 : tree.parent[this.node];
    if (key === 'Home')
      return 0;
    if (key !== 'ArrowLeft' && key !== 'ArrowRight' || isOnPath(this.node))
      return -1;  // siblings of the zoomed node are not in the view
    const siblings = this.siblings();
    const next = siblings[siblings.indexOf(this.node) + (key === 'ArrowLeft' ? -1 : 1)];
    return next === undefined ? -1 : next;
  },

  // Below the zoomed node, the view has only one callee of each caller.
  onward() {
    if (!isOnPath(this.node) || this.node === view.zoomed)
      return this.heaviestChild();
    let node = view.zoomed;
    while (view.tree.parent[node] !== this.node)
      node = view.tree.parent[node];
    return node;
  },

  moveTo(node) {
    this.node = node;
    this.place();
    this.tell();
    showRow(view.tree.depth[node], 1);
    this.mark.classList.add('placed');
  },

  tell() {
    showDetails(this.node);
    this.voice.textContent = describe(this.node) + ', level ' + (view.tree.depth[this.node] + 1);
  },

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      zoom(this.node);
      this.tell();
      return;
    }
    const node = this.target(event.key);
    if (event.key.startsWith('Arrow') || event.key === 'Home')
      event.preventDefault();
    if (node >= 0)
      this.moveTo(node);
  },

  start() {
    layer.setAttribute('role', 'tree');
    layer.setAttribute('aria-label', 'Call tree of ' + countText(view.tree.total[0]));
    layer.append(this.mark);
    app.append(this.voice);
    this.mark.addEventListener('focus', () => this.tell());
    this.mark.addEventListener('blur', () => {
      this.mark.classList.remove('placed');
      showDetails(-1);
    });
    this.mark.addEventListener('keydown', (event) => this.onKey(event));
  },
};
