// Holds each frame's counts in two profiles, and whether its change is more than noise.
// SPDX-License-Identifier: MIT

const Noise = { UNKNOWN: 0, TOO_RARE: 1, WITHIN: 2, BEYOND: 3 };
const NOISE_TEXTS = ['noise unknown', 'too rare to tell', 'may be noise', 'more than noise'];

const TINT = 0.19;  // fraction of the strongest colour

class Compared {
  constructor(size) {
    this.before = new Float64Array(size);
    this.after = new Float64Array(size);
    this.noise = new Uint8Array(size);
    this.low = new Float64Array(size);  // ends of the change's interval
    this.high = new Float64Array(size);
    this.wholeBefore = 0;  // counts that are 100 %
    this.wholeAfter = 0;
    this.dimsNoise = false;
    this.byCount = false;  // colours follow the change of counts, not of shares
  }

  shareBefore(node, perOne) {
    return this.wholeBefore > 0 ? this.before[node] / perOne / this.wholeBefore : 0;
  }

  shareAfter(node, perOne) {
    return this.wholeAfter > 0 ? this.after[node] / perOne / this.wholeAfter : 0;
  }

  change(node, perOne) {
    return this.shareAfter(node, perOne) - this.shareBefore(node, perOne);
  }

  // Returns the change that the colour shows, as a share.
  shownChange(node, perOne) {
    if (!this.byCount || this.wholeBefore === 0)
      return this.change(node, perOne);
    return (this.after[node] - this.before[node]) / perOne / this.wholeBefore;
  }

  isNew(node) {
    return this.before[node] === 0 && this.after[node] > 0;
  }

  isGone(node) {
    return this.after[node] === 0 && this.before[node] > 0;
  }

  isDimmed(node) {
    return this.dimsNoise && this.noise[node] !== Noise.BEYOND;
  }

  // Limits a change for colouring: `largest` has the strongest colour; a change that may be noise only gets a
  // tint.
  shade(node, delta, largest) {
    const isTint = this.noise[node] === Noise.WITHIN || this.noise[node] === Noise.TOO_RARE;
    const limit = isTint ? TINT * largest : largest;
    return Math.max(-limit, Math.min(delta, limit));
  }

  // Returns the same data for the nodes in another order.
  inOrder(order) {
    const other = Object.assign(new Compared(0), this);
    for (const key of ['before', 'after', 'noise', 'low', 'high'])
      other[key] = this[key].map((_, at) => this[key][order[at]]);
    return other;
  }
}

function signedPercent(share) {
  const text = twoDecimals(100 * share) + '%';
  if (text === '-0.00%')
    return '0.00%';
  return (share > 0 && text !== '0.00%' ? '+' : '') + text;
}

// "before 1,234 samples, 12.34%; after 1,500, 15.00%; +2.66% (+1.20% to +4.10%), more than noise"
function comparedText(tree, node) {
  const { compared, perOne } = tree;
  const before = 'before ' + countText(compared.before[node]);
  const after = 'after ' + grouped(compared.after[node] / perOne * factor);
  if (node === 0 && compared.change(node, perOne) === 0)  // 100 % of each
    return before + ', ' + after;
  const noise = compared.noise[node];
  const interval = noise === Noise.UNKNOWN ? '' :
    ' (' + signedPercent(compared.low[node]) + ' to ' + signedPercent(compared.high[node]) + ')';
  return before + ', ' + percent(compared.shareBefore(node, perOne), 1) +
    '; ' + after + ', ' + percent(compared.shareAfter(node, perOne), 1) +
    '; ' + (compared.isNew(node) ? 'new, ' : compared.isGone(node) ? 'gone, ' : '') +
    signedPercent(compared.change(node, perOne)) + interval + ', ' + NOISE_TEXTS[noise];
}

function comparedClass(tree, node) {
  const { compared } = tree;
  if (compared === null || tree.isGap(node))
    return '';
  return (compared.isNew(node) ? 'new ' : compared.isGone(node) ? 'gone ' : '') +
    (compared.isDimmed(node) ? 'dim ' : '');
}
