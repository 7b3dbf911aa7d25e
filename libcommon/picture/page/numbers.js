// Formats counts and shares.  They are rounded like the file's own titles: a tie goes to the even neighbour.
// SPDX-License-Identifier: MIT

function roundHalfEven(value) {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

// Does not use toLocaleString(), which takes 40 microseconds; each visible frame has a number.
function grouped(value) {
  const digits = roundHalfEven(value).toFixed(0);
  let text = digits.slice(-3);
  for (let end = digits.length - 3; end > 0; end -= 3)
    text = digits.slice(Math.max(0, end - 3), end) + ',' + text;
  return text;
}

// Formats with two decimals.  Only multiples of 1/8 can be exact ties; toFixed() rounds all other values
// correctly.
function twoDecimals(value) {
  const isTie = Number.isInteger(value * 8) && Number.isInteger(value * 200) && value * 200 % 2 !== 0;
  return isTie ? (roundHalfEven(value * 100) / 100).toFixed(2) : value.toFixed(2);
}

function percent(part, whole) {
  return twoDecimals(whole > 0 ? 100 * part / whole : 0) + '%';
}

function countText(count) {
  return grouped(count / view.tree.perOne * factor) + ' ' + given.countname;
}

function deltaText(tree, node) {
  const delta = tree.delta === null ? NaN : tree.delta[node];
  if (Number.isNaN(delta))
    return '';
  return '; ' + (delta > 0 ? '+' : '') + twoDecimals(100 * delta / (tree.total[0] / tree.perOne)) + '%';
}

// "name (1,234 samples, 12.34%)"
function describe(node) {
  const tree = view.tree;
  if (tree.titles !== null)
    return tree.titles[node];
  if (tree.compared !== null && !tree.isGap(node))
    return tree.nameOf(node) + ' (' + comparedText(tree, node) + ')';
  if (node === 0)
    return 'all (' + countText(tree.total[0]) + ', 100%' + deltaText(tree, 0) + ')';
  const name = tree.isGap(node) ?
    'frames counted fewer than ' + countText(tree.smallest) + ', not in this file' : tree.nameOf(node);
  return name + ' (' + countText(tree.total[node]) + ', ' + percent(tree.total[node], tree.total[0]) +
    deltaText(tree, node) + ')';
}
