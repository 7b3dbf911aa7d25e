// Reads the tree that the file carries.  painting/embed.h describes the format.  The reader throws
// if the data does not fit it.
// SPDX-License-Identifier: MIT

function embeddedText(kind) {
  let text = '';
  for (const piece of page.querySelectorAll('metadata.' + kind))
    text += piece.textContent;
  return text;
}

function fromBase64(text) {
  if (Uint8Array.fromBase64)
    return Uint8Array.fromBase64(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i)
    bytes[i] = characters.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class PackedReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  // Reads a LEB128 number.  It is exact up to 2^53.
  number() {
    let value = 0;
    for (let scale = 1; this.at < this.bytes.length; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128)
        return value;
    }
    throw new Error('the embedded tree is cut off');
  }

  take(size) {
    if (size > this.bytes.length - this.at)
      throw new Error('the embedded tree is cut off');
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  // Reads `size` numbers below `limit`: first the lowest bytes of all, next their second bytes, and so on.
  planes(size, limit) {
    const values = new Uint32Array(size);
    for (let shift = 0; shift === 0 || limit - 1 >= 2 ** shift; shift += 8) {
      const plane = this.take(size);
      for (let i = 0; i < size; ++i)
        values[i] |= plane[i] << shift;
    }
    if (values.some((value) => value >= limit))
      throw new Error('the embedded tree has a number that is too large');
    return values;
  }
}

function readNames(tree, reader, count) {
  const texts = new TextDecoder().decode(reader.take(reader.number()));
  const MARK = /_\[[kijlstwo]\]$/;
  tree.names = texts.split('\n').slice(0, count);
  tree.names.forEach((name, number) => {
    tree.names[number] = name.replace(MARK, '');
    if (name.endsWith('_[t]'))
      tree.tailCalls.add(number);
  });
  const different = reader.number();
  const colors = reader.take(3 * different);
  const numbers = reader.planes(count - 1, different);
  tree.colors = [0xdddddd];
  for (const i of numbers)
    tree.colors.push(colors[3 * i] << 16 | colors[3 * i + 1] << 8 | colors[3 * i + 2]);
}

function readNodes(tree, reader, names, hasSpaces) {
  const ESCAPE = 15;
  const size = tree.size;
  const shapes = reader.take(size);
  tree.name = reader.planes(size, names);
  const children = new Uint32Array(size);
  for (let node = 0; node < size; ++node) {
    const shape = shapes[node] & ESCAPE;
    children[node] = shape < ESCAPE ? shape : ESCAPE + reader.number();
  }
  const self = new Float64Array(size);
  for (let node = 0; node < size; ++node) {
    const shape = shapes[node] >> 4;
    self[node] = shape < ESCAPE ? shape : ESCAPE + reader.number();
  }
  tree.link(children);
  tree.total.set(self);
  tree.addUp();
  if (hasSpaces)
    tree.placeBy(tree.total.map(() => reader.number()));
  else
    tree.place((node) => self[node]);
}

function readDifferences(tree, reader, perOne) {
  tree.delta = new Float64Array(tree.size);
  for (let node = 0; node < tree.size; ++node) {
    const code = reader.number() - 1;
    const half = Math.floor(code / 2);
    tree.delta[node] = (code < 0 ? NaN : code % 2 ? -half - 1 : half) / perOne;
  }
}

function zigzag(number) {
  return number % 2 === 1 ? -(number + 1) / 2 : number / 2;
}

function readComparedHead(tree, reader) {
  tree.compared = new Compared(tree.size);
  tree.compared.dimsNoise = reader.number() === 1;
  tree.largestDelta = reader.number() / 1e9;
  const perOne = 10 ** reader.number();
  tree.compared.wholeBefore = reader.number() / perOne;
  tree.compared.wholeAfter = reader.number() / perOne;
}

function readCompared(tree, reader) {
  const { compared } = tree;
  for (const counts of [compared.before, compared.after])
    for (let node = 0; node < tree.size; ++node)
      counts[node] = reader.number();
  compared.noise = reader.take(tree.size);
  for (let node = 0; node < tree.size; ++node)
    if (compared.noise[node] !== Noise.UNKNOWN) {
      compared.low[node] = zigzag(reader.number()) / 1e6;
      compared.high[node] = zigzag(reader.number()) / 1e6;
    }
  tree.delta = new Float64Array(tree.size).map((_, node) => compared.change(node, tree.perOne));
}

function unpackedTree(bytes) {
  const reader = new PackedReader(bytes);
  if (reader.number() !== 1)
    throw new Error('the embedded tree has a form that this script does not know');
  const flags = reader.number();
  if (flags > 31)
    throw new Error('the embedded tree has parts that this script does not know');
  const isDifferential = (flags & 1) !== 0;
  const isCompared = (flags & 4) !== 0;
  const perOne = 10 ** reader.number();
  const names = reader.number();
  const size = reader.number();
  if (size > bytes.length)
    throw new Error('the embedded tree is cut off');
  const tree = new Tree(size);
  tree.perOne = perOne;
  const whole = reader.number();
  tree.smallest = reader.number();
  tree.leftOut = reader.number();
  const largest = isDifferential ? reader.number() : 0;
  const deltasPerOne = isDifferential ? 10 ** reader.number() : 1;
  tree.largestDelta = largest / deltasPerOne;
  if (isCompared)
    readComparedHead(tree, reader);
  readNames(tree, reader, names);
  readNodes(tree, reader, names, (flags & 2) !== 0);
  tree.total[0] = Math.max(tree.total[0], whole);
  if ((flags & 8) !== 0)
    tree.times = Uint32Array.from(tree.name, () => reader.number());
  if (isDifferential)
    readDifferences(tree, reader, deltasPerOne);
  if (isCompared)
    readCompared(tree, reader);
  return tree;
}

// Returns null if the file carries no tree, or this browser cannot read it.
async function embeddedTree() {
  const text = embeddedText('tree');
  if (text === '' || typeof DecompressionStream === 'undefined')
    return null;
  try {
    return unpackedTree(await inflated(fromBase64(text)));
  } catch (error) {
    return null;
  }
}
