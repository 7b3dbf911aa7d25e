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

// Three digits of a fraction below 10, so that no count looks like nothing.
function fraction(value) {
  const decimals = 2 - Math.floor(Math.log10(value));
  const scaled = value * 10 ** decimals;
  const digits = (scaled % 1 === 0.5 ? roundHalfEven(scaled) / 10 ** decimals : value).toFixed(decimals);
  return digits.replace(/\.?0+$/, '');
}

function countText(count) {
  const value = count / view.tree.perOne * factor;
  const isFraction = value > 0 && value < 10 && !Number.isInteger(value);
  return (isFraction ? fraction(value) : grouped(value)) + ' ' + given.countname;
}

function shareText(count) {
  return percent(count, wholeOf(view.tree));
}

function deltaText(tree, node) {
  const delta = tree.delta === null ? NaN : tree.delta[node];
  if (Number.isNaN(delta))
    return '';
  return '; ' + (delta > 0 ? '+' : '') + twoDecimals(100 * delta / (wholeOf(tree) / tree.perOne)) + '%';
}

function tailText(tree, node) {
  return tree.isTailCall(node) ? '; returned by a tail call' : '';
}

// Returns the name as a frame shows it.
function shownName(node) {
  const { tree } = view;
  const times = tree.times === null ? 1 : tree.times[node];
  return tree.nameOf(node) + (times > 1 ? ' \u00d7' + times : '');
}

function ownCount(node) {
  const { tree } = view;
  let count = tree.total[node];
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child])
    count -= tree.total[child];
  return Math.max(0, count);
}

function gapText(tree) {
  if (tree.isFromEnds)
    return 'frames with fewer than ' + countText(Math.ceil(wholeOf(tree) * LEAST_PART)) + ', summed up';
  return 'frames with fewer than ' + countText(tree.smallest) + ', not in this file';
}

function titleOf(node) {
  return view.tree.isGap(node) ? gapText(view.tree) : shownName(node);
}

// "name (1,234 samples, 12.34%)"
function describe(node) {
  const tree = view.tree;
  if (tree.titles !== null)
    return tree.titles[node];
  if (tree.compared !== null && !tree.isGap(node))
    return shownName(node) + ' (' + comparedText(tree, node) + ')';
  if (node === 0)
    return 'all (' + countText(tree.total[0]) + ', ' + (tree.total[0] === wholeOf(tree) ? '100%' : shareText(tree.total[0])) +
      deltaText(tree, 0) + ')';
  return titleOf(node) + ' (' + countText(tree.total[node]) + ', ' +
    shareText(tree.total[node]) + deltaText(tree, node) + tailText(tree, node) + ')';
}

// Returns what the details line shows before the name: counts come first, because names may be long.
function countsOf(node) {
  const { tree } = view;
  if (tree.compared !== null && !tree.isGap(node))
    return comparedText(tree, node);
  const counts = countText(tree.total[node]) + ', ' + shareText(tree.total[node]) + deltaText(tree, node) + tailText(tree, node);
  if (node === 0 || tree.isGap(node))
    return counts;
  const { total, places } = orders.counted.sums();
  const name = tree.name[node];
  return counts + (tree.isFromEnds ? '' : ' \u00b7 self ' + shareText(ownCount(node))) +
    (places[name] > 1 ? ' \u00b7 in all ' + grouped(places[name]) + ' places ' + shareText(total[name]) : '');
}

// Leaves out the middle of a text that has more characters than `most`.
function shortened(text, most) {
  const characters = Array.from(text);
  if (characters.length <= most)
    return text;
  const end = Math.floor(most / 3);
  return characters.slice(0, most - end - 1).join('') + '\u2026' + characters.slice(-end).join('');
}
