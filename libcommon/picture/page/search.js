// Search by regular expressions, which are tried on each name once.  ";" separates terms, because no name of
// folded text has one; each term has a colour.
// SPDX-License-Identifier: MIT

const searching = { pattern: '', ignoresCase: false, problem: '', names: null, terms: [], found: null, at: -1, generation: 0 };

const BUDGET = 400;  // milliseconds for all names
const STEP_LIMIT = 30;  // milliseconds for one part of a name

// The root and gaps are not functions, so they never match.  Returns the number of the term, or 0.
function matchOf(node) {
  return searching.names !== null && node !== 0 ? searching.names[view.tree.name[node]] : 0;
}

// Sums the counts under `top` that have a match of `term` (0: of any) on their stack; each counts once.
function matchedCount(top, term) {
  const { name, total, end, parent } = view.tree;
  const isHit = (node) => term === 0 ? searching.names[name[node]] > 0 : searching.names[name[node]] === term;
  for (let node = top; node !== 0; node = parent[node])
    if (isHit(node))
      return total[top];
  let sum = 0;
  for (let node = top === 0 ? 1 : top; node < end[top];) {
    const hit = isHit(node);
    sum += hit ? total[node] : 0;
    node = hit ? end[node] : node + 1;
  }
  return sum;
}

function matchedText() {
  const { tree, zoomed } = view;
  if (searching.names === null)
    return searching.problem;
  const share = (term) => percent(matchedCount(0, term), wholeOf(tree));
  let text = 'Matched: ' + (searching.terms.length === 1 ? share(0) :
    searching.terms.map((term, i) => term + ' ' + share(i + 1)).join(', ') + '; together ' + share(0));
  if (zoomed !== 0)
    text += ' (of this view: ' + percent(matchedCount(zoomed, 0), tree.total[zoomed]) + ')';
  if (searching.found !== null && searching.at >= 0 && searching.generation === view.generation)
    text += ', ' + grouped(searching.at + 1) + ' of ' + grouped(searching.found.length);
  return text + (searching.ignoresCase ? ', ignoring case' : '');
}

function showMatched() {
  const text = matchedText();
  if (parts.matched.textContent !== text)
    parts.matched.textContent = text;
  parts.matched.classList.toggle('bad', searching.problem !== '');
}

// A pattern with several repetitions may need time that grows with a power of the name's length, and no
// browser can stop it.  So such a pattern is tried on growing parts of a name.
function isCostly(pattern) {
  return pattern.replace(/\\./g, '').split(/[*+{]/).length > 2;
}

// Returns whether the expression stayed quick on parts of the name.
function isQuickOn(expression, name) {
  for (let length = 12; length < name.length; length += Math.max(1, length >> 5)) {
    const start = performance.now();
    expression.test(name.slice(0, length));
    if (performance.now() - start > STEP_LIMIT)
      return false;
  }
  return true;
}

// Returns the hits: one byte for each name, the term's number or 0.
function hitsOf(expressions) {
  const { names } = view.tree;
  const hits = new Uint8Array(names.length);
  const start = performance.now();
  expressions.forEach((expression, i) => {
    const careful = isCostly(expression.source);
    for (let name = 1; name < names.length; ++name) {
      if (careful && !isQuickOn(expression, names[name]) || careful && performance.now() - start > BUDGET)
        throw new RangeError('too slow');
      if (hits[name] === 0 && expression.test(names[name]))
        hits[name] = i + 1;
    }
  });
  return hits;
}

function search(pattern) {
  Object.assign(searching, { pattern, problem: '', names: null, found: null, at: -1 });
  searching.terms = pattern.split(';').map((term) => term.trim()).filter((term) => term !== '').slice(0, 200);
  if (searching.terms.length > 0) {
    try {
      searching.names = hitsOf(searching.terms.map((term) => new RegExp(term, searching.ignoresCase ? 'i' : '')));
    } catch (error) {
      searching.problem = (error instanceof RangeError ? 'Too slow, simplify it: ' : 'Bad regular expression: ') + pattern;
    }
  }
  tools.showSearch();
  showMatched();
  drawRows(inSight());
  side.show();
}

// Leads to the next (1) or previous (-1) match.  Of nested matches it visits the outermost.
function goToMatch(step) {
  const { tree } = view;
  if (searching.names === null)
    return;
  if (searching.found === null || searching.generation !== view.generation) {
    Object.assign(searching, { found: [], at: -1, generation: view.generation });
    for (let node = 1; node < tree.size;) {
      const isHit = matchOf(node) > 0 && tree.total[node] > 0;
      if (isHit)
        searching.found.push(node);
      node = isHit ? tree.end[node] : node + 1;
    }
  }
  const { found } = searching;
  if (found.length === 0)
    return;
  searching.at = searching.at < 0 && step < 0 ? found.length - 1 : (searching.at + step + found.length) % found.length;
  const node = found[searching.at];
  const isInView = node >= view.zoomed && node < tree.end[view.zoomed];
  if (!isInView || widthOfNode(node) < APART || tree.depth[node] > view.lastDepth)
    zoom(visiblePlace(node));
  cursor.moveTo(node);
  showMatched();
}

// Returns the outermost caller that shows this node at least three pixels wide.
function visiblePlace(node) {
  const { tree } = view;
  let place = node;
  while (place !== 0 && tree.total[tree.parent[place]] * APART < tree.total[node] * view.usable &&
      tree.depth[node] - tree.depth[place] < MIN_ROWS - 2)
    place = tree.parent[place];
  return place;
}
