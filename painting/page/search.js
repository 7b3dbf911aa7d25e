// Search by regular expressions (expression.js), which are tried on each name once.  ";" separates terms, because no name of
// folded text has one; each term has a colour.  The name of a function is searched as plain text, and so is a term that is no
// expression, such as "operator[]": the rule of stacktop.
// SPDX-License-Identifier: MIT

const searching = { pattern: '', ignoresCase: false, problem: '', names: null, terms: [], plain: [], found: null, at: -1, generation: 0 };

const MOST_TERMS = 200;
const MOST_TERM = 1000;  // characters

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
  if (searching.plain.length > 0)
    text += ', as plain text' + (searching.terms.length === 1 ? '' : ': ' + searching.plain.join(', '));
  return text + (searching.ignoresCase ? ', ignoring case' : '');
}

function showMatched() {
  const text = matchedText();
  if (parts.matched.textContent !== text)
    parts.matched.textContent = text;
  parts.matched.classList.toggle('bad', searching.problem !== '');
}

// Is this the name of a function, with or without its mark "_[k]"?
const isNameOf = (term, name) => name.startsWith(term) &&
  (name.length === term.length || name.length === term.length + 4 && name.startsWith('_[', term.length) && name.endsWith(']'));

// Returns what finds a term.  Notes a term that is plain text although it does not look like it.
function finderOf(term, budget) {
  const isWord = /^[\w:~<>=!@#%&,'"`/ -]*$/.test(term);
  if (isWord || view.tree.names.some((name) => isNameOf(term, name)))
    return plainText(term, searching.ignoresCase, budget);
  try {
    return new Expression(term, searching.ignoresCase, budget);
  } catch (error) {
    if (!(error instanceof SyntaxError))
      throw error;
    searching.plain.push(term);
    return plainText(term, searching.ignoresCase, budget);
  }
}

// Returns the hits: one byte for each name, the term's number or 0.  Throws RangeError if that takes too many steps.
function hitsOf(terms) {
  const { names } = view.tree;
  const hits = new Uint8Array(names.length);
  const budget = { left: STEPS };
  terms.forEach((term, i) => {
    const finder = finderOf(term, budget);
    for (let name = 1; name < names.length; ++name) {
      if (hits[name] === 0 && finder.test(names[name]))
        hits[name] = i + 1;
    }
  });
  return hits;
}

function search(pattern) {
  Object.assign(searching, { pattern, problem: '', names: null, plain: [], found: null, at: -1 });
  searching.terms = pattern.split(';', MOST_TERMS).map((term) => term.trim()).filter((term) => term !== '');
  if (searching.terms.some((term) => term.length > MOST_TERM)) {
    searching.problem = 'Too long to search';
  } else if (searching.terms.length > 0) {
    try {
      searching.names = hitsOf(searching.terms);
    } catch (error) {
      if (!(error instanceof RangeError))
        throw error;
      searching.problem = 'Too slow, simplify it: ' + pattern;
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
