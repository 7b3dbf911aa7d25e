// How the counts divide over time, and the trees of windows of time.  painting/times.h describes the
// data.  A window is a range of steps, { from, to }, `to` excluded.
// SPDX-License-Identifier: MIT

const LOST_NAME = '[lost samples]';
const NS_PER_S = 1e9;
// The kinds of waits, as the last frames of stacks name them, from the bottom of a bar to its top.
const WAIT_NAMES = ['[waiting for a CPU]', '[lock]', '[I/O]', '[page fault]', '[sleep]', '[child process]', '[other wait]'];
const STILL_WAITING = '[still waiting]';

const timeline = {
  steps: 0,  // 0: the file has no times
  startS: 0,  // the start of the first step: whole seconds, and the rest in nanoseconds
  startNs: 0,
  stepNs: 0,
  first: null,  // index of each step's first part, and the end
  nodes: null,  // of each part
  counts: null,  // in the tree's units
  weights: null,  // of each step, without lost samples
  lost: null,
  waits: [],  // the parts of the weights that are waits: { text, color, weights } of each kind that occurs

  zeroMs: NaN,  // when second 0 was, since 1970; NaN: unknown
  isUtc: false,

  // Fills in the data; the tree's units become fine enough for the parts.
  read(bytes, tree) {
    const reader = new PackedReader(bytes);
    if (reader.number() !== 1)
      throw new Error('the embedded times have a form that this script does not know');
    const [startS, startNs, stepNs, steps, decimals] = Array.from({ length: 5 }, () => reader.number());
    if (steps === 0 || stepNs === 0 || steps > bytes.length)
      throw new Error('the embedded times are cut off');
    const first = new Uint32Array(steps + 1);
    for (let step = 0; step < steps; ++step)
      first[step + 1] = first[step] + reader.number();
    const parts = first[steps];
    if (parts > bytes.length)
      throw new Error('the embedded times are cut off');
    const nodes = new Uint32Array(parts);
    for (let step = 0; step < steps; ++step)
      for (let at = first[step], node = 0; at < first[step + 1]; ++at)
        nodes[at] = node += reader.number();
    if (nodes.some((node) => node >= tree.size))
      throw new Error('the embedded times have a frame that the tree does not have');
    const perOne = 10 ** decimals;
    const finer = Math.max(1, perOne / tree.perOne);
    tree.scale(finer);
    const factorOfParts = tree.perOne / perOne;
    const counts = Float64Array.from(nodes, () => reader.number() * factorOfParts);
    Object.assign(this, { steps, startS, startNs, stepNs, first, nodes, counts });
    const time = facts.find(([key]) => key === 'time');
    this.zeroMs = time === undefined ? NaN : Date.parse(time[1].split(' ')[0]);
    this.addUp(tree);
  },

  addUp(tree) {
    this.weights = new Float64Array(this.steps);
    this.lost = new Float64Array(this.steps);
    for (let step = 0; step < this.steps; ++step)
      for (let at = this.first[step]; at < this.first[step + 1]; ++at) {
        const node = this.nodes[at];
        const sums = tree.depth[node] === 1 && tree.nameOf(node) === LOST_NAME ? this.lost : this.weights;
        sums[step] += this.counts[at];
      }
    this.addUpWaits(tree);
  },

  addUpWaits(tree) {
    const places = new Map(WAIT_NAMES.map((name, place) => [name, place]));
    // A root frame is the name of a thread, whatever that is.
    const kindOf = (node) => tree.depth[node] > 1 ? places.get(tree.nameOf(tree.nameOf(node) === STILL_WAITING ? tree.parent[node] : node)) : undefined;
    const kinds = WAIT_NAMES.map((name) => ({ text: name.slice(1, -1), color: 0, weights: null }));
    for (let step = 0; step < this.steps; ++step)
      for (let at = this.first[step]; at < this.first[step + 1]; ++at) {
        const node = this.nodes[at];
        const kind = kinds[kindOf(node)];
        if (kind === undefined)
          continue;
        if (kind.weights === null)
          Object.assign(kind, { weights: new Float64Array(this.steps), color: tree.colors[tree.name[tree.nameOf(node) === STILL_WAITING ? tree.parent[node] : node]] });
        kind.weights[step] += this.counts[at];
      }
    this.waits = kinds.filter(({ weights }) => weights !== null);
  },

  // Returns own counts in a window, by node of the file's tree.
  ownIn(tree, { from, to }) {
    const own = new Float64Array(tree.size);
    for (let at = this.first[from]; at < this.first[to]; ++at)
      own[this.nodes[at]] += this.counts[at];
    return own;
  },

  // "12.3" of the start of a step, in seconds, with as many decimals as all starts need.
  startText(step) {
    const isMultiple = (ns) => this.stepNs % ns === 0 && this.startNs % ns === 0;
    const digits = [0, 1, 2, 3, 6].find((decimals) => isMultiple(10 ** (9 - decimals))) ?? 9;
    const ns = this.startNs + step * this.stepNs;
    const decimals = String(ns % NS_PER_S).padStart(9, '0').slice(0, digits);
    return this.startS + Math.floor(ns / NS_PER_S) + (digits > 0 ? '.' + decimals : '');
  },

  // Seconds of the day at a time of the recording; the day is that of the reader's place, or of UTC.
  secondsOfDay(seconds) {
    const ms = this.zeroMs + seconds * 1000;
    const date = new Date(ms);
    return (this.isUtc ? date.getUTCHours() * 3600 + date.getUTCMinutes() * 60 : date.getHours() * 3600 + date.getMinutes() * 60) +
      (ms - Math.floor(ms / 60000) * 60000) / 1000;
  },

  // "14:05:30.25" of a time of the recording, with that many decimals; '' without a clock.
  clockText(seconds, decimals) {
    if (Number.isNaN(this.zeroMs))
      return '';
    const unit = 10 ** decimals;
    const rounded = Math.round(this.secondsOfDay(seconds) * unit) % (86400 * unit);
    const two = (number) => String(number).padStart(2, '0');
    const whole = Math.floor(rounded / unit);
    return two(Math.floor(whole / 3600)) + ':' + two(Math.floor(whole / 60) % 60) + ':' + two(whole % 60) +
      (decimals > 0 ? '.' + String(rounded % unit).padStart(decimals, '0') : '') + (this.isUtc ? 'Z' : '');
  },

  // "14:05:30 to 14:05:31" of a window.
  clockOf({ from, to }) {
    const decimals = Math.min(3, (this.startText(from).split('.')[1] ?? '').length);
    const [first, last] = [from, to].map((step) => this.clockText(Number(this.startText(step)), decimals));
    return first === '' ? '' : first + ' to ' + last;
  },

  // Windows are named by their seconds, so that a name survives another length of steps.
  nameOf({ from, to }) {
    return this.startText(from) + '-' + this.startText(to);
  },

  // Returns the window of a name, or null.
  windowOf(name) {
    const match = /^(\d{1,12})(?:\.(\d{1,9}))?-(\d{1,12})(?:\.(\d{1,9}))?$/.exec(name);
    if (match === null || this.steps === 0)
      return null;
    const [from, to] = [1, 3].map((at) => Math.round(((Number(match[at]) - this.startS) * NS_PER_S +
      Number((match[at + 1] || '').padEnd(9, '0')) - this.startNs) / this.stepNs));
    return from >= 0 && from < to && to <= this.steps ? { from, to } : null;
  },
};

// Returns a tree of the same nodes with other own counts.
function withOwn(tree, own) {
  const { name, parent, depth, end, names, colors, tailCalls, perOne, smallest, leftOut } = tree;
  const result = Object.assign(new Tree(0), { size: tree.size, name, parent, depth, end, names, colors, tailCalls, perOne, smallest, leftOut });
  result.total = Float64Array.from(own);
  result.start = new Float64Array(tree.size);
  result.addUp();
  result.place((node) => own[node]);
  return result;
}

const inWindow = (tree, window) => withOwn(tree, timeline.ownIn(tree, window));

// Returns the difference from one window to another.  Widths are the mean of the shares in both, so that also
// frames that are gone can be seen.
function betweenWindows(tree, before, after) {
  const owns = [before, after].map((window) => timeline.ownIn(tree, window));
  const sums = owns.map((own) => withOwn(tree, own).total);
  const wholes = sums.map((sum) => sum[0]);
  const unit = Math.max(...wholes);
  const share = (side, node) => wholes[side] > 0 ? owns[side][node] / wholes[side] : 0;
  const result = withOwn(tree, Float64Array.from(owns[0], (_, node) => (share(0, node) + share(1, node)) / 2 * unit));
  result.compared = Object.assign(new Compared(tree.size), {
    before: sums[0], after: sums[1], wholeBefore: wholes[0] / tree.perOne, wholeAfter: wholes[1] / tree.perOne,
  });
  if (given.countname === 'samples')
    judgeNoise(result);
  result.delta = new Float64Array(tree.size).map((_, node) => result.compared.change(node, tree.perOne));
  for (let node = 1; node < tree.size; ++node)
    result.largestDelta = Math.max(result.largestDelta, Math.abs(result.delta[node]));
  return result;
}

// Returns the tree that steps of kind "window" and "against" select.
function selectedTree(tree, steps) {
  const [window, against] = ['window', 'against'].map((kind) => {
    const step = steps.find((other) => other.kind === kind);
    return step === undefined ? null : timeline.windowOf(step.name);
  });
  if (window === null)
    return tree;
  return against === null ? inWindow(tree, window) : betweenWindows(tree, window, against);
}

// Without times that it can read, the page shows the graph alone.
async function readTimes(tree) {
  const text = embeddedText('times');
  if (text === '')
    return;
  try {
    timeline.read(await inflated(fromBase64(text)), tree);
  } catch (error) {
    timeline.steps = 0;
  }
}
