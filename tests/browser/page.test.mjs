// The page in a real browser: zoom, search, details, address, keyboard, and
// profiles that try to run script.
// SPDX-License-Identifier: MIT
import { test, before, after, beforeEach, afterEach } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const PROFILE = `
main;parse;alloc 20
main;parse;read 30
main;run;alloc 10
main;run;alloc;grow 10
main;run;a_function_with_quite_a_long_name_that_does_not_fit_its_frame_at_first 5
other;spin 25
`;

const folder = mkdtempSync(join(tmpdir(), 'stackpipe-browser-'));
let browser;
let page;
let errors;

before(async () => {
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

beforeEach(async () => {
  page = await browser.newPage({ viewport: { width: 1250, height: 400 } });
  errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => errors.push(message.text()));
  page.on('dialog', (dialog) => { errors.push('dialog'); dialog.dismiss(); });
});

afterEach(async () => {
  await page.close();
  assert.deepEqual(errors, []);
});

function draw(profile, ...options) {
  const run = spawnSync(process.env.FLAMESVG, options, { input: profile, maxBuffer: 1 << 28 });
  assert.equal(run.status, 0, String(run.stderr));
  return run.stdout;
}

async function open(profile = PROFILE, address = '', options = []) {
  const file = join(folder, 'page.svg');
  writeFileSync(file, draw(profile, ...options));
  await page.goto('about:blank');
  await page.goto(pathToFileURL(file) + address);
}

// A frame by the beginning of its title.
const frame = (name) => page.locator('#frames > g', { has: page.locator(`title:text-matches("^${name} ")`) }).first();

const text = (id) => page.locator('#' + id).textContent();
const isHidden = async (locator) => (await locator.getAttribute('class') || '').includes('hidden');
const isDimmed = async (locator) => (await locator.getAttribute('class') || '').includes('above');
const width = async (locator) => Number(await locator.locator('rect').getAttribute('width'));
const matches = () => page.locator('#frames > g.match').count();
const state = () => new URLSearchParams(new URL(page.url()).hash.slice(1));

async function searchFor(expression) {
  await page.keyboard.press('/');
  await page.keyboard.type(expression);
  await page.keyboard.press('Enter');
}

test('pointing at a frame shows its details, leaving it the hint', async () => {
  await open();
  const hint = await text('details');
  assert.match(hint, /x-axis is not time/);
  await frame('parse').hover();
  assert.equal(await text('details'), 'Function: parse (50 samples, 50.00%)');
  await page.mouse.move(600, 20);
  assert.equal(await text('details'), hint);
});

test('a click zooms, dims the callers, hides the others; Reset Zoom leads back', async () => {
  await open();
  const reset = page.locator('#unzoom');
  assert.ok(await isHidden(reset));
  await frame('run').click();
  assert.equal(await width(frame('run')), 1180);
  assert.equal(await width(frame('main')), 1180);
  assert.ok(await isDimmed(frame('main')));
  assert.ok(await isDimmed(frame('all')));
  assert.ok(!await isDimmed(frame('run')));
  assert.ok(await isHidden(frame('parse')));
  assert.ok(await isHidden(frame('other')));
  assert.equal(await width(frame('grow')), 472);
  await reset.click();
  assert.equal(await width(frame('run')), 295);
  assert.ok(!await isHidden(frame('parse')));
  assert.ok(!await isDimmed(frame('main')));
  assert.ok(await isHidden(reset));
});

test('a dimmed caller can be clicked, too', async () => {
  await open();
  await frame('grow').click();
  await frame('run').click();
  assert.equal(await width(frame('grow')), 472);
});

test('labels are cut with dots, and whole again where there is room', async () => {
  await open();
  const long = frame('a_function_with_quite_a_long_name_that_does_not_fit_its_frame_at_first');
  assert.match(await long.locator('text').textContent(), /^a_fun.*\.\.$/);
  await long.click();
  assert.match(await long.locator('text').textContent(), /at_first$/);
  const inside = await long.evaluate((group) => group.querySelector('text').getBBox().width <=
    group.querySelector('rect').getBBox().width);
  assert.ok(inside);
});

test('search highlights by name and counts each sample once', async () => {
  await open();
  await searchFor('alloc|grow');
  assert.equal(await matches(), 3);  // grow is above an alloc
  assert.equal(await text('matched'), 'Matched: 40.00%');
  assert.equal(await text('search'), 'Reset Search');
  await page.locator('#search').click();
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
  await open(PROFILE, '#s=bytes', ['--countname', 'bytes (live) (all)']);
  assert.equal(await text('matched'), 'Matched: 0.00%');
  await searchFor('^alloc$');
  assert.equal(await matches(), 2);
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

test('the bar and the search field stay in view of a picture higher than the window', async () => {
  await open('a' + ';f'.repeat(100) + ' 1');
  const isInView = (locator) => locator.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= window.innerHeight;
  });
  for (const y of [0, 500, 5000]) {
    await page.evaluate((to) => window.scrollTo(0, to), y);
    await page.waitForTimeout(100);
    assert.ok(await isInView(page.locator('#details')), `details at ${y}`);
    await page.keyboard.press('/');
    assert.ok(await isInView(page.locator('input')), `field at ${y}`);
    await page.keyboard.press('Escape');
  }
});

test('a bad regular expression is reported, and the next good one works', async () => {
  await open();
  await searchFor('al(loc');
  assert.equal(await text('matched'), 'Bad regular expression: al(loc');
  assert.equal(await matches(), 0);
  await searchFor('spin');
  assert.equal(await text('matched'), 'Matched: 25.00%');
});

test('Control-F, F3 and / open the search field; Control-I ignores case', async () => {
  await open();
  for (const key of ['Control+f', 'F3', '/']) {
    await page.keyboard.press(key);
    assert.equal(await page.locator('input').count(), 1, key);
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('input').count(), 0, key);
  }
  await searchFor('SPIN');
  assert.equal(await matches(), 0);
  await page.keyboard.press('Control+i');
  assert.equal(await matches(), 1);
  assert.match(await text('matched'), /^Matched: 25\.00%.*ignoring case/);
});

test('a slash can be searched for', async () => {
  await open('net/http;read 1\n');
  await searchFor('net/http');
  assert.equal(await matches(), 1);
});

test('the buttons work from the keyboard', async () => {
  await open();
  await frame('run').click();
  await page.locator('#unzoom').focus();
  await page.keyboard.press('Enter');
  assert.equal(await width(frame('run')), 295);
  await page.locator('#search').focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('input').count(), 1);
});

test('Escape ends search and zoom', async () => {
  await open();
  await searchFor('alloc');
  await frame('run').click();
  await page.keyboard.press('Escape');
  assert.equal(await matches(), 0);
  assert.equal(await width(frame('run')), 295);
  assert.equal(state().size, 0);
});

test('the address keeps zoom and search', async () => {
  await open();
  await searchFor('al+oc');
  await frame('run').click();
  assert.deepEqual([...state().keys()], ['x', 'y', 's']);
  assert.equal(state().get('s'), 'al+oc');
  await page.reload();
  assert.equal(await width(frame('run')), 1180);
  assert.equal(await text('matched'), 'Matched: 40.00% (of this view: 80.00%)');
});

test('state is read from behind a question mark, and when the hash changes', async () => {
  await open(PROFILE, '?s=spin');
  assert.equal(await text('matched'), 'Matched: 25.00%');
  await page.evaluate(() => { location.hash = '#s=read'; });
  await page.waitForFunction(() => document.querySelector('#matched').textContent === 'Matched: 30.00%');
});

test('a nonsense address shows the whole picture', async () => {
  for (const address of ['#x=1e99&y=zzz', '#x=&y=', '#x=10', '#%%%&=&&x=NaN&y=NaN', '?x=<svg>&y=-1&q=1',
    '#s=%5B', '#s=((((', '#constructor=1&__proto__=2']) {
    await open(PROFILE, address);
    assert.equal(await width(frame('main')), 885, address);
    assert.ok(!await isHidden(frame('other')), address);
  }
  assert.deepEqual(errors, []);
});

test('the page works where a policy allows nothing but its own script', async () => {
  const svg = draw(PROFILE);
  const script = String(svg).match(/<script><!\[CDATA\[([^]*?)\]\]><\/script>/)[1];
  const hash = createHash('sha256').update(script).digest('base64');
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'image/svg+xml');
    response.setHeader('Content-Security-Policy',
      `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'`);
    response.end(svg);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  await page.goto(`http://127.0.0.1:${server.address().port}/page.svg`);
  await searchFor('alloc');
  assert.equal(await text('matched'), 'Matched: 40.00%');
  await frame('run').click();
  assert.equal(await width(frame('run')), 1180);
  server.close();
});

test('names that try to be script stay text', async () => {
  const script = '<script>window.hacked = 1</script>';
  const image = '<img src=x onerror="window.hacked = 1">';
  const profile = [
    `${script} 10`, `${image} 10`, `</title>${script} 10`, `]]>${script} 10`,
    `a" onmouseover="window.hacked=1 10`, `\${window.hacked=1} 10`, `</script>${script} 10`,
    `javascript:window.hacked=1 10`, `__proto__;constructor 10`].join('\n');
  await open(profile, '#s=' + encodeURIComponent(image), ['--title', script, '--nametype', image,
    '--countname', `"${image}`, '--fonttype', `x" onload="window.hacked=1`, '--subtitle', script]);
  const groups = page.locator('#frames > g');
  for (let i = 0; i < await groups.count(); ++i) {
    const box = groups.nth(i);
    await box.hover();
    await box.click();
    await page.keyboard.press('Escape');
  }
  await searchFor(image);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('script').count(), 1);
  assert.equal(await page.locator('img').count(), 0);
});

test('without script it is still a picture with tooltips', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  const file = join(folder, 'plain.svg');
  writeFileSync(file, draw(PROFILE));
  await plain.goto(pathToFileURL(file).href);
  const svg = readFileSync(file, 'utf8');
  assert.match(svg, /<title>parse \(50 samples, 50\.00%\)<\/title><rect x="10" width="590"/);
  assert.ok(await plain.locator('#search').isHidden());
  await context.close();
});

test('20,000 frames are zoomed without a long wait', async () => {
  let profile = '';
  for (let i = 0; i < 20000; ++i)
    profile += `main;f${i % 50};g${i} 1\n`;
  await open(profile, '', ['--width', '100000', '--minwidth', '0']);
  const spent = await page.evaluate(() => {
    const group = document.querySelector('#frames > g:nth-child(3)');
    const start = performance.now();
    group.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    return performance.now() - start;
  });
  assert.ok(spent < 5000, `${spent} ms`);
});
