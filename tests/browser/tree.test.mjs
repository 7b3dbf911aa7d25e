// Tests the tree that the file carries: zooming reveals frames, and both sources agree.  Also tests files
// without a tree, and browsers that cannot read it.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  PROFILE, browser, draw, folder, frame, hasClass, inOwnTab, isShown, live, open, openBytes, page, rowHeight,
  searchFor, text, top, width, write,
} from './harness.mjs';

function deepProfile(stacks) {
  let seed = 7;
  const random = (below) => {
    seed = (seed * 16807) % 2147483647;
    return Math.floor(seed / 2147483647 * below);
  };
  let profile = '';
  for (let i = 0; i < stacks; ++i) {
    let stack = 'main';
    for (let depth = random(12); depth > 0; --depth)
      stack += ';f' + random(9);
    profile += `${stack} ${random(1000) / 8}\n`;
  }
  return profile;
}

// Returns a line for each visible frame: its label, position, width and colour.
async function everyTitle() {
  return page.evaluate(() => Array.from(document.querySelectorAll('#frames g:not(.hidden)'),
    (group) => `${group.getAttribute('aria-label')} x ${group.querySelector('rect').getAttribute('x')} w ${
      group.querySelector('rect').getAttribute('width')} y ${group.querySelector('rect').getAttribute('y')} ${
      group.querySelector('rect').getAttribute('fill')}`));
}

test('zooming reveals frames that the first view does not have', async () => {
  const profile = 'main;wide 1000000\nmain;zoo;narrow;needle 9\nmain;zoo;other 30\n';
  const svg = String(draw(profile));
  assert.ok(!svg.includes('<title>needle'));
  await open(profile);
  assert.ok(!await isShown('zoo'));
  // The 39 counts are 0.05 pixels at the right end.  The keyboard reaches them, the mouse cannot.
  await page.locator('#cursor').focus();
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'Enter'])
    await page.keyboard.press(key);
  assert.equal(await width('zoo'), 1180);
  assert.equal(await width('needle'), 272.3);
  await frame('needle').click();
  assert.equal(await width('needle'), 1180);
  assert.equal(await text('details'), '9 samples, 0.00% · self 0.00% — needle');
});

test('a page grows when what is revealed is deeper than the first view', async () => {
  const deep = 'zoo' + ';f'.repeat(40);
  await open(`main;wide 1000000\nmain;${deep} 3\n`);
  const height = () => page.locator('#canvas').evaluate((canvas) => Number(canvas.getAttribute('height')));
  const before = await height();
  await page.locator('#cursor').focus();
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowRight', 'Enter'])
    await page.keyboard.press(key);
  assert.equal(await height(), before + 40 * await rowHeight());
  await page.locator('#unzoom').click();
  assert.equal(await height(), before);
});

test('frames below a pixel can be hovered over and clicked', async () => {
  let profile = '';
  for (let i = 0; i < 3000; ++i)
    profile += `main;f${String(i).padStart(4, '0')};g${i} 1\n`;
  await open(profile);
  assert.equal(await page.locator('#frames > g').count(), 2);
  const box = await page.locator('#cursor').evaluate(() => document.querySelector('#frames > g').getBoundingClientRect().toJSON());
  const row = box.y - 2 * await rowHeight() + 7;
  await page.mouse.move(600, row);
  assert.match(await text('details'), /^1 samples, 0\.03%.* f15\d\d$/);
  const pointed = (await text('details')).match(/f\d+$/)[0];
  await page.mouse.click(600, row);
  assert.equal(await width(pointed), 1180);
  assert.equal(await width('g' + Number(pointed.slice(1))), 1180);
});

test('what the script draws is what the file drew', async () => {
  const differential = deepProfile(300).replace(/ ([\d.]+)\n/g, (_, count) => ` ${Math.round(count * 3 % 97)} ${Math.round(count)}\n`);
  for (const options of [[], ['two profiles'], ['two profiles', '--negate', '--factor', '3'], ['--flamechart'], ['--sort', 'width'],
    ['--inverted', '--subtitle', 's', '--max-depth', '5', '--lost', '900', '--colors', 'colorblind'], ['--factor', '2.5', '--total', '25000', '--countname', 'ms'], ['--inverted', '--width', '777.7'],
    ['--colors', 'kind', '--hash', '--height', '20', '--fontsize', '10']]) {
    const isDifferential = options[0] === 'two profiles';
    const profile = isDifferential ? differential : deepProfile(options[0] === '--flamechart' ? 30 : 300);
    if (isDifferential)
      options.shift();
    const svg = String(draw(profile, ...options, '--embed', 'none'));
    const wide = [];
    const pattern = /<g[^>]*><title>([^<]*)<\/title><rect x="([\d.]+)" width="([\d.]+)" y="([\d.]+)" height="\d+" fill="([^"]*)"/g;
    await page.setViewportSize({ width: 1250, height: 900 });
    await open(profile, '', options);
    const lower = Number(svg.match(/<title>all [^]*? y="([\d.]+)"/)[1]) - await top('all');  // below the file's title
    for (const [, title, x, w, y, fill] of svg.matchAll(pattern))
      if (Number(w) > 14.1)
        wide.push(`${title} x ${x} w ${w} y ${y - lower} ${fill}`);
    assert.ok(wide.length > 20, `${wide.length} with ${options}`);
    const drawn = new Set(await everyTitle());
    const missing = wide.filter((line) => !drawn.has(line));
    assert.deepEqual(missing, [], options.join(' '));
  }
});

test('counts left out by a small --embed leave gaps that say so, and move nothing', async () => {
  const profile = deepProfile(3000);
  const limit = ['--embed', '9K'];
  const svg = String(draw(profile, ...limit));
  assert.match(svg, /frames with fewer than [\d,]+ samples are not in this file\.<\/desc>/);
  await page.setViewportSize({ width: 1250, height: 900 });
  await open(profile, '', ['--embed', 'all']);
  const all = new Set(await everyTitle());
  await open(profile, '', limit);
  const kept = await everyTitle();
  assert.ok(kept.length > 20);
  const moved = kept.filter((line) => !all.has(line) && !line.includes('not in this file'));
  assert.deepEqual(moved, []);
  // Gets the upper left corner of the first run of missing frames.
  const [x, y] = (await page.locator('#frames > path[fill="rgb(200,200,200)"]').getAttribute('d')).match(/M(\d+) (\d+)/).slice(1)
    .map((tenths) => tenths / 10);
  const canvas = await page.locator('#canvas').boundingBox();
  await page.mouse.move(canvas.x + x + 0.5, canvas.y + y + 5);
  assert.match(await text('details'), /^[\d,]+ samples, [\d.]+%.* frames with fewer than [\d,]+ samples, not in this file$/);
});

test('without an embedded tree the drawn frames are the model, and are kept', async () => {
  await open(PROFILE, '', ['--embed', 'none']);
  const kept = await page.locator('#frames > g[data-at]').count();
  assert.equal(kept, 11);
  await searchFor('alloc');
  assert.equal(await text('matched'), 'Matched: 40.00%');
  await frame('run').click();
  assert.equal(await width('run'), 1180);
  assert.ok(!await isShown('parse'));
  await page.locator('#heavy').click();
  await page.locator('#invert').click();
  assert.equal(await width('run'), 1180);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#frames > g[data-at]:not(.hidden)').count(), kept);
});

test('links around kept frames stay links', async () => {
  const attributes = join(folder, 'attributes');
  writeFileSync(attributes, 'other\thref=#s=linked\tclass=own\nparse\ttitle=Reads the input\n');
  await open(PROFILE, '', ['--nameattr', attributes]);
  await frame('other').click();
  assert.equal(new URL(page.url()).hash, '#s=linked');
  assert.equal(await width('other'), 295);
  assert.ok(await hasClass(frame('other'), 'own'));
  await searchFor('^parse$');
  assert.equal(await text('matched'), 'Matched: 50.00%');
  await page.locator('#frames g.match').hover();
  assert.equal(await text('details'), 'Reads the input');
});

test('a browser without DecompressionStream, and a damaged tree, fall back to what is drawn', async () => {
  const svg = String(draw(PROFILE));
  const packed = svg.match(/<metadata class="tree">([^<]*)/)[1];
  const bytes = Buffer.from(packed, 'base64');
  const damaged = [packed.slice(0, 40), '', 'not base64!', packed.slice(0, -8), 'AAAA' + packed,
    Buffer.concat([bytes.subarray(0, 20), Buffer.from([1, 2, 3, 4]), bytes.subarray(24)]).toString('base64')];
  for (const text_ of damaged) {
    await openBytes(svg.replace(packed, text_));
    await frame('run').click();
    assert.equal(await width('run'), 1180, text_);
    assert.equal(await page.locator('#frames > g[data-at]').count(), 11);
  }
  await inOwnTab(() => { delete window.DecompressionStream; });
  await openBytes(svg);
  await frame('run').click();
  assert.equal(await width('run'), 1180);
});

test('names that try to be script stay text', async () => {
  const script = '<script>window.hacked = 1</script>';
  const image = '<img src=x onerror="window.hacked = 1">';
  const profile = [
    `${script} 10`, `${image} 10`, `</title>${script} 10`, `]]>${script} 10`, `</metadata>${script} 10`,
    `a" onmouseover="window.hacked=1 10`, `\${window.hacked=1} 10`, `</script>${script} 10`,
    `javascript:window.hacked=1 10`, `__proto__;constructor 10`, `a\u0001b\u0085\uFFFE 10`].join('\n');
  for (const embed of ['all', 'none']) {
    await open(profile.replace(/\n[^\n]*$/, ''), '#s=' + encodeURIComponent(image), ['--title', script, '--nametype', image,
      '--countname', `"${image}`, '--fonttype', `x" onload="window.hacked=1`, '--subtitle', script, '--embed', embed]);
    const groups = page.locator('#frames > g');
    for (let i = 0; i < await groups.count(); ++i) {
      const box = groups.nth(i);
      if (!await box.isVisible())
        continue;
      await box.hover();
      await box.click();
      await page.keyboard.press('Escape');
    }
    await page.locator('#cursor').focus();
    await page.keyboard.press('ArrowUp');
    await searchFor(image);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator('script').count(), 1);
    assert.equal(await page.locator('img').count(), 0);
  }
});

test('without script it is still a picture with tooltips', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  plain.setDefaultTimeout(0);
  await plain.goto(write(draw(PROFILE), 'plain.svg'));
  const svg = readFileSync(folder + '/plain.svg', 'utf8');
  assert.match(svg, /<title>parse \(50 samples, 50\.00%\)<\/title><rect x="10" width="590"/);
  assert.ok(await plain.locator('#search').isHidden());
  assert.ok(await plain.locator('#frames > g').first().isVisible());
  await context.close();
});

test('in an <img> the picture is drawn, and no script runs', async () => {
  const svg = write(draw(PROFILE), 'image.svg');
  await page.goto(write(`<!DOCTYPE html><body style="margin:0"><img src="${svg}">`, 'image.html'));
  const size = await page.locator('img').evaluate((image) => [image.naturalWidth, image.naturalHeight]);
  assert.deepEqual(size, [1200, 160]);
  const pixel = (x, y) => page.screenshot({ clip: { x, y, width: 2, height: 2 } });
  assert.notDeepEqual(await pixel(1000, 92), await pixel(1000, 45));  // `other` is there; above spin there is nothing
});

test('inside an HTML page it works as well', async () => {
  const svg = String(draw(PROFILE)).replace(/<\?xml[^>]*>/, '').replace(/<!\[CDATA\[|\]\]>/g, '');
  await page.goto(write(`<!DOCTYPE html><meta charset="utf-8"><h1>Report</h1>${svg}`, 'report.html'));
  await live();
  await frame('run').click();
  assert.equal(await width('run'), 1180);
});

test('half a million nodes are ordered and searched', async () => {
  let profile = '';
  let matching = 0;
  for (let i = 0; i < 300; ++i)
    for (let j = 0; j < 30; ++j)
      for (let k = 0; k < 30; ++k)
        matching += String((i + j * k) % 1000).startsWith('1');
  for (let i = 0; i < 300; ++i)
    for (let j = 0; j < 30; ++j)
      for (let k = 0; k < 30; ++k)
        profile += `main;f${i};g${j};h${k};leaf${(i + j * k) % 1000} 1\n`;
  await open(profile, '', ['--embed', 'all']);
  await page.locator('#heavy').click();
  assert.equal(await page.locator('#heavy').getAttribute('aria-pressed'), 'true');
  await searchFor('leaf1');
  assert.equal(await text('matched'), `Matched: ${(100 * matching / 270000).toFixed(2)}%`);
});
