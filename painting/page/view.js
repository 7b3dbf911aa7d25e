// The geometry: rows, columns, the size of the page, and the part of the graph in sight.
// SPDX-License-Identifier: MIT

// The least height of a page, in pixels: room for the tools' menus.
const LEAST_HEIGHT = 320;

function canvasHeight() {
  return view.levels * rowHeight + 1;
}

function canvasWidth() {
  return view.usable + 2 * margin;
}

// Returns the upper edge of a row, in the current view or in another `shape`: { inverted, levels }.
function rowTop(depth, shape = view) {
  return (shape.inverted ? depth : shape.levels - 1 - depth) * rowHeight + 1;
}

function depthAt(y) {
  const row = Math.floor((y - 1) / rowHeight);
  return view.inverted ? row : view.levels - 1 - row;
}

function scale() {
  const count = view.tree.total[view.zoomed];
  return count > 0 ? view.usable / count : 0;
}

// Returns whether `node` is the zoomed one or one of its callers.  These have the whole width.
function isOnPath(node) {
  return node <= view.zoomed && view.zoomed < view.tree.end[node];
}

function leftOf(node) {
  return isOnPath(node) ? margin : margin + (view.tree.start[node] - view.tree.start[view.zoomed]) * scale();
}

function widthOfNode(node) {
  return isOnPath(node) ? view.usable : view.tree.total[node] * scale();
}

// Returns the part of the graph that its window shows, in the canvas's own pixels.
function inSight() {
  return { top: scroller.scrollTop, bottom: scroller.scrollTop + scroller.clientHeight };
}

// Returns the position of a mouse event on the canvas.
function pointOf(event) {
  const shown = canvas.getBoundingClientRect();
  const ratio = shown.width > 0 ? canvasWidth() / shown.width : 1;
  return { x: (event.clientX - shown.left) * ratio, y: (event.clientY - shown.top) * ratio };
}

// Browsers lay out a document without a viewport on telephones some 980 pixels wide, and shrink it.  Returns
// by how much the page must grow so that its text has the size that the reader expects.
function shrinking() {
  const isTelephone = page === document.documentElement && window.matchMedia('(pointer: coarse)').matches;
  return isTelephone && screen.width > 0 ? Math.max(1, window.innerWidth / screen.width) : 1;
}

// Returns the height of everything but the graph.
function frameHeight() {
  return app.offsetHeight - scroller.offsetHeight;
}

// Returns the pixels that the graph has without scrolling.
function roomForRows() {
  return isAlone ? window.innerHeight / shrinking() - frameHeight() : scroller.clientHeight;
}

function applySize() {
  canvas.setAttribute('width', canvasWidth());
  canvas.setAttribute('height', canvasHeight());
  if (!isAlone)
    return;
  const growth = shrinking();
  const room = window.innerHeight / growth;
  const height = side.shows !== '' ? room : Math.min(room, Math.max(LEAST_HEIGHT, frameHeight() + canvasHeight() + 1));
  page.setAttribute('height', height * growth);
  holder.setAttribute('height', height);
  holder.setAttribute('width', growth === 1 ? '100%' : window.innerWidth / growth);
  holder.setAttribute('transform', growth === 1 ? '' : 'scale(' + growth + ')');
}

const NARROW = 600;  // pixels: below this width, the menu alone has the rarer tools

// Uses the width of the window, if the page has "autowidth".
function fitWindow() {
  app.classList.toggle('narrow', app.offsetWidth < NARROW);
  if ('autowidth' in given)
    view.usable = Math.max(100, Math.floor(scroller.clientWidth) - 2 * margin);
}
