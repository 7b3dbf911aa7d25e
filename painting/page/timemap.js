// The map of time above the graph.  Short recordings are a heat map: a column is a second, its cells are fractions
// of it, the first on top, as in FlameScope.  Longer ones are a strip, and so are those with waits: each bar shows
// how much of it was on CPUs, below, and what threads waited for.  Dragging selects a window of time.
// SPDX-License-Identifier: MIT

const LEAST_COLUMN = 3;  // pixels: narrower seconds become a strip
const MOST_COLUMN = 40;
const MAP_HEIGHT = 96;
const MOST_CELLS = 48;  // of a second
const STRIP_HEIGHT = 40;
const WAITS_HEIGHT = 80;  // of a strip with waits
const ON_CPU = 0xe0792f;
const AXIS_HEIGHT = Math.ceil(fontSize + 3);
const LEAST_TICK = 70;  // pixels between the times below the map
const LEAST_CLOCK_TICK = 120;  // the same with the time of day
const CLOCK_TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200];  // seconds

function lengthText(ns) {
  const [unit, size] = [['s', 1e9], ['ms', 1e6], ['\u00b5s', 1e3], ['ns', 1]].find(([, least]) => ns >= least);
  return Number((ns / size).toPrecision(4)) + ' ' + unit;
}

// Divides the steps into the map's cells.  A cell has `perCell` steps; the first cell has `ahead` steps before
// the recording.
function mapShape(width) {
  const { steps, startNs, stepNs, waits } = timeline;
  const isAligned = startNs % stepNs === 0;
  const perSecond = NS_PER_S / stepNs;
  const ahead = startNs / stepNs;
  const seconds = Math.ceil((ahead + steps) / perSecond);
  if (waits.length === 0 && isAligned && Number.isInteger(perSecond) && perSecond > 1 && seconds > 1 && seconds * LEAST_COLUMN <= width) {
    let perCell = Math.ceil(perSecond / MOST_CELLS);
    while (perSecond % perCell !== 0)
      ++perCell;
    const rows = perSecond / perCell;
    return {
      isStrip: false, columns: seconds, rows, perCell, ahead,
      cellWidth: Math.min(MOST_COLUMN, Math.floor(width / seconds)),
      cellHeight: Math.max(2, Math.min(12, Math.floor(MAP_HEIGHT / rows))),
    };
  }
  const perCell = Math.ceil(steps / Math.max(1, Math.floor(width)));
  const columns = Math.ceil(steps / perCell);
  return { isStrip: true, columns, rows: 1, perCell, ahead: 0, cellWidth: Math.min(MOST_COLUMN, width / columns),
    cellHeight: waits.length > 0 ? WAITS_HEIGHT : STRIP_HEIGHT };
}

const timeMap = {
  surface: html('canvas', { id: 'timemap', tabindex: 0, role: 'application' }),
  caption: html('span', {}),
  compares: false,  // dragging selects the second window
  shape: null,
  cells: null,  // { weights, lost, waits, most }
  base: null,  // the map without the selection
  drawnFor: '',
  anchor: -1,  // the cell where dragging began
  at: 0,  // the cell under the cursor
  keyAnchor: -1,  // the cell where selecting by Shift and arrows began
  kind: 'window',  // of the step that is being chosen

  build() {
    if (timeline.steps < 2)
      return;
    parts.times.classList.remove('hidden');
    this.givenHeight = Number(page.getAttribute('height'));
    const action = ACTIONS.find(({ id }) => id === 'compare');
    parts.times.append(html('div', { class: 'caption' }, this.caption, tools.button(action, 'Compare'), ...this.legend()), this.surface);
    this.surface.setAttribute('aria-label', 'Counts over time. Arrow keys move, with Shift they select.');
    this.surface.addEventListener('pointerdown', (event) => this.onDown(event));
    this.surface.addEventListener('pointermove', (event) => this.onMove(event));
    this.surface.addEventListener('pointerup', (event) => this.onUp(event));
    this.surface.addEventListener('pointercancel', () => this.anchor >= 0 && this.finish());
    this.surface.addEventListener('pointerleave', () => showDetails(-1));
    this.surface.addEventListener('contextmenu', (event) => event.ctrlKey && event.preventDefault());
    this.surface.addEventListener('keydown', (event) => this.onKey(event));
    this.applySoon = soon(() => this.apply());
  },

  // The colours of waits, for those that occur.
  legend() {
    const { waits } = timeline;
    return waits.length === 0 ? [] : [{ text: 'on CPU', color: ON_CPU }, ...waits].map(({ text, color }) => {
      const square = html('span', { class: 'mark' });
      square.style.background = fillOf(color).text;
      return html('span', {}, square, ' ' + text);
    });
  },

  toggleCompares() {
    this.compares = !this.compares;
    tools.showState();
    tools.report(this.compares ? 'Drag over the time to compare with the selected one' : 'Drag to select time');
  },

  windowOfKind(kind) {
    const step = view.steps.find((other) => other.kind === kind);
    return step === undefined ? null : timeline.windowOf(step.name);
  },

  // The steps of the cells from one to another, both included.
  windowOfCells(a, b) {
    const { perCell, ahead } = this.shape;
    const from = Math.max(0, Math.min(a, b) * perCell - ahead);
    return { from, to: Math.min(timeline.steps, (Math.max(a, b) + 1) * perCell - ahead) };
  },

  cellOf(step) {
    return Math.floor((step + this.shape.ahead) / this.shape.perCell);
  },

  cellAt(event) {
    const { rows, columns, cellWidth, cellHeight } = this.shape;
    const box = this.surface.getBoundingClientRect();
    const ratio = box.width > 0 ? this.surface.offsetWidth / box.width : 1;
    const place = (at, size, most) => Math.max(0, Math.min(most - 1, Math.floor(at * ratio / size)));
    const cell = place(event.clientX - box.left, cellWidth, columns) * rows + place(event.clientY - box.top, cellHeight, rows);
    return Math.max(this.cellOf(0), Math.min(this.cellOf(timeline.steps - 1), cell));
  },

  onDown(event) {
    if (event.button !== 0)
      return;
    event.preventDefault();
    this.surface.focus({ preventScroll: true });
    this.surface.setPointerCapture(event.pointerId);
    this.anchor = this.at = this.cellAt(event);
    this.begin(event.ctrlKey || event.metaKey);
  },

  onMove(event) {
    const cell = this.cellAt(event);
    if (this.anchor >= 0 && cell !== this.at) {
      this.at = cell;
      this.applySoon();
    } else if (this.anchor < 0) {
      parts.details.textContent = this.textOf(this.windowOfCells(cell, cell));
    }
  },

  onUp(event) {
    if (this.anchor < 0)
      return;
    this.at = this.cellAt(event);
    this.finish();
  },

  finish() {
    this.apply();
    this.anchor = -1;
    saveAddress(true);
  },

  // `isSecond`: the window is compared with the selected one, if there is one.
  begin(isSecond) {
    this.kind = (isSecond || this.compares) && hasStep('window') ? 'against' : 'window';
    this.applySoon();
  },

  // Shows the graph of the window between anchor and cursor.  The zoomed frame stays.
  apply() {
    if (this.anchor < 0)
      return;
    const window = this.windowOfCells(this.anchor, this.at);
    const step = { kind: this.kind, name: timeline.nameOf(window) };
    const isKept = ({ kind }) => kind !== 'against' && (kind !== 'window' || this.kind === 'against');
    const path = pathText(view.zoomed);
    changeView(() => {
      setSteps([...view.steps.filter(isKept), step]);
      zoomToCounted(nodeOfPath(path));
      tools.showState();
    }, false);
    tools.report(this.textOf(window));
  },

  onKey(event) {
    const { rows } = this.shape;
    const move = { ArrowLeft: -rows, ArrowRight: rows, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (move === undefined || event.altKey)
      return;
    event.preventDefault();
    const last = this.cellOf(timeline.steps - 1);
    this.at = Math.max(this.cellOf(0), Math.min(last, this.at + move));
    if (!event.shiftKey || this.keyAnchor < 0)
      this.keyAnchor = this.at;
    this.anchor = this.keyAnchor;
    this.begin(event.ctrlKey || event.metaKey);
    this.finish();
  },

  textOf({ from, to }) {
    const sum = (column) => column.subarray(from, to).reduce((a, b) => a + b, 0);
    const lost = sum(timeline.lost);
    const all = sum(timeline.weights);
    const clock = timeline.clockOf({ from, to });
    return timeText(timeline.nameOf({ from, to })) + (clock === '' ? '' : ' (' + clock + ')') + ': ' + countText(all) + this.partsText(sum, all) +
      (lost > 0 ? ', ' + grouped(lost / view.tree.perOne) + ' lost' : '');
  },

  // " (on CPU 25 %, lock 75 %)" of a window in which threads waited.
  partsText(sum, all) {
    const waits = timeline.waits.map(({ text, weights }) => [text, sum(weights)]);
    const onCpu = all - waits.reduce((a, [, weight]) => a + weight, 0);
    const shares = [['on CPU', onCpu], ...waits].map(([text, weight]) => [text, Math.round(100 * weight / all)]).filter(([, share]) => share > 0);
    return waits.length > 0 && shares.length > 0 ? ' (' + shares.map(([text, share]) => text + ' ' + share + ' %').join(', ') + ')' : '';
  },

  // Says what is selected, for the details line: "12.3 s to 12.5 s: 34 samples. ".
  selectionText() {
    return ['window', 'against'].map((kind) => this.windowOfKind(kind)).filter((window) => window !== null)
      .map((window) => this.textOf(window) + '. ').join('');
  },

  sumUp() {
    const { rows, columns } = this.shape;
    const [weights, lost, ...waits] = [timeline.weights, timeline.lost, ...timeline.waits.map((wait) => wait.weights)].map((column) => {
      const sums = new Float64Array(rows * columns);
      column.forEach((count, step) => { sums[this.cellOf(step)] += count; });
      return sums;
    });
    this.cells = { weights, lost, waits, most: weights.reduce((a, b) => Math.max(a, b), 1e-9) };
  },

  // Sets size and shape; draws the map again if they or the paper changed.
  draw() {
    if (timeline.steps < 2)
      return;
    const width = Math.max(100, app.offsetWidth - 2 * margin);
    const sharpness = window.devicePixelRatio || 1;
    const key = [width, sharpness, theme.isDark].join(' ');
    if (key !== this.drawnFor) {
      this.drawnFor = key;
      this.shape = mapShape(width);
      this.sumUp();
      const { rows, columns, cellWidth, cellHeight, isStrip, perCell } = this.shape;
      const size = { width: Math.ceil(columns * cellWidth) + 1, height: rows * cellHeight + AXIS_HEIGHT };
      for (const side of ['width', 'height']) {
        this.surface[side] = Math.ceil(size[side] * sharpness);
        this.surface.style[side] = size[side] + 'px';
      }
      const cellText = lengthText(perCell * timeline.stepNs);
      this.caption.textContent = (isStrip ? 'Over time; a bar is ' + cellText : 'Over time; a column is 1 s, a cell ' + cellText) +
        '. Drag selects, Ctrl-drag compares.';
      if (!isAlone)  // room of its own in a document of another
        page.setAttribute('height', this.givenHeight + parts.times.offsetHeight);
      this.base = html('canvas', { width: this.surface.width, height: this.surface.height });
      this.drawBase(this.base.getContext('2d'), sharpness);
    }
    const surface = this.surface.getContext('2d');
    surface.setTransform(1, 0, 0, 1, 0, 0);
    surface.clearRect(0, 0, this.surface.width, this.surface.height);
    surface.drawImage(this.base, 0, 0);
    surface.scale(sharpness, sharpness);
    const accent = getComputedStyle(app).getPropertyValue('--accent').trim();
    this.drawWindow(surface, this.windowOfKind('window'), accent);
    this.drawWindow(surface, this.windowOfKind('against'), '#00798c');
  },

  // Calls take(x, y, width, cell) for each cell from one to another.  Narrow bars have whole pixels, without seams.
  forCells(first, last, take) {
    const { rows, cellWidth, cellHeight } = this.shape;
    const gap = cellWidth >= 6 ? 1 : 0;
    for (let cell = first; cell <= last; ++cell) {
      const column = Math.floor(cell / rows);
      const x = Math.round(column * cellWidth);
      take(x, cell % rows * cellHeight, Math.round((column + 1) * cellWidth) - x - gap, cell);
    }
  },

  drawBase(surface, sharpness) {
    const { isStrip, cellHeight } = this.shape;
    const { weights, lost, most } = this.cells;
    surface.scale(sharpness, sharpness);
    this.forCells(this.cellOf(0), this.cellOf(timeline.steps - 1), (x, y, width, cell) => {
      const part = weights[cell] / most;
      if (timeline.waits.length > 0)
        return this.drawParts(surface, x, width, cell);
      surface.fillStyle = fillOf(onPaper(0xc2410c, 0.06 + 0.94 * Math.sqrt(part))).text;
      const height = isStrip ? Math.max(part > 0 ? 2 : 1, Math.round(part * cellHeight)) : cellHeight - 1;
      surface.fillRect(x, isStrip ? cellHeight - height : y, width, height);
      if (lost[cell] > 0)
        this.hatch(surface, x, y, width, cellHeight - 1);
    });
    this.drawAxis(surface);
  },

  // Draws the parts of a bar, one above the other.
  drawParts(surface, x, width, cell) {
    const { cellHeight } = this.shape;
    const { weights, lost, waits, most } = this.cells;
    const heightOf = (weight) => Math.round(weight / most * cellHeight);
    let reached = weights[cell];
    // From the top down: what is left at the bottom was on CPUs.
    for (let kind = waits.length; kind-- > -1;) {
      surface.fillStyle = fillOf(kind < 0 ? ON_CPU : timeline.waits[kind].color).text;
      const height = heightOf(reached);
      if (height > 0)
        surface.fillRect(x, cellHeight - height, width, height);
      reached -= kind < 0 ? 0 : waits[kind][cell];
    }
    if (lost[cell] > 0)
      this.hatch(surface, x, 0, width, cellHeight - 1);
  },

  // Lost samples.
  hatch(surface, x, y, width, height) {
    surface.save();
    surface.beginPath();
    surface.rect(x, y, width, height);
    surface.clip();
    surface.beginPath();
    for (let at = x - height; at < x + width; at += 4) {
      surface.moveTo(at, y + height);
      surface.lineTo(at + height, y);
    }
    surface.strokeStyle = theme.isDark ? '#fff' : '#000';
    surface.lineWidth = 1;
    surface.stroke();
    surface.restore();
  },

  toggleUtc() {
    timeline.isUtc = !timeline.isUtc;
    this.drawnFor = '';
    this.draw();
    tools.report(timeline.isUtc ? 'Times are those of UTC' : 'Times are those of this place');
  },

  // Returns the distance of the times below the map in seconds, and the first of them.
  ticks(start, secondsPerPixel) {
    const hasClock = !Number.isNaN(timeline.zeroMs);
    const least = (hasClock ? LEAST_CLOCK_TICK : LEAST_TICK) * secondsPerPixel;
    const power = 10 ** Math.floor(Math.log10(least));
    const decimal = [1, 2, 5, 10].map((times) => times * power).find((seconds) => seconds >= least);
    if (!hasClock || decimal < 1)
      return { tick: decimal, first: Math.ceil(start / decimal) * decimal };
    // Times of day are round, too.
    const tick = CLOCK_TICKS.find((seconds) => seconds >= least) ?? decimal;
    const day = timeline.secondsOfDay(start);
    return { tick, first: start + Math.ceil(day / tick) * tick - day };
  },

  drawAxis(surface) {
    const { rows, cellWidth, cellHeight, perCell, ahead } = this.shape;
    const secondsPerPixel = rows * perCell * timeline.stepNs / NS_PER_S / cellWidth;
    const start = timeline.startS + (timeline.startNs - ahead * timeline.stepNs) / NS_PER_S;
    const end = timeline.startS + (timeline.startNs + timeline.steps * timeline.stepNs) / NS_PER_S;
    surface.fillStyle = getComputedStyle(app).getPropertyValue('--faint').trim();
    surface.font = fontSize - 1 + 'px ' + page.getAttribute('font-family');
    surface.textBaseline = 'bottom';
    const { tick, first } = this.ticks(start, secondsPerPixel);
    const decimals = Math.max(0, -Math.floor(Math.log10(tick)));
    for (let number = 0; first + number * tick < end - tick / 4; ++number) {
      const seconds = first + number * tick;
      const clock = timeline.clockText(seconds, Math.min(3, decimals));
      const sinceStart = Number(seconds.toFixed(Math.max(decimals, clock === '' ? 0 : 1))) + ' s';
      surface.fillText(clock === '' ? sinceStart : clock + ' (' + sinceStart + ')', (seconds - start) / secondsPerPixel, rows * cellHeight + AXIS_HEIGHT);
    }
  },

  drawWindow(surface, window, color) {
    if (window === null)
      return;
    const { cellHeight } = this.shape;
    surface.fillStyle = color;
    surface.strokeStyle = color;
    surface.lineWidth = 1.5;
    this.forCells(this.cellOf(window.from), this.cellOf(window.to - 1), (x, y, width) => {
      surface.globalAlpha = 0.35;
      surface.fillRect(x, y, width, cellHeight - 1);
      surface.globalAlpha = 1;
      if (width >= 5)
        surface.strokeRect(x + 0.75, y + 0.75, width - 1.5, cellHeight - 2.5);
    });
  },
};
