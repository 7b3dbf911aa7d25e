// Measures how quick a flame graph page is in Chromium: load, click to paint, search.
// Usage: node page.mjs SVG...     Pages of flamesvg, flamegraph.pl or inferno.  ROUNDS=5.
//
// "Click to paint" lasts from the event to the first task after the frame that the
// browser draws in response; rasterization may continue in another thread.  Figures
// are medians over the runs, each in a new page.  It clicks at three frames; the
// slowest counts.  If BENCH_FIGURES names a file (scripts/bench), it writes the
// figures there, too, with the title BENCH_TITLE.
// Needs playwright-core: run tests/browser/run once, which fetches it.
// SPDX-License-Identifier: MIT
import { appendFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../browser/', import.meta.url));
const { chromium } = require('playwright-core');
const runs = Number(process.env.ROUNDS || 5);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

// Runs in the page.
function measureThere() {
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  }));
  const timed = async (action) => {
    await painted();
    const start = performance.now();
    action();
    await painted();
    return performance.now() - start;
  };
  const click = (x, y) => {
    const target = document.elementFromPoint(x, y);
    target.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: x, clientY: y }));
  };
  const typed = (text) => {
    if (typeof window.search === 'function') {  // flamegraph.pl, inferno
      window.search(text);
      return;
    }
    const field = document.querySelector('input');
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  };
  return (async () => {
    (document.querySelector('#scroller') || document.documentElement).scrollTop = 1e9;
    await painted();
    const frames = document.querySelector('#frames').getBoundingClientRect();
    const rowHeight = Number(document.querySelector('#frames').dataset.row || 16);
    const bottom = Math.min(frames.bottom, innerHeight - 34);
    const times = { click: 0, reset: 0 };
    for (const [share, row] of [[0.66, 2.5], [0.6, 8.5], [0.1, 12.5]]) {
      const before = document.querySelector('#unzoom').getAttribute('class');
      times.click = Math.max(times.click, await timed(() => click(10 + share * frames.width, bottom - rowHeight * row)));
      if (document.querySelector('#unzoom').getAttribute('class') === before)
        throw new Error('the click did not zoom');
      times.reset = Math.max(times.reset, await timed(() =>
        document.querySelector('#unzoom').dispatchEvent(new MouseEvent('click', { bubbles: true }))));
    }
    times.search = Math.max(await timed(() => typed('Reader')), await timed(() => typed('Readers?.*::(push|open)')));
    return { ...times, elements: document.querySelectorAll('*').length, root: frames.width };
  })();
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

for (const file of process.argv.slice(2)) {
  const results = [];
  for (let run = 0; run < runs; ++run) {
    const page = await browser.newPage({ viewport: { width: 1250, height: 900 } });
    page.on('pageerror', (error) => console.log('error in the page: ' + error.message));
    const start = performance.now();
    await page.goto(pathToFileURL(file).href);
    const shown = performance.now() - start;
    const isOurs = await page.locator('svg.flamegraph').count() > 0;
    if (isOurs)
      await page.waitForSelector('svg.live', { state: 'attached' });
    const ready = performance.now() - start;
    results.push({ shown, ready, ...await page.evaluate(measureThere) });
    await page.close();
  }
  const row = Object.fromEntries(['shown', 'ready', 'click', 'reset', 'search', 'elements'].map((key) =>
    [key, Math.round(median(results.map((result) => result[key])))]));
  console.log(`  ${basename(file)}: ${(statSync(file).size / 1e6).toFixed(2)} MB; shown after ${row.shown} ms, ready after ${row.ready} ms; ` +
    `click ${row.click} ms, reset ${row.reset} ms, search ${row.search} ms; ${row.elements} elements`);
  if (process.env.BENCH_FIGURES) {
    const figure = (measure, value, unit) => ['figure', process.env.BENCH_TITLE, measure, basename(file, '.svg'), value, unit].join('\t') + '\n';
    appendFileSync(process.env.BENCH_FIGURES, figure('file', (statSync(file).size / 1e6).toFixed(2), 'MB') +
      ['shown', 'ready', 'click', 'reset', 'search'].map((measure) => figure(measure, row[measure], 'ms')).join(''));
  }
}
await browser.close();
