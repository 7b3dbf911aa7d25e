// Makes the tree that has the heaviest callees on the left.
// SPDX-License-Identifier: MIT

// Returns the nodes in their new order, as indices of the old one.
function heavyOrder(tree) {
  const order = new Uint32Array(tree.size);
  const pending = [0];
  const children = [];
  for (let at = 0; at < tree.size; ++at) {
    const node = pending.pop();
    order[at] = node;
    children.length = 0;
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child])
      children.push(child);
    if (children.length > 1)
      children.sort((a, b) => tree.total[a] - tree.total[b] || b - a);
    for (const child of children)
      pending.push(child);
  }
  return order;
}

// In this tree, a node's own count lies right of its children.
function leftHeavy(tree) {
  const order = heavyOrder(tree);
  const place = new Uint32Array(tree.size);
  order.forEach((node, at) => { place[node] = at; });
  const heavy = Object.assign(new Tree(tree.size), {
    names: tree.names, colors: tree.colors, tailCalls: tree.tailCalls, perOne: tree.perOne, smallest: tree.smallest, leftOut: tree.leftOut,
    largestDelta: tree.largestDelta, original: order, whole: tree.whole, isFromEnds: tree.isFromEnds,
    times: tree.times && tree.times.map((_, at) => tree.times[order[at]]),
    compared: tree.compared && tree.compared.inOrder(order),
    delta: tree.delta && tree.delta.map((_, at) => tree.delta[order[at]]),
    groups: tree.groups && tree.groups.map((_, at) => tree.groups[order[at]]),
    titles: tree.titles && tree.titles.map((_, at) => tree.titles[order[at]]),
  });
  for (let at = 0; at < tree.size; ++at) {
    const node = order[at];
    heavy.name[at] = tree.name[node];
    heavy.depth[at] = tree.depth[node];
    heavy.total[at] = tree.total[node];
    heavy.parent[at] = place[tree.parent[node]];
    heavy.end[at] = at + tree.end[node] - node;
  }
  heavy.place(() => 0);
  heavy.places = place;  // the way back: new index by old one
  return heavy;
}

// The trees: as the file has it, after the steps, and that with the heaviest callees on the left.  The last is
// made when the user first asks for it.
// `counted` is the tree for sums by function: its stacks start with the outermost caller.
const orders = { given: null, byName: null, heavy: null, counted: null };

function showTree(tree) {
  view.tree = tree;
  ++view.generation;
  window.requestIdleCallback?.(() => orders.counted.sums());  // the first hover needs them
}

function setOrder(heavy) {
  const selected = [view.zoomed, cursor.node].map((node) => originalIndex(node));
  if (heavy && orders.heavy === null)
    orders.heavy = leftHeavy(orders.byName);
  view.heavy = heavy;
  showTree(heavy ? orders.heavy : orders.byName);
  [view.zoomed, cursor.node] = selected.map((node) => node < 0 ? node : currentIndex(node));
}

// Steps of which only the last counts.
const ONCE = ['window', 'against', 'leaf', 'recursion', 'side'];

// Makes the tree after these steps, and shows all of it.
function setSteps(wanted) {
  const isLast = (step, at) => !ONCE.includes(step.kind) || !wanted.slice(at + 1).some((other) => other.kind === step.kind);
  const hasWindow = wanted.some((step) => step.kind === 'window');
  const steps = wanted.filter((step, at) => isLast(step, at) && (hasWindow || step.kind !== 'against'));
  view.steps = steps;
  const isFromEnds = (step) => step.kind === 'leaf' || step.kind === 'callers';
  const selected = selectedTree(orders.given, steps);
  orders.byName = steps.reduce(derivedBy, selected);
  orders.counted = steps.some(isFromEnds) ? steps.filter((step) => !isFromEnds(step)).reduce(derivedBy, selected) : orders.byName;
  orders.heavy = null;
  view.zoomed = cursor.node = 0;
  const { heavy } = view;
  view.heavy = false;
  showTree(orders.byName);
  setOrder(heavy);
}

// Zooms to a node of the tree by name; if no time was counted there, to its closest caller that has some.
function zoomToCounted(node) {
  let counted = node;
  while (counted !== 0 && orders.byName.total[counted] === 0)
    counted = orders.byName.parent[counted];
  view.zoomed = currentIndex(counted);
}

// These two convert between the current order and the order by name.
function originalIndex(node) {
  return node > 0 && view.heavy ? view.tree.original[node] : node;
}

function currentIndex(node) {
  return view.heavy ? view.tree.places[node] : node;
}
