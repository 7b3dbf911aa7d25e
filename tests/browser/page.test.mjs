// Tests the page in a real browser: zoom, search, details, address.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import {
  PROFILE, errors, frame, hasClass, isDimmed, isHidden, isShown, left, matches, open, page, row, scrollTo, searchFor, state, text, width,
} from './harness.mjs';

test('pointing at a frame shows its details, leaving it the hint', async () => {
  await open();
  const hint = await text('details');
  assert.match(hint, /x-axis is not time/);
  await frame('parse').hover();
  assert.equal(await text('details'), '50 samples, 50.00% · self 0.00% — parse');
  assert.equal(await page.locator('#frames > title').textContent(), 'parse (50 samples, 50.00%)');
  await frame('alloc').hover();
  assert.equal(await text('details'), '20 samples, 20.00% · self 20.00% · in all 2 places 40.00% — alloc');
  await page.mouse.move(600, 20);
  assert.equal(await text('details'), hint);
});

test('a click zooms, dims the callers, hides the others; Reset Zoom leads back', async () => {
  await open();
  const reset = page.locator('#unzoom');
  assert.ok(await isHidden(reset));
  await frame('run').click();
  assert.equal(await width('run'), 1180);
  assert.equal(await width('main'), 1180);
  assert.ok(await isDimmed('main'));
  assert.ok(await isDimmed('all'));
  assert.ok(!await isDimmed('run'));
  assert.ok(!await isShown('parse'));
  assert.ok(!await isShown('other'));
  assert.equal(await width('grow'), 472);
  await reset.click();
  assert.equal(await width('run'), 295);
  assert.ok(await isShown('parse'));
  assert.ok(!await isDimmed('main'));
  assert.ok(await isHidden(reset));
});

test('a dimmed caller can be clicked, too', async () => {
  await open();
  await frame('grow').click();
  await frame('run').click();
  assert.equal(await width('grow'), 472);
});

test('labels are cut with dots, and whole again where there is room', async () => {
  const name = 'a_function_with_quite_a_long_name_that_does_not_fit_its_frame_at_first';
  await open();
  assert.match(await frame(name).locator('text').textContent(), /^a_fun.*\.\.$/);
  await frame(name).click();
  assert.equal(await frame(name).locator('text').textContent(), name + ' 5.00%');
  const inside = await frame(name).evaluate((group) => group.querySelector('text').getBBox().width <=
    group.querySelector('rect').getBBox().width);
  assert.ok(inside);
});

test('Icicle turns the graph upside down and back', async () => {
  await open();
  const rows = async () => [await row('all'), await row('main'), await row('grow')];
  assert.deepEqual(await rows(), [4, 3, 0]);
  await page.locator('#invert').click();
  assert.deepEqual(await rows(), [0, 1, 4]);
  assert.equal(await page.locator('#invert').getAttribute('aria-pressed'), 'true');
  await frame('parse').hover();
  assert.match(await text('details'), /^50 samples, 50\.00%.* parse$/);
  await page.locator('#invert').click();
  assert.deepEqual(await rows(), [4, 3, 0]);
});

test('Left heavy puts the largest callees first, and zoom and search stay', async () => {
  await open('main;a;x 1\nmain;b;y 5\nmain;c;x 3\n');
  const order = async () => [await left('a'), await left('b'), await left('c')].map(Math.round);
  assert.deepEqual(await order(), [10, 141, 797]);
  await searchFor('x');
  await page.locator('#heavy').click();
  assert.deepEqual(await order(), [1059, 10, 666]);
  assert.equal(await matches(), 2);
  await frame('c').click();
  assert.equal(await width('c'), 1180);
  assert.equal(await text('matched'), 'Matched: 44.44% (of this view: 100.00%)');
  await page.locator('#heavy').click();
  assert.equal(await width('c'), 1180);
  await page.locator('#unzoom').click();
  assert.deepEqual(await order(), [10, 141, 797]);
});

test('search highlights by name and counts each sample once', async () => {
  await open();
  await searchFor('alloc|grow');
  assert.equal(await matches(), 3);  // grow is above an alloc
  assert.equal(await text('matched'), 'Matched: 40.00%');
  await page.locator('#search').fill('');
  assert.equal(await matches(), 0);
  assert.equal(await text('matched'), '');
});

test('search sees neither counts nor the root', async () => {
  await open();
  await searchFor('samples|%');
  assert.equal(await matches(), 0);
  assert.equal(await text('matched'), 'Matched: 0.00%');
  await searchFor('^all$');
  assert.equal(await matches(), 0);
});

test('a countname with brackets does not leak into names', async () => {
  for (const embed of ['3M', 'none']) {
    await open(PROFILE, '#s=bytes', ['--countname', 'bytes (live) (all)', '--embed', embed]);
    assert.equal(await text('matched'), 'Matched: 0.00%');
    await searchFor('^alloc$');
    assert.equal(await matches(), 2);
  }
});

test('the matched share is right while zoomed', async () => {
  await open();
  await searchFor('alloc');
  await frame('run').click();
  assert.equal(await text('matched'), 'Matched: 40.00% (of this view: 80.00%)');
  await frame('grow').click();
  assert.equal(await text('matched'), 'Matched: 40.00% (of this view: 100.00%)');
  await page.locator('#unzoom').click();
  assert.equal(await text('matched'), 'Matched: 40.00%');
});

test('what is no regular expression is searched as plain text, and the next one works', async () => {
  await open();
  await searchFor('al(loc');
  assert.equal(await text('matched'), 'Matched: 0.00%, as plain text');
  assert.equal(await matches(), 0);
  await searchFor('al(loc; (?=x); spin');
  assert.equal(await text('matched'), 'Matched: al(loc 0.00%, (?=x) 0.00%, spin 25.00%; together 25.00%, as plain text: al(loc, (?=x)');
  await searchFor('spin');
  assert.equal(await text('matched'), 'Matched: 25.00%');
});

test('names of C++ are found as they are, and expressions still match', async () => {
  await open('main;alloc::alloc 20\nmain;std::operator[]<int>(a, b) 19\nmain;f(int*, C++)_[i] 17\nmain;f(int) 4\nmain;fint 40\n');
  for (const [term, share, end = ''] of [['operator[]', '19', ', as plain text'], ['std::operator[]<int>(a, b)', '19'], ['f(int*, C++)', '17'],
    ['C++', '17', ', as plain text'], ['f(int)', '4'], ['f(int|x)$', '40'], ['^alloc', '20'], ['f\\(', '21']]) {
    await searchFor(term);
    assert.equal(await text('matched'), `Matched: ${share}.00%${end}`, term);
  }
  await page.keyboard.press('Control+i');
  await searchFor('OPERATOR[]');
  assert.equal(await text('matched'), 'Matched: 19.00%, as plain text, ignoring case');
});

test('a slash can be searched for', async () => {
  await open('net/http;read 1\n');
  await searchFor('net/http');
  assert.equal(await matches(), 1);
});

test('buttons, bar and search field stay in view of a picture higher than the window', async () => {
  await open('a' + ';f'.repeat(100) + ' 1');
  const isInView = (locator) => locator.evaluate((element) => {
    const { top: upper, bottom } = element.getBoundingClientRect();
    return upper >= 0 && bottom <= window.innerHeight;
  });
  for (const y of [0, 500, 5000]) {
    await scrollTo(y);
    await page.waitForTimeout(100);
    assert.ok(await isInView(page.locator('#details')), `details at ${y}`);
    assert.ok(await isInView(page.locator('#heavy')), `buttons at ${y}`);
    await page.keyboard.press('/');
    assert.ok(await isInView(page.locator('#search')), `field at ${y}`);
    await page.keyboard.press('Escape');
  }
});

test('rows are drawn as they are scrolled into sight', async () => {
  let stack = 'f0';
  for (let i = 1; i < 3000; ++i)
    stack += ';f' + i;
  await open(stack + ' 1');
  assert.ok(await page.locator('#frames > g').count() < 200);
  await scrollTo(0);
  await page.waitForSelector('#frames > g:not(.hidden)[aria-label^="f2999 ("]');
  await page.locator('#scroller').evaluate((scroller) => { scroller.scrollTop = scroller.scrollHeight / 2; });
  await page.waitForSelector('#frames > g:not(.hidden)[aria-label^="f1500 ("]');
  assert.ok(!await isShown('f2999'));
  await scrollTo(1e6);
  await page.waitForSelector('#frames > g:not(.hidden)[aria-label^="f0 ("]');
});

test('the row of the zoomed frame stays where it is in the window', async () => {
  await open('a' + ';f'.repeat(400) + ' 100');
  await scrollTo(3000);
  const shown = await page.waitForFunction(() => document.elementFromPoint(600, 200)?.closest('#frames g[aria-level]')?.getAttribute('aria-level'));
  const level = await shown.jsonValue();
  const place = (of) => page.locator(`#frames g[aria-level="${of}"]:not(.hidden) rect`).evaluate((rect) => rect.getBoundingClientRect().top);
  const before = await place(level);
  await page.mouse.click(600, before + 5);
  const path = await page.locator('#path').evaluate((element) => element.offsetHeight);
  const isKept = async () => Math.abs(await place(level) - before - path) < 1;  // the path above the graph moves all of it
  assert.ok(await isKept());
  assert.ok(await hasClass(page.locator(`#frames g[aria-level="${level - 1}"]:not(.hidden)`), 'above'));
  await page.locator('#invert').click();
  assert.equal(await page.locator('#invert').getAttribute('aria-pressed'), 'true');
  assert.ok(await isKept());
});

test('the address keeps zoom, search, Icicle and Left heavy', async () => {
  await open();
  await searchFor('al+oc');
  await frame('run').click();
  assert.deepEqual([...await state()], [['p', 'main;run'], ['s', 'al+oc']]);
  assert.equal((await state()).get('s'), 'al+oc');
  await page.locator('#invert').click();
  await page.locator('#heavy').click();
  assert.deepEqual([...(await state()).keys()], ['p', 's', 'i', 'h']);
  await page.reload();
  await page.waitForSelector('svg.live');
  assert.equal(await width('run'), 1180);
  assert.equal(await text('matched'), 'Matched: 40.00% (of this view: 80.00%)');
  assert.equal(await row('all'), 0);
  assert.equal(await page.locator('#heavy').getAttribute('aria-pressed'), 'true');
});

test('an address finds frames of one part in a million', async () => {
  let profile = 'main;wide 1000000\n';
  for (let i = 0; i < 50; ++i)
    profile += `main;zoo;narrow${i} 1\n`;
  await open(profile);
  await page.locator('#cursor').focus();
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'ArrowUp', 'ArrowRight', 'ArrowRight', 'Enter'])
    await page.keyboard.press(key);
  const zoomed = await page.locator('#cursor').getAttribute('aria-label');
  assert.match(zoomed, /^narrow/);
  const name = zoomed.split(' ')[0];
  assert.equal(await width(name), 1180);
  await page.reload();
  await page.waitForSelector('svg.live');
  assert.equal(await width(name), 1180);
});

test('the browser\'s Back leads to the view before', async () => {
  await open();
  await frame('run').click();
  await frame('grow').click();
  await page.goBack();
  await page.waitForFunction(() => !location.hash.includes('grow'));
  assert.equal(await width('run'), 1180);
  assert.equal(await width('grow'), 472);
  await page.goBack();
  await page.waitForFunction(() => location.hash === '');
  assert.equal(await width('run'), 295);
});

test('a link finds its frame in another recording, as far as that has it', async () => {
  const deep = 'main' + ';a_rather_long_name_of_a_function'.repeat(80);
  await open(deep + ' 9\nother 3\n');
  await page.locator('#cursor').focus();
  for (let i = 0; i < 60; ++i)
    await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  const level = () => page.locator('#frames g:not(.hidden):not(.above)').evaluateAll((groups) =>
    Math.min(...groups.map((group) => Number(group.getAttribute('aria-level')))));
  assert.equal(await level(), 61);
  const { hash } = new URL(page.url());
  assert.ok(hash.length < 60, hash);
  await open('aaa;new 100\n' + deep + ' 50\nmain;b 7\n', hash);
  assert.equal(await level(), 61);
  await open('main;run;hash 5\nmain;x 9\n', '#p=main;run;gone;away');
  assert.equal(await width('run'), 1180);
});

test('state is read from behind a question mark, and when the hash changes', async () => {
  await open(PROFILE, '?s=spin');
  assert.equal(await text('matched'), 'Matched: 25.00%');
  await page.evaluate(() => { location.hash = '#s=read'; });
  await page.waitForFunction(() => document.querySelector('#matched').textContent === 'Matched: 30.00%');
});

test('addresses of one decimal, as flamegraph.pl writes them, find their frame', async () => {
  await open(PROFILE, '#x=600&y=69', ['--height', '16']);
  assert.equal(await width('run'), 1180);
});

test('a nonsense address shows the whole picture', async () => {
  for (const address of ['#x=1e99&y=zzz', '#x=&y=', '#x=10', '#%%%&=&&x=NaN&y=NaN', '?x=<svg>&y=-1&q=1',
    '#s=%5B', '#s=((((', '#constructor=1&__proto__=2', '#x=10&y=1e300', '#x=Infinity&y=Infinity', '#i=2&h=2',
    '#p=nobody;x', '#p=~zz', '#p=%FF', '#v=hide:nobody', '#v=callers', '#v=side:before;what:main;leaf:x']) {
    await open(PROFILE, address);
    assert.equal(await width('main'), 885, address);
    assert.ok(await isShown('other'), address);
  }
  assert.deepEqual(errors, []);
});
