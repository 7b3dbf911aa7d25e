// Tests how the page adapts to the window, to light and dark mode, and to strict content security policies.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { PROFILE, browser, draw, errors, frame, live, open, page, searchFor, text, width, write } from './harness.mjs';

test('--width auto takes the width of the window, also when that changes', async () => {
  await open(PROFILE, '', ['--width', 'auto']);
  assert.equal(await width('all'), 1230);
  await frame('run').click();
  assert.equal(await width('run'), 1230);
  await page.setViewportSize({ width: 640, height: 400 });
  await page.waitForFunction(() => document.querySelector('#canvas').getAttribute('width') === '640');
  assert.equal(await width('run'), 620);
  for (const id of ['search', 'invert', 'more', 'keys'])
    assert.ok(await page.locator('#' + id).evaluate((tool) => tool.getBoundingClientRect().right <= 640), id);
  const letters = await page.locator('#details').evaluate((line) => line.getBoundingClientRect().height);
  assert.ok(letters > 10 && letters < 20, `${letters}`);
});

test('an HTML page fills the window, and scrolls only the graph', async () => {
  await page.goto(write(draw('a' + ';f'.repeat(300) + ' 100', '--html', '--width', 'auto'), 'page.html'));
  await live();
  assert.ok(await page.evaluate(() => document.scrollingElement.scrollHeight <= innerHeight && document.compatMode === 'CSS1Compat'));
  assert.ok(await page.locator('#scroller').evaluate((scroller) => scroller.scrollHeight > 3 * scroller.clientHeight && scroller.scrollTop > 0));
  assert.equal(await width('all'), 1230);
  await page.keyboard.press('t');
  assert.ok(await page.locator('#side table').isVisible());
});

test('an address of one width is right in another', async () => {
  await open(PROFILE, '', ['--width', 'auto']);
  await frame('run').click();
  const { hash } = new URL(page.url());
  await page.setViewportSize({ width: 700, height: 400 });
  await open(PROFILE, hash, ['--width', 'auto']);
  assert.equal(await width('run'), 680);
});

test('--width auto without script is a picture of 1200 pixels, scaled down to the window', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 600, height: 400 } });
  const plain = await context.newPage();
  await plain.goto(write(draw(PROFILE, '--width', 'auto'), 'auto.svg'));
  const box = await plain.locator('#frames > g').first().boundingBox();
  assert.ok(Math.abs(box.width - 590) < 2, `${box.width}`);
  await context.close();
});

test('a long title is cut, and leaves room for the tools', async () => {
  await page.setViewportSize({ width: 500, height: 400 });
  await open(PROFILE, '', ['--width', 'auto', '--title', 'A title of some length, '.repeat(20)]);
  const title = page.locator('#title');
  assert.ok(await title.isVisible());
  assert.ok(await title.evaluate((element) => element.scrollWidth > element.clientWidth && element.getBoundingClientRect().right <= 500));
  assert.equal(await title.evaluate((element) => getComputedStyle(element).textOverflow), 'ellipsis');
  assert.ok(await page.locator('#more').evaluate((button) => button.getBoundingClientRect().right <= 500));
});

const ink = () => page.evaluate(() => getComputedStyle(document.querySelector('#title')).color);
const LIGHT_INK = 'rgb(28, 28, 28)';

test('the page is dark if the reader prefers that, or with --dark', async () => {
  await open();
  assert.equal(await ink(), LIGHT_INK);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.notEqual(await ink(), LIGHT_INK);
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), 'rgb(22, 23, 27)');
  await page.emulateMedia({ colorScheme: 'light' });
  await open(PROFILE, '', ['--dark']);
  assert.notEqual(await ink(), LIGHT_INK);
});

test('a background that was asked for stays', async () => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(PROFILE, '', ['--bgcolors', '#ffffff']);
  assert.equal(await ink(), LIGHT_INK);
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('#background stop')).stopColor), 'rgb(255, 255, 255)');
});

test('an <img> follows the preference without script', async () => {
  const svg = write(draw(PROFILE), 'dark.svg');
  const shot = async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.goto(write(`<!DOCTYPE html><meta name="color-scheme" content="light dark"><img src="${svg}">`, 'dark.html'));
    return page.screenshot({ clip: { x: 20, y: 20, width: 40, height: 10 } });
  };
  assert.notDeepEqual(await shot('light'), await shot('dark'));
});

test('the page works where a policy allows nothing but its own script, with or without its style', async () => {
  const svg = String(draw(PROFILE, '--width', 'auto'));
  const hash = (tag) => createHash('sha256').update(svg.match(
    new RegExp(`<${tag}><!\\[CDATA\\[([^]*?)\\]\\]></${tag}>`))[1]).digest('base64');
  const policies = [
    `default-src 'none'; script-src 'sha256-${hash('script')}'; style-src 'unsafe-inline'`,
    `default-src 'none'; script-src 'sha256-${hash('script')}'; style-src 'sha256-${hash('style')}'`,
    `default-src 'none'; script-src 'sha256-${hash('script')}'`,
  ];
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'image/svg+xml');
    response.setHeader('Content-Security-Policy', policies[Number(request.url.match(/\d/)[0])]);
    response.end(svg);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  for (const i of [0, 1, 2]) {
    await page.goto(`http://127.0.0.1:${server.address().port}/${i}.svg`);
    await live();
    assert.equal(await page.locator('#frames > g[data-at]').count(), 0);  // the tree was read
    await searchFor('alloc');
    assert.equal(await text('matched'), 'Matched: 40.00%');
    await frame('run').click();
    assert.equal(await width('run'), 1230);
    assert.equal(await page.locator('#app').evaluate((app) => getComputedStyle(app).display), 'flex');
    assert.equal(await page.locator('#hover').evaluate((mark) => getComputedStyle(mark).fill), 'none');
  }
  // The browser reports the style that it refused, once; the script has adopted it.
  assert.match(errors.splice(0).join('\n'), /^Applying inline style violates [^\n]*$/);
  server.close();
});
