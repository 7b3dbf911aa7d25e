// Search by a regular expression, which is tried on each name once.
// SPDX-License-Identifier: MIT

const searching = { pattern: '', ignoresCase: false, problem: '', names: null };

// The root and gaps are not functions, so they never match.
function isMatch(node) {
  return searching.names !== null && node !== 0 && searching.names[view.tree.name[node]] === 1;
}

// Sums the counts under `top` that have a match on their stack; each counts once.
function matchedCount(top) {
  const { name, total, end, parent } = view.tree;
  const hits = searching.names;
  for (let node = top; node !== 0; node = parent[node])
    if (hits[name[node]] === 1)
      return total[top];
  let sum = 0;
  for (let node = top === 0 ? 1 : top; node < end[top];) {
    const isHit = hits[name[node]] === 1;
    sum += isHit ? total[node] : 0;
    node = isHit ? end[node] : node + 1;
  }
  return sum;
}

function showMatched() {
  const { tree, zoomed } = view;
  let text = searching.problem;
  if (searching.names !== null) {
    text = 'Matched: ' + percent(matchedCount(0), tree.total[0]);
    if (zoomed !== 0)
      text += ' (of this view: ' + percent(matchedCount(zoomed), tree.total[zoomed]) + ')';
    if (searching.ignoresCase)
      text += ', ignoring case';
  }
  if (matched.textContent !== text)
    matched.textContent = text;
  matched.classList.toggle('bad', searching.problem !== '');
}

function search(pattern) {
  searching.pattern = pattern;
  searching.problem = '';
  searching.names = null;
  if (pattern !== '') {
    try {
      const expression = new RegExp(pattern, searching.ignoresCase ? 'i' : '');
      searching.names = Uint8Array.from(view.tree.names, (name, i) => i > 0 && expression.test(name) ? 1 : 0);
    } catch (error) {
      searching.problem = 'Bad regular expression: ' + pattern;
    }
  }
  byId('search').textContent = pattern === '' ? 'Search' : 'Reset Search';
  showMatched();
  drawRows(inSight());
}
