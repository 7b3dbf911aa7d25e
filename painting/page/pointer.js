// Handles the mouse.  It finds the frame under the mouse by coordinates, so that frames too narrow for an
// element of their own also respond.
// SPDX-License-Identifier: MIT

const pointed = { node: -1 };
const tip = svgElement('title');

// Returns the node at this position of the page, or -1.  Callers of the zoomed node fill their whole row.
function nodeAt(x, y) {
  const { tree, zoomed } = view;
  const depth = depthAt(y);
  if (x < margin || x >= margin + view.usable || depth < 0)
    return -1;
  let node = zoomed;
  if (depth <= tree.depth[zoomed]) {
    while (tree.depth[node] > depth)
      node = tree.parent[node];
    return node;
  }
  const count = tree.start[zoomed] + (x - margin) / scale();
  while (tree.depth[node] < depth) {
    let child = node + 1;
    while (child < tree.end[node] && tree.start[child] + tree.total[child] <= count)
      child = tree.end[child];
    if (child >= tree.end[node] || tree.start[child] > count)
      return -1;
    node = child;
  }
  return widthOfNode(node) < minWidth || depth > view.lastDepth ? -1 : node;
}

// Also tries positions beside the point: a pixel may be painted although no frame covers its middle.
function nodeNear(event) {
  const { x, y } = pointOf(event);
  for (const aside of [0, -0.5, 0.5, -1, 1]) {
    const node = nodeAt(x + aside, y);
    if (node >= 0)
      return node;
  }
  return -1;
}

// Every box is a function, unless the file says something else.
const nameType = given.nametype === 'Function:' ? '' : given.nametype + ' ';
const MOST_NAME = 240;  // characters of a name in the details

function hintText() {
  const { leftOut, smallest } = view.tree;
  return timeMap.selectionText() + fixedTexts.details + (view.rowsLeftOut === 0 ? '' :
    ' ' + grouped(view.rowsLeftOut) + ' deeper rows are narrow in this view: zoom to see them.') + (leftOut === 0 ? '' :
    ' Grey gaps are ' + grouped(leftOut) + ' frames with fewer than ' + countText(smallest) + ', not in this file.');
}

function showDetails(node) {
  const { details } = parts;
  const text = node < 0 ? hintText() : (view.tree.titles !== null ? describe(node) :
    countsOf(node) + ' \u2014 ' + nameType + shortened(titleOf(node), MOST_NAME)) +
    (rowsBeyond(node) > 0 ? ' (click to see ' + grouped(rowsBeyond(node)) + ' more rows)' : '');
  if (details.textContent !== text)
    details.textContent = text;
  details.classList.toggle('hint', node < 0);
}

// Outlines all visible frames of the function under the mouse, or of the selected one.
function drawSelected() {
  const { tree } = view;
  const name = pointed.node > 0 ? tree.name[pointed.node] : view.selected;
  let outlines = '';
  if (name !== 0)
    for (const { shows } of drawn)
      if (shows.name === name && shows.class !== 'hidden')
        outlines += 'M' + shows.x + ' ' + shows.y + 'h' + shows.width + 'v' + (rowHeight - 1) + 'h-' + shows.width + 'z';
  if (sameMarks.getAttribute('d') !== outlines)
    sameMarks.setAttribute('d', outlines);
}

function select(name) {
  view.selected = view.selected === name ? 0 : name;
  drawSelected();
  side.mark();
}

function placeMark(mark, node) {
  const width = Math.max(1, tenth(widthOfNode(node)));
  mark.setAttribute('x', tenth(leftOf(node)));
  mark.setAttribute('y', rowTop(view.tree.depth[node]));
  mark.setAttribute('width', width);
  mark.setAttribute('height', rowHeight - 1);
}

function point(node) {
  if (node === pointed.node)
    return;
  pointed.node = node;
  if (node >= 0)
    placeMark(hoverMark, node);
  hoverMark.classList.toggle('hidden', node < 0);
  layer.classList.toggle('pointing', node >= 0);
  tip.textContent = node < 0 ? '' : shortened(describe(node), 2000);
  showDetails(node);
  drawSelected();
}

// The first tap on a frame selects it, the second zooms: a finger cannot hover.
function onClick(event) {
  const node = nodeNear(event);
  if (node < 0 || event.defaultPrevented || event.target.closest('a'))
    return;
  const isTap = event.pointerType === 'touch';
  if (isTap && cursor.node !== node) {
    cursor.node = node;
    point(node);
    return;
  }
  cursor.node = node;
  zoom(node);
  if (!isTap)
    point(nodeNear(event));
}

function listenToPointer() {
  if (view.tree.titles === null)
    layer.prepend(tip);
  canvas.addEventListener('mousemove', (event) => point(nodeNear(event)));
  canvas.addEventListener('mouseleave', () => point(-1));
  canvas.addEventListener('click', onClick);
  canvas.addEventListener('contextmenu', (event) => {
    const node = nodeNear(event);
    if (node <= 0 || event.shiftKey || view.tree.isGap(node))
      return;
    event.preventDefault();
    cursor.node = node;
    tools.openMenu(event.clientX, event.clientY, node);
  });
}
