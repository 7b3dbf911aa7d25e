// The geometry: rows, columns, the size of the page, and its visible part.
// SPDX-License-Identifier: MIT

function pageHeight() {
  return topMargin + view.levels * rowHeight + bottomMargin;
}

function pageWidth() {
  return view.usable + 2 * margin;
}

// Returns the upper edge of a row, in the current view or in another `shape`: { inverted, levels }.
function rowTop(depth, shape = view) {
  return shape.inverted ? firstRow + depth * rowHeight : topMargin + (shape.levels - 1 - depth) * rowHeight + 1;
}

function depthAt(y) {
  return view.inverted ? Math.floor((y - firstRow) / rowHeight) :
    view.levels - 1 - Math.floor((y - topMargin - 1) / rowHeight);
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

function windowHeight() {
  return (window.visualViewport || { height: window.innerHeight }).height;
}

// Returns the part of the page that the window shows, in the page's own pixels.
function inSight() {
  const shown = page.getBoundingClientRect();
  const zoom = shown.width > 0 ? pageWidth() / shown.width : 1;
  return { left: shown.left, zoom, top: -shown.top * zoom, bottom: (windowHeight() - shown.top) * zoom };
}

// Returns the position of a mouse event on the page.
function pointOf(event) {
  const sight = inSight();
  return { x: (event.clientX - sight.left) * sight.zoom, y: event.clientY * sight.zoom + sight.top };
}

function applySize() {
  const box = '0 0 ' + pageWidth() + ' ' + pageHeight();
  if (page.getAttribute('viewBox') === box)
    return;
  page.setAttribute('viewBox', box);
  page.setAttribute('height', pageHeight());
}

// Keeps head and bar in view, however high the graph is.
function followView(sight) {
  const height = pageHeight();
  const up = Math.min(Math.max(0, height - sight.bottom), height - 4 * fontSize);
  bar.setAttribute('transform', 'translate(0 ' + (height - givenHeight - up) + ')');
  const down = Math.min(Math.max(0, sight.top), height - up - bottomMargin - 3 * fontSize);
  head.setAttribute('transform', 'translate(0 ' + Math.max(0, down) + ')');
  head.firstElementChild.classList.toggle('hidden', down <= 0);
}

// Returns the part that will be visible after the window has been scrolled by `moved`.  To measure it would
// make the browser lay out the page twice.
function sightAfter(sight, moved) {
  const height = sight.bottom - sight.top;
  const top = Math.max(Math.min(0, sight.top), Math.min(sight.top + moved, pageHeight() - height));
  return { ...sight, top, bottom: top + height };
}

// Uses the width of the window, if the page has "autowidth".
function fitWindow() {
  if ('autowidth' in given)
    view.usable = Math.max(100, Math.floor(page.getBoundingClientRect().width) - 2 * margin);
  byId('title').classList.remove('hidden');
  const half = byId('title').getComputedTextLength() / 2;
  const letter = widthOf('n');
  const middle = pageWidth() / 2;
  const isCrowded = middle + half > pageWidth() - margin - 38 * letter || middle - half < margin + 12 * letter;
  byId('title').classList.toggle('hidden', isCrowded);
}
