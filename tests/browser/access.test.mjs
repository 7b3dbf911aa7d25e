// Tests the page without a mouse: by keyboard, and through a screen reader.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { frame, matches, open, page, searchFor, state, text, width } from './harness.mjs';

const press = async (...keys) => {
  for (const key of keys)
    await page.keyboard.press(key);
};
const current = async () => (await page.locator('#cursor').getAttribute('aria-label')).split(' ')[0];

test('Control-F, F3 and / lead to the search field; Control-I ignores case', async () => {
  await open();
  for (const key of ['Control+f', 'F3', '/']) {
    await page.locator('#cursor').focus();
    await press(key);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'search', key);
  }
  await searchFor('SPIN');
  assert.equal(await matches(), 0);
  await press('Control+i');
  assert.equal(await matches(), 1);
  assert.match(await text('matched'), /^Matched: 25\.00%.*ignoring case/);
});

test('Tab reaches the buttons and the frames, each once', async () => {
  await open();
  const reached = [];
  for (let i = 0; i < 7; ++i) {
    await press('Tab');
    reached.push(await page.evaluate(() => document.activeElement.id));
  }
  assert.deepEqual(reached, ['search', 'invert', 'heavy', 'table', 'more', 'keys', 'cursor']);
});

test('the buttons work from the keyboard', async () => {
  await open();
  await frame('run').click();
  await page.locator('#unzoom').focus();
  await press('Enter');
  assert.equal(await width('run'), 295);
  await page.locator('#heavy').focus();
  await press(' ');
  assert.equal(await page.locator('#heavy').getAttribute('aria-pressed'), 'true');
  await page.locator('#more').focus();
  await press('Enter', 'ArrowDown', 'ArrowDown', 'Enter');
  assert.equal(await page.locator('#path .step').textContent(), 'merged from the leaf ×');
});

test('arrows lead to the heaviest callee, to siblings and back to the caller', async () => {
  await open();
  await page.locator('#cursor').focus();
  const way = [];
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowUp', 'ArrowDown', 'ArrowDown', 'Home',
    'ArrowDown']) {
    await press(key);
    way.push(await current());
  }
  assert.deepEqual(way, ['main', 'parse', 'run', 'run', 'parse', 'read', 'parse', 'main', 'all', 'all']);
});

test('arrows follow the graph when it is an icicle', async () => {
  await open();
  await page.locator('#invert').click();
  await page.locator('#cursor').focus();
  await press('ArrowDown', 'ArrowDown');
  assert.equal(await current(), 'parse');
  await press('ArrowUp');
  assert.equal(await current(), 'main');
});

test('Enter zooms to the frame with the focus, arrows stay in the view', async () => {
  await open();
  await page.locator('#cursor').focus();
  await press('ArrowUp', 'ArrowUp', 'ArrowRight', 'Enter');
  assert.equal(await width('run'), 1180);
  await press('ArrowLeft');
  assert.equal(await current(), 'run');
  await press('ArrowDown');
  assert.equal(await current(), 'main');
  await press('ArrowUp');
  assert.equal(await current(), 'run');
  await press('Escape');
  assert.equal(await width('run'), 295);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'cursor');
});

test('Escape ends search and zoom', async () => {
  await open();
  await searchFor('alloc');
  await frame('run').click();
  await press('Escape');
  assert.equal(await matches(), 0);
  assert.equal(await width('run'), 295);
  assert.equal((await state()).size, 0);
});

test('the frame with the focus is brought into sight', async () => {
  await open('a' + ';f'.repeat(200) + ' 1');
  await page.locator('#cursor').focus();
  await press('Home');
  const isInSight = () => page.locator('#cursor').evaluate((mark) => {
    const { top, bottom } = mark.getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight;
  });
  assert.ok(await isInSight());
  for (let i = 0; i < 60; ++i)
    await press('ArrowUp');
  assert.ok(await isInSight());
});

test('the frame with the focus is announced, and shown in the bar', async () => {
  await open();
  await page.locator('#cursor').focus();
  await press('ArrowUp', 'ArrowUp');
  assert.equal(await text('voice'), 'parse (50 samples, 50.00%), level 3');
  assert.equal(await page.locator('#voice').getAttribute('aria-live'), 'polite');
  assert.match(await text('details'), /^50 samples, 50\.00%.* parse$/);
});

test('a screen reader finds a summary, buttons and a tree with one focused item', async () => {
  await open();
  await page.locator('#cursor').focus();
  await press('ArrowUp', 'ArrowUp');
  const snapshot = await page.accessibility.snapshot({ interestingOnly: false });
  const nodes = [];
  (function walk(node) {
    nodes.push(node);
    (node.children || []).forEach(walk);
  })(snapshot);
  const named = (role) => nodes.filter((node) => node.role === role).map((node) => node.name);
  for (const name of ['Icicle', 'Left heavy', 'Table', 'More', 'Keys'])
    assert.ok(named('button').includes(name), name);
  assert.ok(!named('button').includes('Reset zoom'));
  assert.deepEqual(named('tree'), ['Call tree of 100 samples']);
  const items = named('treeitem');
  for (const name of ['all (100 samples, 100%)', 'main (75 samples, 75.00%)', 'grow (10 samples, 10.00%)'])
    assert.ok(items.includes(name), name);
  const focused = nodes.filter((node) => node.focused);
  assert.deepEqual(focused.map((node) => [node.role, node.name, node.level]), [['treeitem', 'parse (50 samples, 50.00%)', 3]]);
  assert.match(await page.locator('#page-desc').textContent(),
    /100 samples in 6 stacks, 10 frames\. Largest self: alloc 30\.00%, read 30\.00%, spin.*Largest total: main 75\.00%, parse 50\.00%/);
});
