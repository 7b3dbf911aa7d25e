// The address holds the state of the page.  x and y are the corner of the zoomed frame in the original
// layout; s is the search, and c=1 makes it ignore case.  i=1 turns the graph upside down, h=1 puts the
// heaviest callees on the left.
// The script writes them behind "#" and also reads them behind "?".  It ignores what does not fit this page.
// SPDX-License-Identifier: MIT

const NEAR = 0.06;  // pixels: older addresses have one decimal

// Keeps enough decimals to distinguish each count from the next.
function cornerOf(node) {
  const tree = orders.byName;
  const width = givenWidth / tree.total[0];
  const decimals = Math.min(15, Math.max(1, 1 + Math.ceil(-Math.log10(width))));
  return {
    x: Number((margin + tree.start[node] * width).toFixed(decimals)),
    y: isGivenInverted ? firstRow + tree.depth[node] * rowHeight :
      topMargin + (givenLevels - 1 - tree.depth[node]) * rowHeight + 1,
  };
}

// Returns the frame of that row whose corner is exactly there; else the widest frame near it; else 0, the
// root.
function nodeAtCorner(x, y) {
  const tree = orders.byName;
  const depth = isGivenInverted ? Math.round((y - firstRow) / rowHeight) :
    givenLevels - 1 - Math.round((y - topMargin - 1) / rowHeight);
  const width = givenWidth / tree.total[0];
  let found = 0;
  for (let node = 0; node < tree.size; ++node) {
    if (tree.depth[node] !== depth || !(Math.abs(margin + tree.start[node] * width - x) < NEAR))
      continue;
    if (cornerOf(node).x === x)
      return node;
    if (found === 0 || tree.total[node] > tree.total[found])
      found = node;
  }
  return found;
}

function saveAddress() {
  const state = new URLSearchParams();
  if (view.zoomed !== 0) {
    const corner = cornerOf(originalIndex(view.zoomed));
    state.set('x', corner.x);
    state.set('y', corner.y);
  }
  if (searching.pattern !== '')
    state.set('s', searching.pattern);
  if (searching.ignoresCase)
    state.set('c', 1);
  if (view.inverted !== isGivenInverted)
    state.set('i', 1);
  if (view.heavy)
    state.set('h', 1);
  try {
    history.replaceState(null, '', '#' + state);
  } catch (error) {
    // A page embedded in another may have no address of its own.
  }
}

function loadAddress() {
  const hash = location.hash.slice(1);
  const state = new URLSearchParams(hash !== '' ? hash : location.search);
  const zoomed = state.get('x') && state.get('y') ? nodeAtCorner(Number(state.get('x')), Number(state.get('y'))) : 0;
  changeView(() => {
    view.inverted = isGivenInverted !== (state.get('i') === '1');
    setOrder(state.get('h') === '1');
    view.zoomed = currentIndex(zoomed);
  });
  searching.ignoresCase = state.get('c') === '1';
  search(state.get('s') || '');
}
