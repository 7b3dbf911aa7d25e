// speedscope's own page opens the output of stackfold --to speedscope.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { browser, folder } from './harness.mjs';

const PROFILE = 'main;parse;alloc 20\nmain;parse;read 30\nmain;run;<b>&amp;"\\ 50\n';

// Opens the file like speedscope's own command: the page loads a script that hands the file over.
async function openInSpeedscope(page, bytes) {
  const release = join(dirname(createRequire(import.meta.url).resolve('speedscope/package.json')), 'dist/release');
  const script = join(folder, 'profile.js');
  writeFileSync(script, `speedscope.loadFileFromBase64("profile.json", ${JSON.stringify(bytes.toString('base64'))})`);
  await page.goto(`${pathToFileURL(join(release, 'index.html'))}#localProfilePath=${script}`);
}

test('every function has its weight in the sandwich view', async () => {
  const run = spawnSync(process.env.STACKFOLD, ['--to', 'speedscope'], { input: PROFILE });
  assert.equal(run.status, 0, String(run.stderr));
  const page = await browser.newPage();  // not watched: its console has speedscope's own messages
  page.setDefaultTimeout(0);
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await openInSpeedscope(page, run.stdout);
  await page.getByText('Sandwich').click();
  await page.getByText('Symbol Name').waitFor();
  const rows = await page.locator('tr').allInnerTexts();
  const told = rows.map((row) => row.split(/\s+/).filter((word) => word !== '' && !/^\(.*%\)$/.test(word)).join(' '));
  assert.deepEqual(told.filter((row) => /^\d/.test(row)).sort(), [
    '100 0 main', '20 20 alloc', '30 30 read', '50 0 <b>&amp', '50 0 parse', '50 0 run', '50 50 "\\',
  ]);
  assert.deepEqual(errors, []);
  await page.close();
});
