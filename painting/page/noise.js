// Tests which frames of a difference changed by more than noise, as flamediff does with one profile a side:
// Fisher's exact test of each frame's share, Holm's correction for many tests, Newcombe's intervals
// (painting/statistics has the sources and the constants).
// SPDX-License-Identifier: MIT

// Stirling's series, after shifting small arguments up; the error is below 1e-10.
function logGamma(x) {
  let shift = 0;
  let at = x;
  for (; at < 10; ++at)
    shift += Math.log(at);
  const square = 1 / (at * at);
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) +
    (1 / 12 - square * (1 / 360 - square / 1260)) / at - shift;
}

const logChoose = (n, k) => logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1);

// The probability that a normal variable exceeds z >= 0: Abramowitz and Stegun, 26.2.17; the error is below 8e-8.
function normalTail(z) {
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const tail = Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI) *
    t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return z >= 0 ? tail : 1 - tail;
}

// Returns z so that a normal variable lies outside of -z to z with this probability.
function normalReach(probability) {
  let low = 0;
  let high = 40;
  while (high - low > 1e-9) {
    const middle = (low + high) / 2;
    if (2 * normalTail(middle) > probability)
      low = middle;
    else
      high = middle;
  }
  return high;
}

// `a` and `b`: { hits, of }.  Two-sided by doubling.
function sharePValue(a, b) {
  const [few, many] = a.hits / a.of < b.hits / b.of ? [a, b] : [b, a];
  const hits = a.hits + b.hits;
  const all = a.of + b.of;
  if (!(hits > 0) || !(hits < all))
    return 1;
  const share = hits / all;
  const variance = many.of * share * (1 - share) * few.of / Math.max(1, all - 1);
  if (variance > LARGE_VARIANCE)
    return Math.min(1, 2 * normalTail((many.hits - many.of * share - 0.5) / Math.sqrt(variance)));
  let sum = 1;
  let term = 1;
  for (let x = many.hits; x < Math.min(hits, many.of) && term >= sum * NEGLIGIBLE_TERM; ++x) {
    term *= Math.max(0, (many.of - x) * (hits - x) / ((x + 1) * (few.of - hits + x + 1)));
    sum += term;
  }
  const first = logChoose(many.of, many.hits) + logChoose(few.of, few.hits) - logChoose(all, hits);
  return Math.min(1, 2 * Math.exp(first) * sum);
}

// Returns the least number from `from` to `to` that fits.  All larger ones fit, too, and `to` does.
function firstFitting(from, to, fits) {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    if (fits(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Returns the limit of the smallest possible p-values of the questions that are asked: Tarone, Biometrics 46 (1990).
function askedBelow(smallest) {
  const sorted = Float64Array.from(smallest).sort();
  const asked = (questions) => firstFitting(0, sorted.length, (at) => at === sorted.length || sorted[at] > NOISE_LEVEL / questions);
  return NOISE_LEVEL / firstFitting(1, Math.max(1, sorted.length), (questions) => asked(questions) <= questions);
}

// Returns the largest p-value that stands, or -1: Holm, Scandinavian Journal of Statistics 6 (1979).
function holm(pValues) {
  const sorted = Float64Array.from(pValues).sort();
  let standing = 0;
  while (standing < sorted.length && sorted[standing] <= NOISE_LEVEL / (sorted.length - standing))
    ++standing;
  return standing > 0 ? sorted[standing - 1] : -1;
}

function wilson({ hits, of }, z) {
  const p = hits / of;
  const square = z * z;
  const middle = (p + square / (2 * of)) / (1 + square / of);
  const half = z / (1 + square / of) * Math.sqrt(p * (1 - p) / of + square / (4 * of * of));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

// The interval of the growth from `before` to `after`: method 10 of Newcombe, Statistics in Medicine 17 (1998).
function shareInterval(before, after, z) {
  const [p, q] = [before.hits / before.of, after.hits / after.of];
  const [b, a] = [wilson(before, z), wilson(after, z)];
  return { low: q - p - Math.hypot(q - a.low, b.high - p), high: q - p + Math.hypot(a.high - q, p - b.low) };
}

// Fills noise, low and high of `compared`, whose counts are samples in units of 1 / perOne.  A frame that has the
// counts of its caller is in the same samples, and needs no test of its own.
function judgeNoise(tree) {
  const { compared, perOne } = tree;
  const { before, after } = compared;
  const [beforeOf, afterOf] = [compared.wholeBefore, compared.wholeAfter];
  if (!(beforeOf > 0) || !(afterOf > 0))
    return;
  const isLikeCaller = (node) => node > 0 && before[node] === before[tree.parent[node]] && after[node] === after[tree.parent[node]];
  const frames = [];
  for (let node = 0; node < tree.size; ++node)
    if (!isLikeCaller(node))
      frames.push(node);
  const lesser = Math.min(beforeOf, afterOf) / (beforeOf + afterOf);
  const smallest = frames.map((node) => Math.min(1, 2 * lesser ** ((before[node] + after[node]) / perOne)));
  const limit = askedBelow(smallest);
  const asked = frames.filter((_, at) => smallest[at] <= limit);
  const seen = (node) => [{ hits: before[node] / perOne, of: beforeOf }, { hits: after[node] / perOne, of: afterOf }];
  const pValues = new Map(asked.map((node) => [node, sharePValue(...seen(node))]));
  const largest = holm(Array.from(pValues.values()));
  const z = normalReach(NOISE_LEVEL / Math.max(1, asked.length));
  for (let node = 0; node < tree.size; ++node) {
    if (isLikeCaller(node)) {
      for (const key of ['noise', 'low', 'high'])
        compared[key][node] = compared[key][tree.parent[node]];
      continue;
    }
    const isBeyond = pValues.has(node) && pValues.get(node) <= largest;
    compared.noise[node] = !pValues.has(node) ? Noise.TOO_RARE : isBeyond ? Noise.BEYOND : Noise.WITHIN;
    const { low, high } = shareInterval(...seen(node), z);
    const grows = compared.change(node, perOne) > 0;
    // The interval agrees with the test: it holds 0 unless the change is more than noise.
    compared.low[node] = isBeyond && grows ? Math.max(low, 0) : isBeyond ? low : Math.min(low, 0);
    compared.high[node] = isBeyond && !grows ? Math.min(high, 0) : isBeyond ? high : Math.max(high, 0);
  }
}
