// Checks the output of stackfold --to against the rules of the format and against folded text.
// Usage: exports_check.mjs speedscope|firefox FILE FOLDED
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const [form, file, folded] = process.argv.slice(2);

/** Sums the weights of the folded text by the name of the leaf. */
function leaves(path) {
  const sums = new Map();
  for (const line of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
    const [, stack, count] = /^(.*) (\d+)$/.exec(line);
    const leaf = stack.split(';').at(-1);
    sums.set(leaf, (sums.get(leaf) ?? 0) + Number(count));
  }
  return sums;
}

/** Requires the same leaves, each with the same share of the total, because each format has a unit of its own. */
function sameShares(got, want) {
  const total = (sums) => [...sums.values()].reduce((a, b) => a + b, 0);
  assert.ok(total(got) > 0);
  for (const [name, weight] of want) {
    const share = (got.get(name.replaceAll(';', ':')) ?? 0) / total(got);
    assert.ok(Math.abs(share - weight / total(want)) < 0.002, `${name}: ${share}, not ${weight / total(want)}`);
  }
}

const cleaned = (name) => name.replaceAll(';', ':').trimEnd();

/** Source: file-format-schema.json of speedscope. */
function checkSpeedscope(data) {
  assert.equal(data.$schema, 'https://www.speedscope.app/file-format-schema.json');
  assert.ok(data.activeProfileIndex < data.profiles.length);
  for (const frame of data.shared.frames) assert.equal(typeof frame.name, 'string');
  for (const profile of data.profiles) {
    assert.equal(profile.type, 'sampled');
    assert.ok(['none', 'nanoseconds', 'bytes'].includes(profile.unit));
    assert.equal(profile.samples.length, profile.weights.length);
    assert.equal(profile.weights.reduce((a, b) => a + b, 0), profile.endValue - profile.startValue);
    for (const sample of profile.samples)
      for (const frame of sample) assert.ok(frame >= 0 && frame < data.shared.frames.length);
  }
  const shown = data.profiles[data.activeProfileIndex];
  const sums = new Map();
  shown.samples.forEach((sample, i) => {
    const leaf = cleaned(data.shared.frames[sample.at(-1)].name);
    sums.set(leaf, (sums.get(leaf) ?? 0) + shown.weights[i]);
  });
  // The list of each thread, ordered by time, holds a part of the list of all.
  const isOne = !data.profiles.some(({ name }) => name.startsWith(`${shown.name}: `));
  const threads = data.profiles.filter((other) => other !== shown && (isOne || other.name.startsWith(`${shown.name}: `)));
  if (threads.length > 0) assert.equal(threads.reduce((sum, { endValue }) => sum + endValue, 0), shown.endValue);
  return sums;
}

/** Source: src/types/profile.ts and docs-developer/CHANGELOG-formats.md of the Firefox Profiler, version 60. */
function checkFirefox(data) {
  assert.equal(data.meta.preprocessedProfileVersion, 60);
  assert.ok(data.meta.interval > 0);
  assert.ok(data.meta.categories.some(({ color }) => color === 'grey'));
  for (const category of data.meta.categories) assert.equal(category.subcategories[0], 'Other');
  const { stackTable, frameTable, funcTable, resourceTable, sources, stringArray } = data.shared;
  for (const table of [stackTable, frameTable, funcTable, resourceTable, sources, data.shared.nativeSymbols])
    for (const [name, column] of Object.entries(table))
      if (name !== 'length') assert.equal(column.length, table.length, name);
  const inside = (index, length, orNull) => (orNull && (index === null || index === -1)) || (Number.isInteger(index) && index >= 0 && index < length);
  stackTable.frame.forEach((frame) => assert.ok(inside(frame, frameTable.length)));
  stackTable.prefix.forEach((prefix, i) => assert.ok(inside(prefix, i, true), 'callers come first'));
  frameTable.func.forEach((func) => assert.ok(inside(func, funcTable.length)));
  frameTable.category.forEach((category) => assert.ok(inside(category, data.meta.categories.length)));
  frameTable.inlineDepth.forEach((depth, i) => assert.ok(depth === 0 || frameTable.address[i] === frameTable.address[i - 1]));
  funcTable.name.forEach((name) => assert.ok(inside(name, stringArray.length)));
  funcTable.resource.forEach((resource) => assert.ok(inside(resource, resourceTable.length, true)));
  funcTable.source.forEach((source) => assert.ok(inside(source, sources.length, true)));
  resourceTable.lib.forEach((lib) => assert.ok(inside(lib, data.libs.length)));
  sources.filename.forEach((name) => assert.ok(inside(name, stringArray.length)));
  const ids = new Set();
  const sums = new Map();
  for (const thread of data.threads) {
    assert.equal(typeof thread.pid, 'string');
    assert.ok(!ids.has(`${thread.name} ${thread.pid} ${thread.tid}`), 'a thread twice');
    ids.add(`${thread.name} ${thread.pid} ${thread.tid}`);
    const { stack, time, weight, weightType, length } = thread.samples;
    assert.ok(['samples', 'tracing-ms', 'bytes'].includes(weightType));
    for (const column of [stack, time, weight ?? stack]) assert.equal(column.length, length);
    time.forEach((at, i) => assert.ok(at >= (time[i - 1] ?? 0), 'time runs forward'));
    const isFirst = thread.name.split(': ')[0] === data.threads[0].name.split(': ')[0] || !data.threads[0].name.includes(': ');
    stack.forEach((index, i) => {
      assert.ok(inside(index, stackTable.length));
      const leaf = cleaned(stringArray[funcTable.name[frameTable.func[stackTable.frame[index]]]]);
      if (isFirst) sums.set(leaf, (sums.get(leaf) ?? 0) + (weight?.[i] ?? 1));
    });
  }
  return sums;
}

const data = JSON.parse(readFileSync(file, 'utf8'));
sameShares(form === 'speedscope' ? checkSpeedscope(data) : checkFirefox(data), leaves(folded));
