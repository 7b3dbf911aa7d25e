// Tests the page in Firefox: that it starts, zooms, searches, changes its tree and shows its table.
// tests/browser/page.test.mjs has the details.
// SPDX-License-Identifier: MIT
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const PROFILE = 'main;parse;alloc 20\nmain;parse;read 30\nmain;run;alloc 10\nmain;run;alloc;grow 10\nother;spin 30\n';
const folder = mkdtempSync(join(tmpdir(), 'stackpipe-firefox-'));
let browser;
let page;
const errors = [];

before(async () => {
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: '/usr/bin/firefox-esr', headless: true, timeout: 0, protocolTimeout: 0 });
  page = await browser.newPage();
  page.setDefaultTimeout(0);
  await page.setViewport({ width: 1250, height: 500 });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => errors.push(message.text()));
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

async function open(...options) {
  await openAt('', ...options);
}

async function openAt(address, ...options) {
  const run = spawnSync(process.env.FLAMESVG, [...(options.includes('--width') ? [] : ['--width', '1200']), ...options], { input: PROFILE });
  assert.equal(run.status, 0, String(run.stderr));
  const file = join(folder, options.includes('--html') ? 'page.html' : 'page.svg');
  writeFileSync(file, run.stdout);
  await page.goto('about:blank');
  await page.goto(pathToFileURL(file).href + address);
  await page.waitForSelector('svg.live');
}

const labels = () => page.$$eval('#frames g:not(.hidden)', (groups) =>
  groups.map((group) => group.getAttribute('aria-label').replace(/ \((\d+) samples.*/, ' $1')).sort());
const text = (id) => page.$eval('#' + id, (element) => element.textContent);
const middleOf = (name) => page.$$eval('#frames g:not(.hidden)', (groups, wanted) => {
  const box = groups.find((group) => group.getAttribute('aria-label').startsWith(wanted + ' (')).querySelector('rect').getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}, name);

test('the page works in Firefox', async () => {
  await open();
  assert.deepEqual(await labels(), ['all 100', 'alloc 20', 'alloc 20', 'grow 10', 'main 70', 'other 30', 'parse 50', 'read 30', 'run 20', 'spin 30']);
  await page.mouse.move(...await middleOf('parse'));
  assert.match(await text('details'), /^50 samples, 50\.00%.* parse$/);
  await page.mouse.click(...await middleOf('run'));
  assert.deepEqual(await labels(), ['all 100', 'alloc 20', 'grow 10', 'main 70', 'run 20']);
  assert.ok(page.url().endsWith('#p=main%3Brun'));
  await page.keyboard.press('0');
  await page.keyboard.press('/');
  await page.keyboard.type('alloc');
  assert.equal(await text('matched'), 'Matched: 40.00%');
  await page.keyboard.press('Escape');
  await page.mouse.click(...await middleOf('grow'), { button: 'right' });
  await page.keyboard.press('c');
  assert.deepEqual(await labels(), ['all 10', 'alloc 10', 'grow 10', 'main 10', 'run 10']);
  await page.keyboard.press('t');
  assert.equal(await page.$eval('#side tbody tr', (row) => row.textContent), '30.00%40.00%alloc');
  assert.deepEqual(errors, []);
});

test('an HTML page fills the window in Firefox', async () => {
  await open('--html', '--width', 'auto');
  const size = await page.$eval('svg.flamegraph', (svg) => [svg.getBoundingClientRect().width, innerWidth]);
  assert.equal(size[0], size[1]);
  await page.mouse.click(...await middleOf('run'));
  assert.deepEqual(await labels(), ['all 100', 'alloc 20', 'grow 10', 'main 70', 'run 20']);
  assert.deepEqual(errors, []);
});

test('the page answers in Firefox, whatever expression its address has', async () => {
  for (const pattern of ['(a|a)*b', '(.|.)+!', 'a?'.repeat(300) + 'a'.repeat(300) + 'b']) {
    await openAt('#s=' + encodeURIComponent(pattern));
    assert.equal(await page.$eval('#search', (field) => field.value), pattern);
    assert.equal(await text('matched'), 'Matched: 0.00%');
  }
  assert.deepEqual(errors, []);
});
