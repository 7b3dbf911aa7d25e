// The common code of the page's tests: the browser, drawing a profile, finding frames.
// A test fails if its page writes to the console or throws.
// SPDX-License-Identifier: MIT
import { before, after, beforeEach, afterEach } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

export const PROFILE = `
main;parse;alloc 20
main;parse;read 30
main;run;alloc 10
main;run;alloc;grow 10
main;run;a_function_with_quite_a_long_name_that_does_not_fit_its_frame_at_first 5
other;spin 25
`;

export const folder = mkdtempSync(join(tmpdir(), 'stackpipe-browser-'));
export let browser;
export let page;  // of the current test
export let errors;

before(async () => {
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    timeout: 0,  // a busy machine decides how long things take; the whole run has a limit
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

export function watch(target) {
  target.on('pageerror', (error) => errors.push(error.message));
  target.on('console', (message) => errors.push(message.text()));
  target.on('dialog', (dialog) => { errors.push('dialog'); dialog.dismiss(); });
  return target;
}

const VIEWPORT = { width: 1250, height: 400 };
let shared;

export async function newTab() {
  const tab = watch(await browser.newPage({ viewport: VIEWPORT }));
  tab.setDefaultTimeout(0);
  return tab;
}

// The rest of the test has a tab of its own, in which this runs before each page.
export async function inOwnTab(script) {
  page = await newTab();
  await page.addInitScript(script);
}

// The tests of a file share a tab: a new one takes 0.2 s of CPU.  Each finds it empty, and as it was at first.
beforeEach(async () => {
  errors = [];
  shared ??= await newTab();
  page = shared;
});

afterEach(async () => {
  if (page !== shared)
    await page.close();
  await shared.goto('about:blank');
  await shared.setViewportSize(VIEWPORT);
  await shared.emulateMedia({ media: null, colorScheme: null, reducedMotion: null, forcedColors: null });
  await shared.mouse.move(0, 0);
  assert.deepEqual(errors, []);
});

// Pages are 1,200 pixels wide, unless the options say another width.
const withWidth = (options) => options.includes('--width') ? options : ['--width', '1200', ...options];

export function draw(profile, ...options) {
  const run = spawnSync(process.env.FLAMESVG, withWidth(options), { input: profile, maxBuffer: 1 << 28 });
  assert.equal(run.status, 0, String(run.stderr));
  return run.stdout;
}

// Draws two profiles by flamediff.
export function drawDiff(before, after, ...options) {
  const files = [before, after].map((profile, i) => {
    const file = join(folder, i === 0 ? 'before' : 'after');
    writeFileSync(file, profile);
    return file;
  });
  const run = spawnSync(process.env.FLAMEDIFF, [...withWidth(options), ...files], { maxBuffer: 1 << 28 });
  assert.equal(run.status, 0, String(run.stderr));
  return run.stdout;
}

export function write(bytes, name = 'page.svg') {
  const file = join(folder, name);
  writeFileSync(file, bytes);
  return pathToFileURL(file).href;
}

// Waits until the script has taken control of the page.
export const live = (where = page) => where.waitForSelector('svg.live', { state: 'attached' });

export async function openBytes(bytes, address = '') {
  const file = write(bytes);
  await page.goto('about:blank');
  await page.goto(file + address);
  await live();
}

export const open = (profile = PROFILE, address = '', options = []) => openBytes(draw(profile, ...options), address);

const escaped = (name) => name.replace(/[\\"]/g, '\\$&');
// Finds a visible frame by its name.
export const frame = (name) => page.locator(`#frames g:not(.hidden)[aria-label^="${escaped(name)} ("]`).first();
export const isShown = async (name) => await page.locator(`#frames g:not(.hidden)[aria-label^="${escaped(name)} ("]`).count() > 0;
export const text = (id) => page.locator('#' + id).textContent();
export const hasClass = async (locator, name) => (await locator.getAttribute('class') || '').split(' ').includes(name);
export const isHidden = (locator) => hasClass(locator, 'hidden');
export const isDimmed = (name) => hasClass(frame(name), 'above');
export const width = async (name) => Number(await frame(name).locator('rect').getAttribute('width'));
export const left = async (name) => Number(await frame(name).locator('rect').getAttribute('x'));
export const top = async (name) => Number(await frame(name).locator('rect').getAttribute('y'));
// Returns the row of a frame, counted from the upper edge of the graph.
export const row = async (name) => Math.floor(await top(name) / await rowHeight());
export const rowHeight = () => page.locator('#frames').evaluate((layer) => Number(layer.dataset.row));
export const scrollTo = (y) => page.locator('#scroller').evaluate((scroller, to) => { scroller.scrollTop = to; }, y);
export const matches = () => page.locator('#frames g.match:not(.hidden)').count();
// The page's own address: the driver learns of a change later.
export const state = async () => new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));

export async function searchFor(expression) {
  await page.keyboard.press('/');
  await page.keyboard.press('Control+a');
  await page.keyboard.type(expression);
  await page.locator('#cursor').focus();
}
