// Tests what the page answers: callers, callees, hidden frames, the table, copies, two profiles, facts.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  PROFILE, browser, draw, drawDiff, frame, inOwnTab, isShown, live, matches, open, openBytes, page, row, searchFor,
  state, text, watch, width, write,
} from './harness.mjs';

// Returns the visible frames: "name count" of each, without the root.
async function frames() {
  const labels = await page.locator('#frames g:not(.hidden)').evaluateAll((groups) => groups.map((group) => group.getAttribute('aria-label')));
  return labels.map((label) => label.replace(/ \(([\d,]+) samples.*/, ' $1')).filter((label) => !label.startsWith('all ')).sort();
}

// Opens the menu of a frame and chooses the entry whose text starts like this.
async function choose(name, entry) {
  await frame(name).click({ button: 'right' });
  await page.locator('#menu button', { hasText: new RegExp('^' + entry) }).click();
}

test('callers and callees of all places of a function', async () => {
  await open();
  await choose('alloc', 'Callers');
  assert.deepEqual(await frames(), ['alloc 40', 'main 20', 'main 20', 'parse 20', 'run 20']);
  assert.equal(await frame('all').getAttribute('aria-label'), 'all (40 samples, 40.00%)');
  assert.equal((await state()).get('v'), 'callers:alloc');
  await choose('alloc', 'Callees');
  assert.deepEqual(await frames(), ['alloc 40', 'grow 10']);
  await page.reload();
  await live();
  assert.deepEqual(await frames(), ['alloc 40', 'grow 10']);
  await page.locator('#path .step').click();
  assert.equal(await width('main'), 885);
});

test('a sample of a recursive function counts once among its callers, and in the table', async () => {
  await open('a;f;f;f 3\na;g;f 1\n');
  await choose('f', 'Callers');
  assert.deepEqual(await frames(), ['a 1', 'a 3', 'f 4', 'g 1']);
  await page.keyboard.press('t');
  const rows = await page.locator('#side tbody tr').allTextContents();
  assert.ok(rows.includes('100.00%100.00%f'), rows.join(' '));
});

test('a hidden function gives its time to its callers', async () => {
  await open();
  await choose('run', 'Hide it;');
  const long = 'a_function_with_quite_a_long_name_that_does_not_fit_its_frame_at_first 5';
  assert.deepEqual(await frames(), [long, 'alloc 20', 'alloc 20', 'grow 10', 'main 75', 'other 25', 'parse 50', 'read 30', 'spin 25']);
  await choose('alloc', 'Hide it;');
  assert.deepEqual(await frames(), [long, 'grow 10', 'main 75', 'other 25', 'parse 50', 'read 30', 'spin 25']);
  await frame('parse').hover();
  assert.match(await text('details'), /self 20\.00%/);
  await page.keyboard.press('0');
  assert.equal((await frames()).length, 10);
});

test('a library is hidden as a whole, and coloured as one', async () => {
  await open('main;libc.so.6`read;libc.so.6`sys 4\nmain;app`f;libc.so.6`sys 5\nmain;app`g 1\n');
  for (let i = 0; i < 2; ++i)
    await page.keyboard.press('k');
  const color = (name) => frame(name).locator('rect').getAttribute('fill');
  assert.equal(await color('app`f'), await color('app`g'));
  assert.notEqual(await color('app`f'), await color('libc.so.6`read'));
  await choose('libc.so.6`read', 'Hide its library');
  assert.deepEqual(await frames(), ['app`f 5', 'app`g 1', 'main 10']);
});

test('stacks merge from the leaf, and recursion folds', async () => {
  await open();
  await page.keyboard.press('r');
  const ends = (await frames()).filter((name) => /^(alloc|grow|read|spin) /.test(name));
  assert.deepEqual(ends, ['alloc 10', 'alloc 30', 'grow 10', 'read 30', 'spin 25']);
  assert.equal(await row('read'), await row('all') - 1);
  await open('a;f;f;f;g 3\na;f;h 1\na;f;f 2\n');
  await page.keyboard.press('f');
  assert.deepEqual(await frames(), ['a 6', 'f \u00d73 6', 'g 3', 'h 1']);
  await searchFor('^f$');
  assert.equal(await matches(), 1);
});

test('rare callers of very many are summed up, and nothing is lost', async () => {
  let profile = 'main;hot 10000000\n';
  for (let i = 0; i < 300; ++i)
    profile += `main;cold${i};hot 1\n`;
  await open(profile);
  await choose('hot', 'Callers');
  const labels = (await frames()).map((label) => label.replace(/^frames with fewer than.*summed up /, 'gap '));
  assert.ok(labels.includes('hot 10,000,300'));
  await page.locator('#cursor').focus();
  for (const key of ['Home', 'ArrowUp', 'ArrowUp', 'ArrowLeft'])
    await page.keyboard.press(key);
  const rare = await page.locator('#cursor').getAttribute('aria-label');
  assert.match(rare, /^frames with fewer than 101 samples, summed up \(300 samples/);
});

test('pointing outlines all places of a function', async () => {
  await open();
  await frame('alloc').hover();
  assert.equal((await page.locator('#same').getAttribute('d')).split('M').length - 1, 2);
  await frame('read').hover();
  assert.equal((await page.locator('#same').getAttribute('d')).split('M').length - 1, 1);
});

test('the table sorts, follows the search, and selects in the graph', async () => {
  await open();
  await page.locator('#table').click();
  const rows = () => page.locator('#side tbody tr').evaluateAll((all) => all.map((one) => Array.from(one.children, (cell) => cell.textContent).join(' ')));
  assert.deepEqual((await rows()).slice(0, 3), ['30.00% 40.00% alloc', '30.00% 30.00% read', '25.00% 25.00% spin']);
  await page.locator('#side th button', { hasText: 'Total' }).click();
  assert.deepEqual((await rows()).slice(0, 2), ['0.00% 75.00% main', '0.00% 50.00% parse']);
  await page.locator('#side th button', { hasText: 'Total' }).click();
  assert.match((await rows())[0], /^5\.00% 5\.00% a_function/);
  await searchFor('^r');
  assert.deepEqual((await rows()).sort(), ['0.00% 25.00% run', '30.00% 30.00% read']);
  await page.locator('#side td button', { hasText: 'read' }).click();
  assert.equal(await page.locator('#side tr.selected').count(), 1);
  await page.mouse.move(5, 5);
  assert.equal((await page.locator('#same').getAttribute('d')).split('M').length - 1, 1);
});

test('the table counts from the outermost caller in every view', async () => {
  await open();
  await page.keyboard.press('t');
  const first = () => page.locator('#side tbody tr').first().textContent();
  assert.equal(await first(), '30.00%40.00%alloc');
  await page.keyboard.press('r');
  assert.equal(await first(), '30.00%40.00%alloc');
});

test('several search terms have a colour and a share each; n leads from match to match', async () => {
  await open();
  await searchFor('parse; spin');
  assert.equal(await text('matched'), 'Matched: parse 50.00%, spin 25.00%; together 75.00%');
  const color = (name) => frame(name).locator('rect').getAttribute('fill');
  assert.notEqual(await color('parse'), await color('spin'));
  await page.keyboard.press('n');
  assert.match(await text('matched'), /, 1 of 2$/);
  assert.match(await page.locator('#cursor').getAttribute('aria-label'), /^parse /);
  await page.keyboard.press('n');
  assert.match(await page.locator('#cursor').getAttribute('aria-label'), /^spin /);
  await page.keyboard.press('n');
  assert.match(await text('matched'), /, 1 of 2$/);
  await page.keyboard.press('N');
  assert.match(await text('matched'), /, 2 of 2$/);
});

test('Enter in the search field leads on, and never ends the search', async () => {
  await open();
  await page.keyboard.press('/');
  await page.keyboard.type('alloc');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  assert.equal(await matches(), 2);
  assert.match(await text('matched'), /, 2 of 2$/);
});

test('the page answers, whatever expression its address has', async () => {
  const names = 'main;' + 'a'.repeat(20000) + ' 1\nmain;b 1\n';
  for (const [pattern, share] of [['(a|a)*b', '50'], ['(.|.)+!', '0'], ['a?'.repeat(300) + 'a'.repeat(300) + 'b', '0'],
    ['^(([a-z_])+.)+[A-Z]([a-z_])+$', '0'], ['('.repeat(900) + 'b', '0'], ['(?:a{0,30}){0,30}$', '100']]) {
    await open(names, '#s=' + encodeURIComponent(pattern));
    assert.equal(await page.locator('#search').evaluate((field) => field.value), pattern);
    assert.match(await text('matched'), new RegExp(`^Matched: ${share}.00%`), pattern);
    await searchFor('^b$');
    assert.equal(await text('matched'), 'Matched: 50.00%');
  }
  await open(names, '#s=' + 'x'.repeat(2000));
  assert.equal(await text('matched'), 'Too long to search');
  await open(names, '#v=' + 'hide:x;'.repeat(100000));
  assert.equal(await text('matched'), '');
});

test('a search that takes too many steps is given up', async () => {
  await open(Array.from({ length: 400 }, (_, i) => `${'ab'.repeat(2000)}${i} 1\n`).join(''), '#s=' +
    encodeURIComponent(Array.from({ length: 200 }, (_, i) => `(a|b)*${i}x`).join(';')));
  assert.match(await text('matched'), /^Too slow, simplify it: /);
  await searchFor('1$');
  assert.match(await text('matched'), /^Matched: 10/);
});

test('towers that are narrow at this zoom end in a frame that says how deep they are', async () => {
  await open('main;wide 960\nmain;tower' + ';f'.repeat(500) + ' 40\n');
  const deeper = page.locator('#frames g.deeper:not(.hidden)');
  assert.equal(await deeper.count(), 1);
  const level = Number(await deeper.getAttribute('aria-level'));
  assert.equal(await deeper.locator('text').textContent(), '+' + (503 - level + 1));
  assert.match(await text('details'), new RegExp(` ${503 - level} deeper rows are narrow in this view: zoom to see them\\.$`));
  await deeper.click();
  assert.ok(await page.locator('#frames g.deeper:not(.hidden)').count() === 0);
  assert.equal(Number(await page.locator('#canvas').getAttribute('height')), 503 * await page.locator('#frames').evaluate((layer) => Number(layer.dataset.row)) + 1);
});

test('a page opens on its roots, and fits the window', async () => {
  await open('a' + ';f'.repeat(300) + ' 100');
  const box = await frame('a').boundingBox();
  assert.ok(box.y > 0 && box.y + box.height <= 400);
  assert.ok(await page.evaluate(() => document.documentElement.getBoundingClientRect().height <= innerHeight));
});

test('the root stays in sight when the path above the graph takes room', async () => {
  await open('a' + ';f'.repeat(300) + ' 100');
  await frame('a').click();
  const lower = (selector) => page.locator(selector).evaluate((element) => element.getBoundingClientRect().bottom);
  assert.ok(await page.locator('#path').isVisible());
  assert.ok(await lower('#frames g[aria-level="1"]:not(.hidden) rect') <= await lower('#scroller'));
});

test('name, stack and view are copied', async () => {
  await inOwnTab(() => {
    window.copies = [];
    Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (copied) => { window.copies.push(copied); } } });
  });
  await open();
  await choose('grow', 'Copy its name');
  await choose('grow', 'Copy its stack');
  await frame('run').click();
  await page.keyboard.press('w');
  assert.deepEqual(await page.evaluate(() => window.copies), ['grow', 'main;run;alloc;grow',
    'main;run;a_function_with_quite_a_long_name_that_does_not_fit_its_frame_at_first 5\nmain;run;alloc 10\nmain;run;alloc;grow 10\n']);
});

test('the view is saved as SVG and as PNG', async () => {
  await open(PROFILE, '', ['--title', 'A <title>']);
  const saved = async (key) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press(key)]);
    return readFileSync(await download.path());
  };
  const svg = String(await saved('S'));
  assert.match(svg, /A &lt;title&gt;/);
  assert.ok(svg.includes('>parse<'));
  const png = await saved('P');
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  assert.ok(png.readUInt32BE(16) >= 1200);
  await page.goto(write(svg, 'saved.svg'));
  assert.equal(await page.locator('parsererror').count(), 0);
  assert.ok(await page.locator('rect').count() > 10);
});

test('on paper all rows are drawn, in light colours', async () => {
  let stack = 'f0';
  for (let i = 1; i < 300; ++i)
    stack += ';f' + i;
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(stack + ' 1');
  await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  const copy = page.locator('svg.flamegraph > svg.flamegraph');
  assert.equal(await copy.locator('#frames > g').count(), 301);
  assert.ok(await page.locator('#app').isHidden());
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  assert.equal(await copy.count(), 0);
  assert.ok(await isShown('f0'));
});

test('of two profiles, the widths of either can be seen, and noise dimmed', async () => {
  await openBytes(drawDiff('main;a 300\nmain;b 100\nmain;gone 100\n', 'main;a 100\nmain;b 100\nmain;fresh 200\n', '--period', '1'));
  await page.keyboard.press('b');
  assert.equal(Math.round(await width('a')), Math.round(1180 * 0.6));
  assert.ok(await isShown('gone'));
  assert.ok(!await isShown('fresh'));
  await page.keyboard.press('a');
  assert.equal(Math.round(await width('a')), Math.round(1180 * 0.25));
  assert.ok(await isShown('fresh'));
  assert.ok(!await isShown('gone'));
  assert.match(await frame('a').getAttribute('aria-label'), /before 300 .*after 100, .*, more than noise/);
  await page.keyboard.press('a');
  const dimmed = await page.locator('#frames g.dim:not(.hidden)').count();
  await page.keyboard.press('o');
  assert.notEqual(await page.locator('#frames g.dim:not(.hidden)').count(), dimmed);
});

test('the facts of the recording are listed', async () => {
  await open('# command: make -j8 "<b>x</b>"\n# host: build7\n' + PROFILE);
  assert.equal(await text('title'), 'make -j8 "<b>x</b>"');
  await page.keyboard.press('p');
  const listed = await page.locator('#side dl').evaluate((list) => Array.from(list.children, (item) => item.textContent));
  assert.deepEqual(listed, ['command', 'make -j8 "<b>x</b>"', 'host', 'build7']);
  await open();
  await page.keyboard.press('p');
  assert.ok(await page.locator('#side').isHidden());
});

test('the reader chooses dark or light', async () => {
  await open();
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await paper();
  await page.keyboard.press('d');
  assert.notEqual(await paper(), light);
  await page.keyboard.press('d');
  assert.equal(await paper(), light);
});

test('the list of keys names every action', async () => {
  await open();
  await page.keyboard.press('?');
  const keys = await page.locator('#help kbd').allTextContents();
  for (const key of ['0', 'i', 'n', 'N', 'c', 'e', 'x', 't', '?'])
    assert.ok(keys.includes(key), key);
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('#help').isHidden());
});

test('a label has contrast where callers step back, in light and dark', async () => {
  const luminance = (color) => {
    const [r, g, b] = color.match(/\d+/g).map(Number).map((v) => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const colors of ['hot', 'red', 'java', 'blue', 'chain', 'purple', 'mem', 'kind'])
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await open(PROFILE, '', ['--colors', colors]);
      await frame('grow').click();
      await page.keyboard.press('Escape');
      await frame('run').click();
      const pairs = await page.locator('#frames g:not(.hidden):has(text)').evaluateAll((groups) => groups.map((group) =>
        [group.querySelector('rect').getAttribute('fill'), getComputedStyle(group.querySelector('text')).fill]));
      assert.ok(pairs.length >= 4);
      for (const [fill, ink] of pairs) {
        const [a, b] = [luminance(fill), luminance(ink)].sort((x, y) => y - x);
        assert.ok((a + 0.05) / (b + 0.05) >= 4.5, `${colors} ${colorScheme} ${fill} ${ink}`);
      }
    }
});

test('on a telephone the text has its size, one tap selects and the next zooms', async () => {
  const context = await browser.newContext({
    viewport: { width: 390, height: 660 }, screen: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true,
  });
  const phone = watch(await context.newPage());
  phone.setDefaultTimeout(0);
  await phone.goto(write(draw(PROFILE, '--width', 'auto'), 'phone.svg'));
  await live(phone);
  const shrunk = await phone.evaluate(() => screen.width / innerWidth);
  assert.ok(shrunk < 0.5);  // the browser lays the page out 980 pixels wide
  const line = await phone.locator('#details').evaluate((element) => element.getBoundingClientRect().height);
  assert.ok(line * shrunk > 10, `${line * shrunk}`);
  const run = phone.locator('#frames g[aria-label^="parse ("]');
  const tap = async () => {
    const box = await run.evaluate((group) => group.querySelector('rect').getBoundingClientRect().toJSON());
    await phone.touchscreen.tap(box.x + box.width / 2, box.y + box.height / 2);
  };
  await tap();
  assert.match(await phone.locator('#details').textContent(), /^50 samples.* parse$/);
  assert.equal(new URL(phone.url()).hash, '');
  await tap();
  await phone.waitForFunction(() => location.hash !== '');
  assert.equal(new URL(phone.url()).hash, '#p=main%3Bparse');
  await context.close();
});

test('a function\'s callers and callees are one list, and lead on', async () => {
  await open('main;parse;alloc 20\nmain;run;alloc;grow 10\nmain;run;alloc;alloc;grow 5\nalloc 1\nmain;run 64\n');
  await frame('run').hover();
  await page.mouse.down();
  await page.mouse.up();
  await page.keyboard.press('s');
  const rows = () => page.locator('#side tr, #side p').evaluateAll((all) => all.map((row) => row.innerText.replace(/\s+/g, ' ').trim()));
  assert.deepEqual(await rows(), ['Callers', '79.00% main', 'run 79.00%, self 64.00%', 'Callees', '15.00% alloc', '64.00% itself']);
  await page.locator('#side button', { hasText: 'alloc' }).click();
  assert.deepEqual(await rows(), ['Callers', '20.00% parse', '15.00% run', '1.00% no caller', 'alloc 36.00%, self 21.00%',
    'Callees', '10.00% grow', '5.00% alloc', '21.00% itself']);
  await page.locator('#side button', { hasText: 'run' }).click();
  await page.keyboard.press('s');
  assert.ok(await page.locator('#side').isHidden());
});

test('a function that returned by a tail call has a dashed edge, and its tooltip says so', async () => {
  await open('main;f_[t];g 90\nmain;h 10\n');
  const dashes = (name) => frame(name).locator('rect').evaluate((rect) => getComputedStyle(rect).strokeDasharray);
  assert.equal(await dashes('f'), '3px, 2px');
  assert.equal(await dashes('g'), 'none');
  await frame('f').hover();
  assert.ok((await page.locator('#frames > title').textContent()).includes('returned by a tail call'));
  await frame('g').hover();
  assert.ok(!(await page.locator('#frames > title').textContent()).includes('tail call'));
});

test('recursion that the file folded is counted in labels', async () => {
  await open('main;f;f;f;g 90\nmain;f 10\n', '', ['--fold-recursion']);
  assert.match(await frame('f \u00d73').locator('text').textContent(), /^f \u00d73/);
});

test('a key acts on the frame under the pointer', async () => {
  await open();
  await frame('parse').hover();
  await page.keyboard.press('x');
  assert.equal((await state()).get('v'), 'hide:parse');
});
