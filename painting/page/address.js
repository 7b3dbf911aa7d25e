// The address holds the state of the page, so that a link shows another reader the same view.
//   p  names of the callers and of the zoomed frame, ";" between them; or "~" and a hash of that text, if it
//      is long.  Names survive a new recording; coordinates would not.
//   x, y  the corner of the zoomed frame in the original layout: older links, which are only read
//   s  the search; c=1 makes it ignore case
//   i=1 turns the graph upside down, h=1 puts the heaviest callees on the left
//   v  the steps, each "kind" or "kind:name", ";" between them
// The script writes them behind "#" and also reads them behind "?".  It ignores what does not fit this page.
// SPDX-License-Identifier: MIT

const NEAR = 0.06;  // pixels: older addresses have one decimal
const MOST_PATH = 1500;  // characters
const MOST_STEPS = 50;

// Returns the frame of that row whose corner is nearest; of several at one place the widest; else 0.
function nodeAtCorner(x, y) {
  const tree = orders.byName;
  const top = Number(given.top);
  const first = Number(given.first);
  const depth = isGivenInverted ? Math.round((y - first) / rowHeight) :
    givenLevels - 1 - Math.round((y - top - 1) / rowHeight);
  const width = givenWidth / tree.total[0];
  let found = 0;
  let distance = NEAR;
  for (let node = 0; node < tree.size; ++node) {
    if (tree.depth[node] !== depth)
      continue;
    const off = Math.abs(margin + tree.start[node] * width - x);
    if (off < distance || off === distance && found !== 0 && tree.total[node] > tree.total[found]) {
      found = node;
      distance = off;
    }
  }
  return found;
}

function pathText(node) {
  const { tree } = view;
  const names = [];
  for (let at = node; at !== 0; at = tree.parent[at])
    names.unshift(tree.nameOf(at));
  const text = names.join(';');
  return text.length <= MOST_PATH ? text : '~' + hashOf(text).toString(16);
}

function nodeOfPath(text) {
  const tree = orders.byName;
  if (text.startsWith('~')) {
    const hashes = new Float64Array(tree.size);
    for (let node = 1; node < tree.size; ++node) {
      const above = tree.parent[node];
      hashes[node] = above === 0 ? hashOf(tree.nameOf(node)) : hashOf(';' + tree.nameOf(node), hashes[above]);
      if ('~' + hashes[node].toString(16) === text)
        return node;
    }
    return 0;
  }
  let node = 0;
  for (const name of text.split(';')) {
    let child = node + 1;
    while (child < tree.end[node] && tree.nameOf(child) !== name)
      child = tree.end[child];
    if (child >= tree.end[node])
      return node;  // as far as this profile has the path
    node = child;
  }
  return node;
}

function saveAddress(isNew = false) {
  const state = new URLSearchParams();
  if (view.zoomed !== 0)
    state.set('p', pathText(view.zoomed));
  if (searching.pattern !== '')
    state.set('s', searching.pattern);
  if (searching.ignoresCase)
    state.set('c', 1);
  if (view.inverted !== isGivenInverted)
    state.set('i', 1);
  if (view.heavy)
    state.set('h', 1);
  if (view.steps.length > 0)
    state.set('v', view.steps.map((step) => step.kind + ('name' in step ? ':' + step.name : '')).join(';'));
  const text = '#' + state;
  if (text === (location.hash || '#'))
    return;
  try {
    history[isNew ? 'pushState' : 'replaceState'](null, '', text);
  } catch (error) {
    // A page embedded in another may have no address of its own.
  }
}

const PLAIN_STEPS = ['leaf', 'recursion'];

function isStep({ kind, name }) {
  switch (kind) {
    case 'hide': case 'callees': case 'callers': return orders.given.names.includes(name);
    case 'library': return name !== undefined;
    case 'side': return name === 'before' || name === 'after';
    case 'window': case 'against': return name !== undefined && timeline.windowOf(name) !== null;
    default: return name === undefined && PLAIN_STEPS.includes(kind);
  }
}

function stepsOf(text) {
  return text.split(';', MOST_STEPS).map((part) => {
    const colon = part.indexOf(':');
    return colon < 0 ? { kind: part } : { kind: part.slice(0, colon), name: part.slice(colon + 1) };
  }).filter(isStep).map((step) => step.kind === 'window' || step.kind === 'against' ?
    { kind: step.kind, name: timeline.nameOf(timeline.windowOf(step.name)) } : step);
}

function loadAddress() {
  const hash = location.hash.slice(1);
  const state = new URLSearchParams(hash !== '' ? hash : location.search);
  changeView(() => {
    view.inverted = isGivenInverted !== (state.get('i') === '1');
    view.heavy = false;
    setSteps(stepsOf(state.get('v') || ''));
    const zoomed = state.get('p') ? nodeOfPath(state.get('p')) :
      state.get('x') && state.get('y') ? nodeAtCorner(Number(state.get('x')), Number(state.get('y'))) : 0;
    setOrder(state.get('h') === '1');
    zoomToCounted(zoomed);
  }, false);
  searching.ignoresCase = state.get('c') === '1';
  search(state.get('s') || '');
}
