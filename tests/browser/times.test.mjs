// Tests the map of time: selecting a window, comparing two, the address, keys, and lost samples.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { drawDiff, frame, isHidden, isShown, live, open, openBytes, page, state, text, width } from './harness.mjs';

// 20 steps of 100 ms: in the first second alpha runs, then beta.
const lines = [];
for (let step = 0; step < 20; ++step) {
  const time = `@${Math.floor(step / 10)}.${step % 10}00`;
  lines.push(`${time};main;${step < 10 ? 'alpha' : 'beta'} ${step + 1}`);
  lines.push(`${time};main;common;leaf 2`);
  if (step === 15)
    lines.push(`${time};[lost samples] 7`);
}
const TIMED = lines.join('\n') + '\n';
const UNTIMED = 'main;alpha 55\nmain;beta 155\nmain;common;leaf 40\n[lost samples] 7\n';

// A cell of the heat map: its middle, from the second and the tenth of a second.
async function cell(second, tenth) {
  const box = await page.locator('#timemap').boundingBox();
  const [columns, rows] = [2, 10];
  const [cellWidth, cellHeight] = [(box.width - 1) / columns, (box.height - 15) / rows];
  return [box.x + (second + 0.5) * cellWidth, box.y + (tenth + 0.5) * cellHeight];
}

async function drag(from, to) {
  await page.mouse.move(...await cell(...from));
  await page.mouse.down();
  await page.mouse.move(...await cell(...to), { steps: 3 });
  await page.mouse.up();
}

const labels = () => page.locator('#frames g:not(.hidden)').evaluateAll((groups) => groups.map((g) => g.getAttribute('aria-label')).sort());

test('times in the text do not change the graph', async () => {
  await open(TIMED);
  const timed = await labels();
  assert.equal(await page.locator('#timemap').count(), 1);
  await open(UNTIMED);
  assert.deepEqual(timed, await labels());
  assert.ok(await isHidden(page.locator('#times')));
});

test('times of day are shown beside the seconds, of this place or of UTC', async () => {
  await open('# time: 2026-11-26T23:59:58.700Z (first sample)\n' + TIMED);
  await page.keyboard.press('z');
  await drag([1, 2], [1, 3]);
  assert.match(await text('details'), /^1\.2 s to 1\.4 s \(23:59:59\.9Z to 00:00:00\.1Z\): /);
  await page.keyboard.press('z');
  await drag([1, 2], [1, 3]);
  const here = await page.evaluate(() => new Date(Date.UTC(2026, 10, 26, 23, 59, 59, 900)).toTimeString().slice(0, 8));
  assert.ok((await text('details')).startsWith(`1.2 s to 1.4 s (${here}`), await text('details'));
  await open(TIMED);
  await drag([1, 2], [1, 3]);
  assert.match(await text('details'), /^1\.2 s to 1\.4 s: /);
});

test('dragging selects a window of time, and Back returns', async () => {
  await open(TIMED);
  await drag([0, 2], [0, 4]);
  assert.equal((await state()).get('v'), 'window:0.2-0.5');
  assert.deepEqual(await labels(), ['all (18 samples, 100%)', 'alpha (12 samples, 66.67%)', 'common (6 samples, 33.33%)',
    'leaf (6 samples, 33.33%)', 'main (18 samples, 100.00%)']);
  assert.equal(await text('path'), '0.2 s to 0.5 s \u00d7all');
  await drag([1, 9], [1, 0]);  // backwards
  assert.equal((await state()).get('v'), 'window:1.0-2.0');
  assert.ok(await isShown('beta') && !await isShown('alpha'));
  await page.goBack();
  assert.ok(await isShown('alpha') && !await isShown('beta'));
  await page.locator('#path .step').click();
  assert.ok(await isShown('alpha') && await isShown('beta'));
  assert.equal((await state()).get('v'), null);
});

test('a window that is being dragged is shown at once', async () => {
  await open(TIMED);
  await page.mouse.move(...await cell(1, 0));
  await page.mouse.down();
  await page.waitForFunction(() => !document.querySelector('#frames g:not(.hidden)[aria-label^="alpha ("]'));
  await page.mouse.move(...await cell(0, 9));
  await page.waitForFunction(() => document.querySelector('#frames g:not(.hidden)[aria-label^="alpha ("]'));
  await page.mouse.up();
  assert.equal((await state()).get('v'), 'window:0.9-1.1');
});

test('the address holds windows; those that the profile does not have are ignored', async () => {
  await open(TIMED, '#v=window:1.0-2.0');
  assert.ok(await isShown('beta') && !await isShown('alpha'));
  for (const name of ['1.0-9.0', '2.0-1.0', 'x', '1e3-2e3', '', '-1-2']) {
    await open(TIMED, '#v=window:' + name);
    assert.ok(await isShown('beta') && await isShown('alpha'), name);
  }
  await open(UNTIMED, '#v=window:1.0-2.0');
  assert.ok(await isShown('beta') && await isShown('alpha'));
});

test('a zoomed frame, a hidden one and a search stay when the window changes', async () => {
  await open(TIMED, '#v=hide:common&p=main&s=leaf');
  await drag([0, 0], [0, 9]);
  assert.equal((await state()).get('p'), 'main');
  assert.equal((await state()).get('s'), 'leaf');
  assert.equal((await state()).get('v'), 'hide:common;window:0.0-1.0');
  assert.ok(await isShown('leaf') && !await isShown('common'));
});

// The same question answered by another program: flamediff of the two windows' text.
test('a second window shows the difference, with the noise that flamediff finds', async () => {
  const random = (() => { let seed = 5; return () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648; })();
  const stacks = Array.from({ length: 40 }, (_, i) => `main;f${i % 7};g${i}`);
  const seconds = [0, 1].map((second) => stacks.map((stack, i) => [stack, Math.floor(random() * (i % 5 === 0 && second ? 90 : 30)) + (i === 3 ? 800 * second : 0)])
    .filter(([, count]) => count > 0));
  const [before, after] = seconds.map((counts) => counts.map(([stack, count]) => `${stack} ${count}\n`).join(''));
  const timed = seconds.map((counts, second) => counts.map(([stack, count]) => `@${second}.000;${stack} ${count}\n`).join('')).join('') +
    '@1.900;main;f0 0.5\n@1.900;main;f0 0.5\n';
  await openBytes(drawDiff(before, after + 'main;f0 1\n', '--width-from', 'both'));
  const expected = new Set(await labels());
  await open(timed, '#v=window:0.0-1.0;against:1.0-2.0');
  const found = await labels();
  const same = found.filter((label) => expected.has(label));
  assert.deepEqual(found.filter((label) => !expected.has(label)), []);
  assert.ok(same.length >= 40, String(same.length));
  for (const verdict of ['more than noise', 'may be noise'])
    assert.ok(same.some((label) => label.includes(verdict)), verdict);
  assert.match(await text('legend'), /grew.*shrank.*new.*gone/);
});

test('Ctrl-drag and the button choose the second window', async () => {
  await open(TIMED);
  await page.locator('#compare').click();
  await drag([0, 0], [0, 9]);  // nothing to compare with yet
  assert.equal((await state()).get('v'), 'window:0.0-1.0');
  await drag([1, 0], [1, 9]);
  assert.equal((await state()).get('v'), 'window:0.0-1.0;against:1.0-2.0');
  assert.match(await frame('alpha').getAttribute('aria-label'), /before 55 samples, 73\.33%; after 0, 0\.00%; gone, -73\.33%/);
  assert.ok(await width('beta') > 0);
  await page.locator('#compare').click();
  await drag([0, 0], [0, 0]);
  assert.equal((await state()).get('v'), 'window:0.0-0.1');
  await page.keyboard.down('Control');
  await drag([1, 0], [1, 0]);
  await page.keyboard.up('Control');
  assert.equal((await state()).get('v'), 'window:0.0-0.1;against:1.0-1.1');
  await page.locator('#path .step').first().click();  // a comparison needs its first window
  assert.equal((await state()).get('v'), null);
});

test('arrow keys select', async () => {
  await open(TIMED);
  await page.locator('#timemap').focus();
  await page.keyboard.press('ArrowRight');
  assert.equal((await state()).get('v'), 'window:1.0-1.1');
  await page.keyboard.press('ArrowUp');
  assert.equal((await state()).get('v'), 'window:0.9-1.0');
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Shift+ArrowDown');
  assert.equal((await state()).get('v'), 'window:0.9-1.2');
  assert.equal(await text('voice'), '0.9 s to 1.2 s: 39 samples');
});

test('the details line tells time, counts and losses', async () => {
  await open(TIMED);
  await page.mouse.move(...await cell(1, 5));
  assert.equal(await text('details'), '1.5 s to 1.6 s: 18 samples, 7 lost');
});

// Returns the different colours of a cell's pixels.
const coloursOf = async (second, tenth) => {
  const [x, y] = await cell(second, tenth);
  return page.locator('#timemap').evaluate((surface, [clientX, clientY]) => {
    const box = surface.getBoundingClientRect();
    const copy = document.createElementNS('http://www.w3.org/1999/xhtml', 'canvas').getContext('2d', { willReadFrequently: true });
    copy.drawImage(surface, box.x - clientX + 3, box.y - clientY + 2);
    const { data } = copy.getImageData(0, 0, 6, 4);
    return new Set(Array.from({ length: data.length / 4 }, (_, i) => data.subarray(4 * i, 4 * i + 3).join())).size;
  }, [x, y]);
};

test('lost samples are hatched', async () => {
  await open(TIMED);
  assert.equal(await coloursOf(1, 4), 1);
  assert.ok(await coloursOf(1, 5) > 1);
});

test('long recordings become a strip', async () => {
  const long = Array.from({ length: 3000 }, (_, i) => `@${String(i).padStart(4, '0')};main;${i < 1500 ? 'early' : 'late'} 1\n`).join('');
  await open(long);
  const box = await page.locator('#timemap').boundingBox();
  await page.mouse.move(box.x + 5, box.y + 5);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 5, box.y + 5);
  await page.mouse.up();
  assert.ok(await isShown('early') && !await isShown('late'));
});

test('icicle, folded recursion and deep stacks keep their times', async () => {
  await open('@0;f;f;g 3\n@1;f;h 4\n@1;f;f;f;i 5\n', '#v=window:1-2', ['--fold-recursion', '--icicle']);
  assert.deepEqual(await labels(), ['all (9 samples, 100%)', 'f (9 samples, 100.00%)', 'h (4 samples, 44.44%)', 'i (5 samples, 55.56%)']);
  await open('@0;a;b;c;d 3\n@1;a;b;c 4\n@1;a;b;e 5\n', '#v=window:1-2', ['--max-depth', '2']);
  assert.deepEqual(await labels(), ['[3 deeper frames] (9 samples, 100.00%)', 'a (9 samples, 100.00%)', 'all (9 samples, 100%)', 'b (9 samples, 100.00%)']);
});

test('counts with decimals, which are finer in steps than in sum', async () => {
  await open('@0;main;f 0.25\n@1;main;f 0.75\n', '#v=window:1-2', ['--countname', 'seconds']);
  assert.match((await labels()).join(), /f \(0\.75 seconds, 100\.00%\)/);
  await page.locator('#path .step').click();
  await live();
  assert.match((await labels()).join(), /f \(1 seconds, 100\.00%\)/);
});

test('a time without counts is an empty graph, in every kind of view', async () => {
  const gap = '@0.000;main;alpha 5\n@0.900;main;beta 6\n@1.000;main;alpha 1\n';
  for (const steps of ['leaf', 'recursion', 'callers:alpha', 'hide:alpha', 'against:0.4-0.6', 'against:0.4-0.6;leaf']) {
    await open(gap, '#v=window:0.2-0.4;' + steps);
    assert.deepEqual((await labels()).map((label) => label.slice(0, 3)), ['all'], steps);
    await page.locator('#path .step').first().click();
    assert.ok(await isShown('main') || steps === 'callers:alpha', steps);
  }
});

test('a zoomed frame without counts in the time gives way to its caller', async () => {
  await open(TIMED, '#p=main%3Bbeta');
  await drag([0, 0], [0, 5]);
  assert.equal((await state()).get('p'), 'main');
  assert.ok(await isShown('alpha'));
});

test('times that begin anywhere keep their names', async () => {
  for (const [start, next, name] of [['0.050', '4.150', '0.05-0.10'], ['1700000000.123456789', '1700000000.123456799', '1700000000.123456789-1700000000.123456790'],
    ['9007199.254740993', '9007199.254740997', '9007199.254740993-9007199.254740994']]) {
    await open(`@${start};main;early 3\n@${next};main;late 4\n`, '#v=window:' + name);
    assert.deepEqual(await labels(), ['all (3 samples, 100%)', 'early (3 samples, 100.00%)', 'main (3 samples, 100.00%)'], name);
    assert.ok((await text('path')).startsWith(name.replace('-', ' s to ')), await text('path'));
  }
});

test('only the last of two windows counts, and matches are of the window', async () => {
  await open(TIMED, '#v=window:0.0-1.0;window:1.0-2.0&s=alpha');
  assert.equal(await page.locator('#path .step').count(), 1);
  assert.ok(await isShown('beta') && !await isShown('alpha'));
  await page.keyboard.press('n');
  assert.equal((await state()).get('p'), null);
});

// In 30 steps, a thread runs, and another waits for a lock and then sleeps.
const WAITS = Array.from({ length: 30 }, (_, step) => {
  const time = `@${Math.floor(step / 10)}.${step % 10}00`;
  return `${time};main;work 100000\n${time};main;rest;${step < 10 ? '[lock]_[o]' : '[sleep]_[o];[still waiting]_[o]'} 300000\n`;
}).join('');

test('a map with waits is a row of bars, which are divided by kind', async () => {
  await open(WAITS);
  const legend = () => page.locator('#times .caption > span').allTextContents();
  assert.deepEqual((await legend()).slice(1), [' on CPU', ' lock', ' sleep']);
  assert.match((await legend())[0], /^Over time; a bar is 100 ms\./);
  const box = await page.locator('#timemap').boundingBox();
  const bar = box.width / 30;
  // From the bottom: a quarter on a CPU, the rest waiting, in the colours of the legend.
  const colors = await page.evaluate(([x, later]) => {
    const map = document.querySelector('#timemap');
    const { data } = map.getContext('2d').getImageData(0, 0, map.width, map.height);
    const ratio = map.width / map.offsetWidth;
    const at = (left, up) => {
      const pixel = 4 * (Math.floor((80 - up) * ratio) * map.width + Math.floor(left * ratio));
      return [...data.slice(pixel, pixel + 3)].join();
    };
    return [at(x, 10), at(x, 40), at(later, 10), at(later, 40)];
  }, [bar * 2.5, bar * 20.5]);
  const marks = await page.locator('#times .mark').evaluateAll((squares) => squares.map((square) => getComputedStyle(square).backgroundColor.replace(/[^0-9,]/g, '')));
  assert.deepEqual(colors, [marks[0], marks[1], marks[0], marks[2]]);
  await page.mouse.move(box.x + bar * 2.5, box.y + 40);
  assert.match(await text('details'), /^0\.2 s to 0\.3 s: .* \(on CPU 25 %, lock 75 %\)$/);
});

test('a thread with the name of a wait is no wait', async () => {
  await open(TIMED.replaceAll('main;', '[lock];'));
  assert.equal(await page.locator('#times .mark').count(), 0);
});
