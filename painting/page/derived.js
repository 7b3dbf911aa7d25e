// Makes trees from trees.  A step is one of
//   { kind: 'hide', name }        its frames vanish; their time goes to the callers
//   { kind: 'library', name }     the same for all frames of a library ("libc.so.6`read")
//   { kind: 'callees', name }     all places of a function, merged, with what they call
//   { kind: 'callers', name }     all places of a function, merged, with their callers above
//   { kind: 'leaf' }              stacks from the function that ran to the first caller
//   { kind: 'recursion' }         functions that call themselves become one frame
//   { kind: 'side', name }        the widths of one of two profiles: "before" or "after"
//   { kind: 'window', name }      the time "12.3-13.4", in seconds
//   { kind: 'against', name }     the growth from that time to this one
// timeline.js does the last two, before all others.
// Each sample counts once in every step.
// SPDX-License-Identifier: MIT

// Frames of callers with less than this part of the whole are summed up: they could not be seen, and deep
// stacks have millions of them.
const LEAST_PART = 1e-5;
const MOST_VISITS = 3e7;  // of frames: the stacks of a tower that has counts on each floor are as long as its height squared

// The numbers of a node without its callees: own count, counts before and after, growth.
function ownColumns(tree) {
  const { compared } = tree;
  const own = (column) => {
    const values = Float64Array.from(column);
    for (let node = 1; node < tree.size; ++node)
      values[tree.parent[node]] -= column[node];
    return values;
  };
  const columns = { self: own(tree.total) };
  if (compared !== null)
    Object.assign(columns, { before: own(compared.before), after: own(compared.after) });
  else if (tree.delta !== null)
    columns.delta = own(tree.delta.map((value) => Number.isNaN(value) ? 0 : value));
  return columns;
}

// Collects call chains and merges them by name.
class Merger {
  constructor(tree) {
    this.source = tree;
    this.names = tree.names.length;
    this.name = [tree.name[0]];
    this.parent = [0];
    this.times = [1];  // how often a function follows itself
    this.origin = [0];  // the node of the source; -1: several
    this.columns = tree.compared === null ? { self: [] } : { self: [], before: [], after: [] };
    this.known = new Map();  // by caller and name
  }

  child(parent, name, origin) {
    const key = parent * this.names + name;
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.name.length;
      this.known.set(key, node);
      this.name.push(name);
      this.parent.push(parent);
      this.times.push(1);
      this.origin.push(origin);
    } else if (this.origin[node] !== origin) {
      this.origin[node] = -1;
    }
    return node;
  }

  add(node, columns, index) {
    for (const key in columns) {
      const column = this.columns[key] || (this.columns[key] = []);
      column[node] = (column[node] || 0) + columns[key][index];
    }
  }

  // Returns the nodes depth first; siblings in the order of their names.
  order() {
    const texts = this.source.names;
    const rank = new Uint32Array(this.names);
    Array.from(texts.keys()).sort((a, b) => texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : a - b)
      .forEach((name, at) => { rank[name] = at; });
    const size = this.name.length;
    const sorted = Uint32Array.from({ length: size - 1 }, (_, i) => i + 1)
      .sort((a, b) => rank[this.name[b]] - rank[this.name[a]]);
    const first = new Uint32Array(size);  // the first child, or 0
    const next = new Uint32Array(size);
    for (const node of sorted) {
      next[node] = first[this.parent[node]];
      first[this.parent[node]] = node;
    }
    const order = [];
    const pending = [0];
    while (pending.length > 0) {
      const node = pending.pop();
      order.push(node);
      if (node !== 0 && next[node] !== 0)
        pending.push(next[node]);
      if (first[node] !== 0)
        pending.push(first[node]);
    }
    return order;
  }

  finish() {
    const source = this.source;
    const order = this.order();
    const place = new Uint32Array(order.length);
    order.forEach((node, at) => { place[node] = at; });
    const tree = Object.assign(new Tree(order.length), {
      names: source.names, colors: source.colors, tailCalls: source.tailCalls, perOne: source.perOne, smallest: source.smallest,
      leftOut: source.leftOut, largestDelta: source.largestDelta, whole: wholeOf(source),
      times: new Uint32Array(order.length),
    });
    const sums = {};
    for (const key in this.columns)
      sums[key] = new Float64Array(order.length);
    order.forEach((node, at) => {
      tree.name[at] = this.name[node];
      tree.parent[at] = place[this.parent[node]];
      tree.depth[at] = at === 0 ? 0 : tree.depth[tree.parent[at]] + 1;
      tree.times[at] = this.times[node];
      for (const key in sums)
        sums[key][at] = this.columns[key][node] || 0;
    });
    const own = Float64Array.from(sums.self);
    tree.total = sums.self;
    tree.addUp();
    for (const key in sums)
      if (key !== 'self')
        for (let at = order.length - 1; at > 0; --at)
          sums[key][tree.parent[at]] += sums[key][at];
    tree.place((at) => own[at]);
    this.compare(tree, sums, order);
    return tree;
  }

  // The noise of a change is known of nodes that were not merged.
  compare(tree, sums, order) {
    const { compared } = this.source;
    if (compared !== null) {
      tree.compared = Object.assign(new Compared(tree.size), {
        before: sums.before, after: sums.after, wholeBefore: compared.wholeBefore, wholeAfter: compared.wholeAfter,
        dimsNoise: compared.dimsNoise, byCount: compared.byCount,
      });
      order.forEach((node, at) => {
        const origin = this.origin[node];
        const isSame = origin >= 0 && compared.before[origin] === sums.before[at] &&
          compared.after[origin] === sums.after[at];
        for (const key of isSame ? ['noise', 'low', 'high'] : [])
          tree.compared[key][at] = compared[key][origin];
      });
      tree.delta = new Float64Array(tree.size).map((_, node) => tree.compared.change(node, tree.perOne));
    } else if (sums.delta) {
      tree.delta = sums.delta;
    }
  }
}

// Merges every node's own count into the node that `place` returns; `place` may return -1: not counted.
function mergedBy(tree, columns, place) {
  const merger = new Merger(tree);
  const target = new Int32Array(tree.size);
  for (let node = 0; node < tree.size; ++node) {
    target[node] = node === 0 ? 0 : place(merger, node, target[tree.parent[node]]);
    if (target[node] >= 0)
      merger.add(target[node], columns, node);
  }
  return merger.finish();
}

function without(tree, isHidden) {
  return mergedBy(tree, ownColumns(tree), (merger, node, above) =>
    isHidden(tree.name[node]) ? above : merger.child(above, tree.name[node], node));
}

function withoutRecursion(tree) {
  const run = new Uint32Array(tree.size);
  return mergedBy(tree, ownColumns(tree), (merger, node, above) => {
    const isRepeated = node > 0 && tree.name[tree.parent[node]] === tree.name[node] && !tree.isGap(node);
    run[node] = isRepeated ? run[tree.parent[node]] + 1 : 1;
    const place = isRepeated ? above : merger.child(above, tree.name[node], node);
    merger.times[place] = Math.max(merger.times[place], run[node]);
    return place;
  });
}

function calleesOf(tree, name) {
  const columns = ownColumns(tree);
  const outside = -1;
  const merger = new Merger(tree);
  const target = new Int32Array(tree.size).fill(outside);
  for (let node = 1; node < tree.size; ++node) {
    const above = target[tree.parent[node]];
    if (above !== outside || tree.name[node] === name)
      target[node] = merger.child(above === outside ? 0 : above, tree.name[node], node);
    if (target[node] !== outside)
      merger.add(target[node], columns, node);
  }
  return merger.finish();
}

// Merges stacks from their ends: `ends` are nodes, `columns` their numbers.  Works on all stacks of a row at
// once, so that rare callers can be summed up before they are followed.
function callersFrom(tree, ends, columns) {
  const merger = new Merger(tree);
  const least = wholeOf(tree) * LEAST_PART;
  const pending = [{ place: 0, above: ends, ends }];
  let visits = 0;
  while (pending.length > 0) {
    const { place, above, ends: group } = pending.pop();
    visits += group.length;
    const byName = new Map();
    for (let i = 0; i < group.length; ++i) {
      const node = above[i];
      if (node === 0) {
        merger.add(place, columns, group[i]);
        continue;
      }
      const name = tree.name[node];
      if (!byName.has(name))
        byName.set(name, { above: [], ends: [], weight: 0 });
      const callers = byName.get(name);
      callers.above.push(tree.parent[node]);
      callers.ends.push(group[i]);
      callers.weight += columns.self[group[i]];
    }
    for (const [name, callers] of byName) {
      if ((callers.weight < least || visits > MOST_VISITS) && place !== 0) {
        const gap = merger.child(place, 0, -1);
        for (const end of callers.ends)
          merger.add(gap, columns, end);
        continue;
      }
      pending.push({ place: merger.child(place, name, -1), above: callers.above, ends: callers.ends });
    }
  }
  return Object.assign(merger.finish(), { isFromEnds: true });
}

function fromLeaf(tree) {
  const columns = ownColumns(tree);
  const ends = [];
  for (let node = 1; node < tree.size; ++node)
    if (columns.self[node] > 0)
      ends.push(node);
  return callersFrom(tree, ends, columns);
}

// Uses the outermost frame of recursive calls.
function callersOf(tree, name) {
  const { compared } = tree;
  const columns = { self: tree.total };
  if (compared !== null)
    Object.assign(columns, { before: compared.before, after: compared.after });
  else if (tree.delta !== null)
    columns.delta = tree.delta.map((value) => Number.isNaN(value) ? 0 : value);
  const ends = [];
  for (let node = 1; node < tree.size;) {
    const isPlace = tree.name[node] === name;
    if (isPlace)
      ends.push(node);
    node = isPlace ? tree.end[node] : node + 1;
  }
  return callersFrom(tree, ends, columns);
}

function sideOf(tree, side) {
  if (tree.compared === null)
    return tree;
  const columns = ownColumns(tree);
  const whole = side === 'before' ? tree.compared.wholeBefore : tree.compared.wholeAfter;
  columns.self = columns[side];
  const result = mergedBy(tree, columns, (merger, node, above) => merger.child(above, tree.name[node], node));
  result.total[0] = Math.max(result.total[0], whole * tree.perOne);
  result.whole = result.total[0];
  return result;
}

function libraryOf(name) {
  const end = name.indexOf('`');
  return end > 0 ? name.slice(0, end) : '';
}

function derivedBy(tree, step) {
  const name = 'name' in step ? tree.names.indexOf(step.name) : -1;
  switch (step.kind) {
    case 'hide': return without(tree, (at) => at === name);
    case 'library': return without(tree, (at) => at > 0 && libraryOf(tree.names[at]) === step.name);
    case 'callees': return calleesOf(tree, name);
    case 'callers': return callersOf(tree, name);
    case 'leaf': return fromLeaf(tree);
    case 'recursion': return withoutRecursion(tree);
    case 'side': return sideOf(tree, step.name);
    default: return tree;
  }
}

const timeText = (name) => name.replace('-', ' s to ') + ' s';

// Says what a step does, for the path above the graph.
function stepText(step) {
  switch (step.kind) {
    case 'hide': return 'without ' + step.name;
    case 'library': return 'without ' + step.name + '`\u2026';
    case 'callees': return 'callees of ' + step.name;
    case 'callers': return 'callers of ' + step.name;
    case 'leaf': return 'merged from the leaf';
    case 'recursion': return 'recursion folded';
    case 'window': return (hasStep('against') ? 'before: ' : '') + timeText(step.name);
    case 'against': return 'after: ' + timeText(step.name);
    default: return step.name + ' only';
  }
}
