// Tests flamediff's page in a real browser: the script shows the same texts, colours and classes as the file.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import {
  drawDiff, frame, hasClass, isShown, matches, openBytes, page, searchFor, text, width,
} from './harness.mjs';

const BEFORE = 'main;parse;alloc 700\nmain;run;hash 800\nmain;run;old 300\nmain;same 200\nmain;few 3\n';
const AFTER = 'main;parse;alloc 700\nmain;run;hash 1400\nmain;run;fresh 250.5\nmain;same 200\nmain;few 5\n';

// Returns the depths, titles, colours and classes of the frames in the file itself.
function ownFrames(svg) {
  const frames = [];
  for (const m of String(svg).matchAll(/<g( class="([^"]*)")? data-at="[^"]* (\d+)"><title>([^<]*)<\/title><rect[^>]* fill="([^"]*)"/g))
    frames.push({ classes: (m[2] || '').split(' ').filter((c) => c !== ''), depth: Number(m[3]) + 1, title: m[4], fill: m[5] });
  return frames;
}

async function drawnFrames() {
  return page.locator('#frames g:not(.hidden)').evaluateAll((groups) => groups.map((group) => ({
    classes: (group.getAttribute('class') || '').split(' ').filter((c) => c !== ''),
    depth: Number(group.getAttribute('aria-level')),
    title: group.getAttribute('aria-label'),
    fill: group.querySelector('rect').getAttribute('fill'),
  })));
}

const sorted = (frames) => frames.map((f) => JSON.stringify({ ...f, classes: f.classes.sort() })).sort();

for (const options of [[], ['--absolute'], ['--only-significant'], ['--width-from', 'before'], ['--width-from', 'both'],
  ['--countname', 'ms'], ['--embed', 'none']])
  test('the script says and draws what the file does: ' + options.join(' '), async () => {
    const svg = drawDiff(BEFORE, AFTER, ...options);
    await openBytes(svg);
    const drawn = await drawnFrames();
    // The file merges frames narrower than a pixel; the script merges frames that no label fits.
    const wide = new Set(drawn.map((f) => f.title));
    const own = ownFrames(svg).filter((f) => wide.has(f.title));
    assert.ok(own.length >= 8);
    assert.deepEqual(sorted(drawn), sorted(own));
  });

test('pointing shows both counts, the change and whether it is noise', async () => {
  await openBytes(drawDiff(BEFORE, AFTER, '--period', '1'));
  await frame('hash').hover();
  assert.match(await text('details'), new RegExp('^before 800 samples, 39.94%; after 1,400, 54.78%; ' +
    '\\+14.84% \\(\\+[0-9.]+% to \\+[0-9.]+%\\), more than noise — hash$'));
  await frame('same').hover();
  assert.match(await text('details'), /-2\.16% \(.*\), more than noise — same$/);
});

test('new and vanished frames are framed, and what vanished stands aside', async () => {
  await openBytes(drawDiff(BEFORE, AFTER, '--period', '1'));
  assert.ok(await hasClass(frame('fresh'), 'new'));
  assert.ok(await hasClass(frame('old'), 'gone'));
  assert.notEqual(await frame('old').locator('rect').evaluate((rect) => getComputedStyle(rect).strokeDasharray), 'none');
  assert.equal(Math.round(await width('[vanished]')), Math.round(1180 * 0.149775 / 1.149775));
});

test('zoom, search and the other order work as in any flame graph', async () => {
  await openBytes(drawDiff(BEFORE, AFTER, '--period', '1'));
  await frame('run').click();
  assert.equal(await width('run'), 1180);
  assert.ok(!await isShown('parse'));
  await page.locator('#unzoom').click();
  await searchFor('^(hash|alloc)$');
  assert.equal(await matches(), 2);
  assert.match(await text('matched'), /^Matched: \d/);
  const title = () => frame('hash').getAttribute('aria-label');
  const before = await title();
  await page.locator('#heavy').click();
  assert.equal(await title(), before);
  assert.ok(await hasClass(frame('fresh'), 'new'));
});

test('frames below a pixel have their texts when they are zoomed to', async () => {
  let before = 'main;hot 1000000\n';
  let after = 'main;hot 1000000\n';
  for (let i = 0; i < 30; ++i) {
    before += `main;cold;f${i} ${i + 1}\n`;
    after += `main;cold;f${i} ${2 * i + 1}\n`;
  }
  await openBytes(drawDiff(before, after));
  const box = await page.locator('#frames').boundingBox();
  await page.mouse.click(box.x + 1, await frame('hot').locator('rect').evaluate((rect) => rect.getBoundingClientRect().y + 5));
  assert.ok(await isShown('cold'));
  await frame('f29').hover();
  assert.match(await text('details'), /^before 30 samples, 0\.00%; after 59, 0\.01%; 0\.00% \(.* — f29$/);
});
