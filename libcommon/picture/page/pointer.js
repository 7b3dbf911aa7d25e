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
  return widthOfNode(node) < minWidth ? -1 : node;
}

// Also tries positions beside the point: a pixel may be painted although no frame covers its middle.
function nodeNear(event) {
  if (event.target.closest('#bar, #head > rect, .button, foreignObject'))
    return -1;
  const { x, y } = pointOf(event);
  for (const aside of [0, -0.5, 0.5, -1, 1]) {
    const node = nodeAt(x + aside, y);
    if (node >= 0)
      return node;
  }
  return -1;
}

function showDetails(node) {
  const text = node < 0 ? hint : (given.nametype + ' ' + describe(node)).trim();
  if (details.textContent !== text)
    details.textContent = text;
  details.classList.toggle('hint', node < 0);
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
  tip.textContent = node < 0 ? '' : describe(node);
  showDetails(node);
}

function listenToPointer() {
  if (view.tree.titles === null)
    layer.prepend(tip);
  page.addEventListener('mousemove', (event) => point(nodeNear(event)));
  page.addEventListener('mouseleave', () => point(-1));
  page.addEventListener('click', (event) => {
    const node = nodeNear(event);
    if (node < 0 || event.defaultPrevented || event.target.closest('a'))
      return;
    cursor.node = node;
    zoom(node);
    point(nodeNear(event));
  });
}
