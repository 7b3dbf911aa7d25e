// The call tree as columns: one typed array for each property, one index for each node.  Nodes are ordered
// depth first, callers before callees; the root is 0.  So a subtree is a range, and no code has to search for
// its nodes.
// SPDX-License-Identifier: MIT

class Tree {
  constructor(size) {
    this.size = size;
    this.name = new Uint32Array(size);  // index into names; 0: no function, a gap
    this.parent = new Uint32Array(size);  // the root is its own parent
    this.depth = new Uint32Array(size);
    this.end = new Uint32Array(size);  // one past the last descendant
    this.total = new Float64Array(size);  // counts, in units of 1 / perOne
    this.start = new Float64Array(size);  // counts on its left
    this.delta = null;  // growth since another profile; NaN: not known
    this.largestDelta = 0;
    this.compared = null;  // counts of each node in two profiles

    this.names = [];
    this.colors = [];  // of each name, 0xRRGGBB
    this.tailCalls = new Set();  // names of functions that were gone when the function that they called ran
    this.perOne = 1;
    this.smallest = 0;  // nodes with smaller counts were left out
    this.leftOut = 0;
    this.groups = null;  // elements of its own for each node, or null: drawn from a pool
    this.titles = null;
    this.original = null;  // for each node its index in name order; null: the same
    this.times = null;  // how often a function follows itself in its one frame
    this.whole = 0;  // the count that is 100 %; 0: that of the root
    this.heights = null;  // rows of each node's callees
    this.functions = null;  // sums by name
    this.isFromEnds = false;  // stacks start with the function that ran
  }

  isTailCall(node) {
    return this.tailCalls.has(this.name[node]);
  }

  // Makes the unit of counts finer by this factor.
  scale(finer) {
    if (finer === 1)
      return;
    for (const column of [this.total, this.start])
      for (let node = 0; node < this.size; ++node)
        column[node] *= finer;
    this.perOne *= finer;
    this.smallest *= finer;
  }

  // Fills parent and depth from the number of children of each node.
  link(children) {
    let above = 0;
    const waiting = Uint32Array.from(children);
    for (let node = 1; node < this.size; ++node) {
      while (waiting[above] === 0) {
        if (above === 0)
          throw new Error('more nodes than children');
        above = this.parent[above];
      }
      --waiting[above];
      this.parent[node] = above;
      this.depth[node] = this.depth[above] + 1;
      above = node;
    }
  }

  // Fills end and total.  Before the call, total holds each node's own count.
  addUp() {
    for (let node = this.size - 1; node >= 0; --node) {
      this.end[node] = Math.max(this.end[node], node + 1);
      if (node > 0) {
        const above = this.parent[node];
        this.end[above] = Math.max(this.end[above], this.end[node]);
        this.total[above] += this.total[node];
      }
    }
  }

  // Fills start.  Children lie side by side; the first starts `own(parent)` right of its parent's edge.
  place(own) {
    const next = new Float64Array(this.size);
    next[0] = own(0);
    for (let node = 1; node < this.size; ++node) {
      const above = this.parent[node];
      this.start[node] = next[above];
      next[above] += this.total[node];
      next[node] = this.start[node] + own(node);
    }
  }

  // Fills start, if each node has a space of its own on its left.
  placeBy(spaces) {
    const next = new Float64Array(this.size);
    for (let node = 1; node < this.size; ++node) {
      const above = this.parent[node];
      this.start[node] = next[above] + spaces[node];
      next[above] = this.start[node] + this.total[node];
      next[node] = this.start[node];
    }
  }

  isGap(node) {
    return node > 0 && this.name[node] === 0;
  }

  nameOf(node) {
    return node === 0 ? 'all' : this.names[this.name[node]];
  }

  // Returns the number of rows below each node, as far as its callees reach.
  rowsBelow() {
    if (this.heights === null) {
      this.heights = new Uint32Array(this.size);
      for (let node = this.size - 1; node > 0; --node) {
        const above = this.parent[node];
        this.heights[above] = Math.max(this.heights[above], this.heights[node] + 1);
      }
    }
    return this.heights;
  }

  // Returns own and total counts by name.  A total counts each sample once, however often the function is on
  // its stack.
  sums() {
    if (this.functions !== null)
      return this.functions;
    const self = new Float64Array(this.names.length);
    const total = new Float64Array(this.names.length);
    const places = new Uint32Array(this.names.length);
    const open = new Uint32Array(this.names.length);  // frames of the name on the present stack
    const stack = [];
    for (let node = 1; node < this.size; ++node) {
      while (stack.length > 0 && this.end[stack[stack.length - 1]] <= node)
        --open[this.name[stack.pop()]];
      const name = this.name[node];
      self[name] += this.total[node];
      if (this.parent[node] !== 0)
        self[this.name[this.parent[node]]] -= this.total[node];
      if (open[name]++ === 0)
        total[name] += this.total[node];
      ++places[name];
      stack.push(node);
    }
    this.functions = { self, total, places };
    return this.functions;
  }
}

function wholeOf(tree) {
  return tree.whole || tree.total[0];
}
