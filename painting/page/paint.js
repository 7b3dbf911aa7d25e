// Draws the visible frames.  Frames that are wide enough are elements, which the script reuses.  Narrower
// frames become a few paths of runs, each of which fills a pixel.
//
// Cost: collect() visits each node that is wide enough, and its children.  drawRows() makes elements for the
// visible rows only.
// SPDX-License-Identifier: MIT

// In pixels; narrower frames become part of a run.  They have no room for a label, and an element costs the
// browser some 20 microseconds of style and layout.  A part of a path costs a tenth of that.
const OWN_ELEMENT = Math.min(14, 2 * inset + fontSize);
const APART = 3;  // pixels: frames of this width are drawn with a seam between them
const SEAM_WIDTH = 4;  // tenths of pixels
const FILLED = 1;  // pixels that a run must fill
const SEAM = 0.05;  // pixels: an invisible space between neighbours
const MIN_ROWS = 8;
const ROOM_FOR_SHARE = 90;  // pixels
const LABEL_SHIFT = 0.36;  // font sizes, from a frame's middle to its label's base line

// The nodes to draw, as collect() found them.
const shown = { nodes: new Uint32Array(0), count: 0, first: 0, last: -1 };
const pool = [];
const paths = new Map();
const hoverMark = svgElement('rect', { id: 'hover', class: 'hidden', fill: 'none' });
const sameMarks = svgElement('path', { id: 'same', fill: 'none' });

// The least width, as a share of the view, of rows that are drawn although the window has no room for them.
const WIDE_ROW = 0.05;

// Finds the nodes that are wide enough in this view, and the number of rows that they need.  Rows that do not
// fit the window are drawn as far as they are wide; what is beyond becomes frames "+12 deeper".
function collect() {
  const { tree, zoomed } = view;
  const { total, depth, end } = tree;
  if (shown.nodes.length < tree.size)
    shown.nodes = new Uint32Array(tree.size);
  let count = 0;
  for (let node = zoomed; node !== 0; node = tree.parent[node])
    shown.nodes[count++] = tree.parent[node];
  const smallest = minWidth / scale();
  const seen = OWN_ELEMENT / scale();
  const rows = [];  // counts of each row's visible frames
  let deepest = 0;
  for (let node = zoomed; node < end[zoomed];) {
    if (total[node] < smallest && node !== zoomed) {  // an empty time still has its root
      node = end[node];
      continue;
    }
    shown.nodes[count++] = node;
    const at = depth[node];
    if (at > deepest)
      deepest = at;
    if (total[node] >= seen)
      rows[at] = (rows[at] || 0) + total[node];
    ++node;
  }
  shown.count = count;
  const fitting = Math.max(MIN_ROWS, Math.floor(roomForRows() / rowHeight));
  view.lastDepth = deepest;
  while (view.lastDepth > Math.max(fitting, depth[zoomed] + 1) && !(rows[view.lastDepth] >= WIDE_ROW * total[zoomed]))
    --view.lastDepth;
  view.levels = view.lastDepth + 1;
  view.rowsLeftOut = deepest - view.lastDepth;
}

// Returns how many rows beyond this frame the view leaves out, its own included; 0: none.
function rowsBeyond(node) {
  const { tree } = view;
  if (tree.depth[node] < view.lastDepth || node <= view.zoomed && isOnPath(node))
    return 0;
  const rows = tree.rowsBelow()[node];
  return rows > 0 ? rows + 1 : 0;
}

// Describes an element of the pool, or the node's own element, and what it shows at present.
function newEntry(group) {
  const entry = { group, rect: group.querySelector('rect'), text: group.querySelector('text'), shows: {}, own: '' };
  for (const name of group.classList)  // classes that the user set
    entry.own += name === 'dark' ? '' : name + ' ';
  if (entry.rect === null) {
    entry.rect = svgElement('rect');
    group.append(entry.rect);
  }
  group.setAttribute('role', 'treeitem');
  entry.text?.setAttribute('aria-hidden', 'true');  // it may be cut; the group's label is whole
  return entry;
}

function entryFor(node, index) {
  const { groups } = view.tree;
  if (groups !== null) {
    if (!groups[node].entry)
      groups[node].entry = newEntry(groups[node]);
    return groups[node].entry;
  }
  if (index === pool.length) {
    const group = svgElement('g');
    layer.insertBefore(group, hoverMark);
    pool.push(newEntry(group));
  }
  return pool[index];
}

// Sets only what differs from what the element shows already, because attributes are most of a redraw's cost.
function show(entry, key, value, apply) {
  if (entry.shows[key] !== value) {
    entry.shows[key] = value;
    apply(value);
  }
}

// Rounds like printf's "%.1f", which rounds the exact binary value.  This differs from Math.round() only near
// a tie; an exact tie goes to the even neighbour.
function tenth(pixels) {
  const off = Math.abs(pixels * 10 % 1);
  if (Math.abs(off - 0.5) > 1e-6)
    return Math.round(pixels * 10) / 10;
  return Number.isInteger(pixels * 4) ? roundHalfEven(pixels * 10) / 10 : Number(pixels.toFixed(1));
}

// A label has the name and, if there is room, the share.
function labelOf(node, beyond, room) {
  if (view.tree.isGap(node))
    return { name: '', share: '' };
  if (beyond > 0)
    return { name: ['+' + grouped(beyond) + ' deeper', '+' + grouped(beyond)].find((text) => textWidth(text) <= room) || '', share: '' };
  const name = shownName(node);
  const label = fitted(name, room);
  if (label !== name || room < ROOM_FOR_SHARE || view.tree.compared !== null)
    return { name: label, share: '' };
  const share = ' ' + shareText(view.tree.total[node]);
  return { name, share: textWidth(name + share) <= room ? share : '' };
}

function drawLabel(entry, node, beyond, fill, x, y, width) {
  const { name, share } = labelOf(node, beyond, width - 2 * inset);
  if (name === '' && entry.text === null)
    return;
  if (entry.text === null) {
    entry.text = svgElement('text', { 'aria-hidden': 'true' });
    entry.group.append(entry.text);
  }
  show(entry, 'label', name + '\n' + share + fill.allowsDimmed, () => {
    // Direction marks of a name must not turn around what follows it (Unicode Annex 9).
    entry.text.textContent = /[\u202a-\u202e\u2066-\u2069]/.test(name) ? '\u2068' + name.replace(/[\u2066-\u2069]/g, '') + '\u2069' : name;
    if (share !== '') {
      const dimmed = svgElement('tspan', fill.allowsDimmed ? { class: 'share' } : {});
      dimmed.textContent = share;
      entry.text.append(dimmed);
    }
  });
  if (name === '')
    return;
  show(entry, 'labelX', x + inset, (value) => entry.text.setAttribute('x', value));
  show(entry, 'labelY', y + (rowHeight - 1) / 2 + fontSize * LABEL_SHIFT,
    (value) => entry.text.setAttribute('y', tenth(value)));
}

function classOf(node, isDark, beyond) {
  return (isDark ? 'dark ' : '') + (view.tree.isGap(node) ? 'gap ' : '') + (matchOf(node) > 0 ? 'match ' : '') +
    (beyond > 0 ? 'deeper ' : '') + (view.tree.isTailCall(node) ? 'tail ' : '') + comparedClass(view.tree, node) +
    (node < view.zoomed && isOnPath(node) ? 'above' : '');
}

function drawFrame(entry, node, left, width) {
  const { rect, group } = entry;
  const x = tenth(left);
  const y = rowTop(view.tree.depth[node]);
  const beyond = rowsBeyond(node);
  const fill = fillOf(paintOf(view.tree, node));
  show(entry, 'class', (entry.own + classOf(node, fill.isDark, beyond)).trim(), (value) => group.setAttribute('class', value));
  show(entry, 'x', x, (value) => rect.setAttribute('x', value));
  show(entry, 'width', Math.max(0, tenth(tenth(left + width) - x)), (value) => rect.setAttribute('width', value));
  show(entry, 'y', y, (value) => rect.setAttribute('y', value));
  show(entry, 'height', rowHeight - 1, (value) => rect.setAttribute('height', value));
  show(entry, 'fill', fill.text, (value) => rect.setAttribute('fill', value));
  entry.shows.name = view.tree.name[node];
  show(entry, 'node', view.generation + ' ' + node, () => {
    group.setAttribute('aria-label', describe(node));
    group.setAttribute('aria-level', view.tree.depth[node] + 1);
  });
  drawLabel(entry, node, beyond, fill, x, y, width);
}

// Collects runs: for each row the run that is being filled, for each colour the path of the finished runs.

class Runs {
  constructor() {
    this.open = [];
    this.paths = new Map();
    this.down = 'v' + Math.round((rowHeight - 1) * 10) + 'h-';
  }

  add(node, left, width) {
    const depth = view.tree.depth[node];
    let run = this.open[depth];
    if (!run || left - run.right > SEAM || run.right - run.left >= FILLED) {
      if (run)
        this.close(depth, run);
      run = { left, right: left, widest: 0, node, isMatch: false };
      this.open[depth] = run;
    }
    run.right = left + width;
    const matches = matchOf(node) > 0;
    // A match must not disappear among wider neighbours.
    if (matches && !run.isMatch || matches === run.isMatch && width > run.widest) {
      run.widest = width;
      run.node = node;
      run.isMatch = matches;
    }
  }

  // Works in tenths of pixels, because converting whole numbers to text is ten times faster.
  close(depth, run) {
    const x = Math.round(run.left * 10);
    let width = Math.round(run.right * 10) - x;
    if (width <= 0)
      return;
    if (width > APART * 10)
      width -= SEAM_WIDTH;
    const key = this.rounded(paintOf(view.tree, run.node));
    let parts = this.paths.get(key);
    if (parts === undefined)
      this.paths.set(key, parts = []);
    parts.push('M' + x + ' ' + Math.round(rowTop(depth) * 10) + 'h' + width + this.down + width + 'z');
  }

  // Reduces colours to a few dozen, as the file's own runs do.
  rounded(color) {
    return (color & 0xf0f0f0) + 0x080808;
  }

  // Writes the paths into the document.  A path that has nothing to show is kept for later.
  draw() {
    this.open.forEach((run, depth) => this.close(depth, run));
    for (const key of this.paths.keys())
      if (!paths.has(key)) {
        const path = svgElement('path', { transform: 'scale(0.1)' });
        path.setAttribute('fill', fillOf(key).text);
        paths.set(key, path);
        layer.prepend(path);
      }
    paths.forEach((path, key) => path.setAttribute('d', (this.paths.get(key) || []).join('')));
  }
}

// Draws the visible rows, and some more on both sides for scrolling.
function drawRows(sight) {
  const rows = rowsBetween(sight, Math.max(200, (sight.bottom - sight.top) / 2));
  shown.first = rows.first;
  shown.last = rows.last;
  const { tree } = view;
  const used = new Set();
  const runs = new Runs();
  let index = 0;
  for (let at = 0; at < shown.count; ++at) {
    const node = shown.nodes[at];
    if (tree.depth[node] < rows.first || tree.depth[node] > rows.last)
      continue;  // collect() may have found deeper nodes than the view has rows
    const left = leftOf(node);
    const width = widthOfNode(node);
    if (width < OWN_ELEMENT) {
      runs.add(node, left, width);
      continue;
    }
    const entry = entryFor(node, index++);
    drawFrame(entry, node, left, width);
    used.add(entry);
  }
  runs.draw();
  hideOthers(used);
}

let drawn = new Set();  // entries that show a frame

function hideOthers(used) {
  for (const entry of drawn)
    if (!used.has(entry))
      show(entry, 'class', 'hidden', (value) => entry.group.setAttribute('class', value));
  drawn = used;
}

// Returns whether the outermost caller is in sight.
function isAtRoot() {
  return view.inverted ? scroller.scrollTop === 0 : scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1;
}

function scrollToRoot() {
  scroller.scrollTop = view.inverted ? 0 : scroller.scrollHeight;
}

// Scrolls as far as needed to bring a row into sight, with `spare` rows around it.
function showRow(depth, spare) {
  const top = rowTop(Math.min(depth, view.lastDepth));
  const sight = inSight();
  if (top < sight.top + spare * rowHeight)
    scroller.scrollTop = top - spare * rowHeight;
  else if (top + (1 + spare) * rowHeight > sight.bottom)
    scroller.scrollTop += top + (1 + spare) * rowHeight - sight.bottom;
}

// Redraws the whole graph after a change of the view.  The root stays in sight; if it was not, the row of the
// zoomed node keeps its place in the window.
function paint(change) {
  const shape = { inverted: view.inverted, levels: view.levels };
  const scrolled = scroller.scrollTop;
  const wasAtRoot = isAtRoot();
  change();
  collect();
  applySize();
  const depth = view.tree.depth[view.zoomed];
  const moved = rowTop(depth) - rowTop(depth, shape);
  if (wasAtRoot)
    scrollToRoot();
  else if (Math.abs(moved) > 0.5)
    scroller.scrollTop = scrolled + moved;
  if (view.zoomed !== 0)
    showRow(depth, 0);
  drawRows(inSight());
  point(-1);
  showDetails(-1);
  cursor.place();
  drawSelected();
  timeMap.draw();
}

// Returns the depths of the rows between two heights of the page, with `spare` pixels added on both sides.
function rowsBetween(sight, spare) {
  const rows = [depthAt(sight.top - spare), depthAt(sight.bottom + spare)];
  return { first: Math.max(0, Math.min(...rows)), last: Math.min(view.levels - 1, Math.max(...rows)) };
}

// Redraws after scrolling, if rows that were not drawn have become visible.
function paintScrolled() {
  const sight = inSight();
  const rows = rowsBetween(sight, 0);
  if (rows.first < shown.first || rows.last > shown.last)
    drawRows(sight);
}

// Takes control of the graph.  Removes what the file drew, unless the tree was built from it.
function takeOver() {
  for (const child of Array.from(layer.children))
    if (view.tree.groups === null || child.tagName === 'path')
      child.remove();
  if (view.tree.groups !== null)
    for (const group of view.tree.groups) {
      group.entry = newEntry(group);
      drawn.add(group.entry);
    }
  layer.append(sameMarks, hoverMark);
}
