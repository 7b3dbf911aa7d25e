// The page's regular expressions find what RegExp finds, in random expressions and names.
// SPDX-License-Identifier: MIT
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const source = readFileSync(new URL('../../painting/page/expression.js', import.meta.url), 'utf8');
const { Expression, plainText } = new Function(source + '; return { Expression, plainText };')();

const ATOMS = ['a', 'b', 'A', '.', '\\d', '\\w', '\\s', '\\W', '\\D', '\\S', '[ab]', '[^a]', '[a-c]', '[^\\w]', '[\\d-x]', '^', '$', '\\b', '\\B', '::',
  '\\.', 'é', 'ß', 'K', 'ſ', 'µ', '\\x41', '\\u00e9', '[à-ü]', '[^À-Ü]', '\\t', ' ', '}', ']', '{', '-', '\\/', '[a\\]b]', '[-a]', '[a-]', '<', '(?:)', 'x{,2}'];
const REPEATS = ['*', '+', '?', '{2}', '{0,2}', '{1,}', '*?', '+?', '??', '{0}'];
const LETTERS = [...'aabbAcB_ :.0 9éÉßK\u212asſkSxX-[]{}\n\t<>µμΜ\u2028'];

function randomOf(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
}

function patternOf(random, depth = 2) {
  let text = '';
  for (let left = 1 + random(4); left > 0; --left) {
    const kind = depth > 0 ? random(10) : 9;
    text += kind < 2 ? '(' + patternOf(random, depth - 1) + ')' :
      kind < 3 ? '(?:' + patternOf(random, depth - 1) + '|' + patternOf(random, depth - 1) + ')' : ATOMS[random(ATOMS.length)];
    text += random(3) === 0 ? REPEATS[random(REPEATS.length)] : '';
  }
  return text + (random(6) === 0 ? '|' : '');
}

function made(make) {
  try {
    return make();
  } catch (error) {
    assert.ok(error instanceof SyntaxError, String(error));
    return null;
  }
}

test('finds what RegExp finds, with and without case', () => {
  const random = randomOf(1);
  let found = 0;
  for (let round = 0; round < 6000; ++round) {
    const pattern = patternOf(random);
    const flags = random(2) === 1 ? 'i' : '';
    const theirs = made(() => new RegExp(pattern, flags));
    const ours = made(() => new Expression(pattern, flags === 'i', { left: 1e9 }));
    assert.equal(ours === null, theirs === null, `${pattern}: is it an expression?`);
    for (let i = 0; ours !== null && i < 10; ++i) {
      const name = Array.from({ length: random(9) }, () => LETTERS[random(LETTERS.length)]).join('');
      assert.equal(ours.test(name), theirs.test(name), `/${pattern}/${flags} in ${JSON.stringify(name)}`);
      found += Number(theirs.test(name));
    }
  }
  assert.ok(found > 3000);
});

test('refuses what it lacks, and what RE2 refuses', () => {
  for (const pattern of ['(?=a)', '(?!a)', '(?<=a)', '(?<n>a)', '(a)\\1', '\\k<n>', '\\p{L}', '\\cA', '[]', '[^]', 'a++', 'a**', '(', ')', '[a', '[z-a]', '\\',
    'a{3,2}', 'a{3000}', '(a{100}){100}', '('.repeat(200) + ')'.repeat(200)])
    assert.throws(() => new Expression(pattern, false, { left: 1e9 }), SyntaxError, pattern);
});

test('the steps of a search grow with the length of the name', () => {
  const stepsOf = (pattern, length) => {
    const budget = { left: 1e12 };
    new Expression(pattern, false, budget).test('a'.repeat(length) + '\n');
    return 1e12 - budget.left;
  };
  for (const pattern of ['(a|a)*b', '(.|.)+!', 'a?'.repeat(100) + 'a'.repeat(100) + 'b', '(a*)*b', '(a+)+$', '(.*.*.*)*=', '(?:a{0,20}){0,20}b']) {
    const limit = 2100 * 2100;  // of the sets that are met first
    assert.ok(stepsOf(pattern, 20000) - stepsOf(pattern, 10000) < 10000 + limit / 100, pattern);
  }
  assert.throws(() => new Expression('(a|b)*c', false, { left: 1000 }).test('ab'.repeat(1000)), RangeError);
});

test('an expression that is expensive to read, or to compare with a character, does not stop the page', () => {
  assert.equal(new Expression('(?:(?:(?:){2000}){2000}){2000}a', false, { left: 1e9 }).test('ba'), true);
  const ranges = Array.from({ length: 400 }, (_, i) => String.fromCharCode(0x4e00 + 2 * i)).join('');
  assert.throws(() => new Expression('[' + ranges + ']{1000}', false, { left: 1e7 }).test(ranges.repeat(3)), RangeError);
});

test('plain text has no special characters', () => {
  for (const ignoresCase of [false, true]) {
    const finder = plainText('f(int*)[]+{}|^$.?\\', ignoresCase, { left: 1e9 });
    assert.equal(finder.test('xf(int*)[]+{}|^$.?\\y'), true);
    assert.equal(finder.test('F(INT*)[]+{}|^$.?\\'), ignoresCase);
    assert.equal(finder.test('f(int*)[]+{}|^$.?'), false);
  }
});
