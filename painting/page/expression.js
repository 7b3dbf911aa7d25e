// Regular expressions whose time is linear in the text: an address, which others write, may hold any.
//
// The browser's own expressions backtrack, and nothing can stop them.  This one follows all states at once (Ken Thompson, 1968),
// and keeps the sets of states that it has met.  It finds what RegExp finds.  It has no captures, no look-around and no
// references back; of "[]", "++" and others that RE2 refuses, it says so, too, and the search takes them for plain text.
// SPDX-License-Identifier: MIT

const MOST_STATES = 2000;  // of an expression
const MOST_SETS = 1000;  // kept at a time
const MOST_GROUPS = 100;  // inside each other
// Of a search: one for each character of a name, and for each state of a new set and each range of characters it has.
const STEPS = 3e8;

const WORD = [[48, 57], [65, 90], [95, 95], [97, 122]];
const CLASSES = {
  d: [[48, 57]], w: WORD,
  s: [[9, 13], [32, 32], [160, 160], [5760, 5760], [8192, 8202], [8232, 8233], [8239, 8239], [8287, 8287], [12288, 12288], [65279, 65279]],
};
const CONTROLS = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };
const LINE_ENDS = [[10, 10], [13, 13], [8232, 8233]];

const isIn = (ranges, code) => ranges.some(([first, last]) => code >= first && code <= last);

function outside(ranges) {
  const others = [];
  let next = 0;
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (first > next)
      others.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  return next > 0xffff ? others : [...others, [next, 0xffff]];
}

// Maps a character as RegExp does to ignore case (ECMA-262, Canonicalize).
function upperOf(code) {
  const upper = String.fromCharCode(code).toUpperCase();
  return upper.length !== 1 || code >= 128 && upper.charCodeAt(0) < 128 ? code : upper.charCodeAt(0);
}

// The characters that differ only in case, by the one that stands for them.
const sameCase = {
  of(code) {
    if (!this.known) {
      this.known = new Map();
      for (let other = 0; other < 0x10000; ++other) {
        const upper = upperOf(other);
        if (upper !== other)
          this.known.set(upper, [...this.known.get(upper) || [upper], other]);
      }
    }
    return this.known.get(upperOf(code)) || [code];
  },
};

// Reads an expression into a tree: {all}, {any}, {loop, least, most}, {set, negated} or {at: '^', '$', 'b' or 'B'}.  Throws
// SyntaxError.
class ExpressionReader {
  constructor(text) {
    Object.assign(this, { text, at: 0, depth: 0 });
  }

  fail() {
    throw new SyntaxError(this.text);
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    this.at += found ? found[0].length : 0;
    return found;
  }

  whole() {
    const tree = this.either();
    return this.at < this.text.length ? this.fail() : tree;
  }

  either() {
    if (++this.depth > MOST_GROUPS)
      this.fail();
    const any = [];
    do {
      const all = [];
      while (this.at < this.text.length && !'|)'.includes(this.text[this.at]))
        all.push(this.repeated(this.single()));
      any.push({ all });
    } while (this.take(/\|/y));
    --this.depth;
    return any.length === 1 ? any[0] : { any };
  }

  repeated(item) {
    const found = this.take(/(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y);
    if (!found)
      return item;
    const [, sign, from, comma, to] = found;
    const least = sign ? Number(sign === '+') : Number(from);
    const most = sign ? (sign === '?' ? 1 : Infinity) : !comma ? least : to === '' ? Infinity : Number(to);
    if (item.at || least > most || least > MOST_STATES || this.take(/[*+?]|\{\d+(?:,\d*)?\}/y))
      this.fail();
    return { loop: item, least, most };
  }

  single() {
    const c = this.text[this.at++];
    switch (c) {
      case '(': {
        if (!this.take(/\?:/y) && this.text[this.at] === '?')
          this.fail();
        const inside = this.either();
        return this.take(/\)/y) ? inside : this.fail();
      }
      case '[': return this.choice();
      case '.': return { set: LINE_ENDS, negated: true };
      case '^': case '$': return { at: c };
      case '*': case '+': case '?': return this.fail();
      case '{':
        --this.at;
        if (this.take(/\{\d+(?:,\d*)?\}/y))
          this.fail();
        ++this.at;
        return { set: [[123, 123]] };
      case '\\':
        if (this.take(/b/y))
          return { at: 'b' };
        return this.take(/B/y) ? { at: 'B' } : { set: this.escaped() };
      default: return { set: [[c.charCodeAt(0), c.charCodeAt(0)]] };
    }
  }

  // Returns the ranges of what follows a "\".
  escaped() {
    const code = this.take(/x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})/y);
    if (code)
      return [[parseInt(code[1] || code[2], 16), parseInt(code[1] || code[2], 16)]];
    const c = this.text[this.at++];
    if (c === undefined || /[1-9kcpP]/.test(c) || c === '0' && /\d/.test(this.text[this.at] || ''))
      this.fail();
    const ranges = CLASSES[c.toLowerCase()];
    if (ranges)
      return c === c.toLowerCase() ? ranges : outside(ranges);
    const one = Object.hasOwn(CONTROLS, c) ? CONTROLS[c] : c.charCodeAt(0);
    return [[one, one]];
  }

  choice() {
    const negated = this.take(/\^/y) !== null;
    const set = [];
    if (this.text[this.at] === ']')
      this.fail();
    while (!this.take(/\]/y)) {
      const low = this.member();
      if (this.text[this.at] === '-' && this.at + 1 < this.text.length && this.text[this.at + 1] !== ']') {
        ++this.at;
        const high = this.member();
        if (low.length > 1 || high.length > 1 || low[0][0] !== low[0][1] || high[0][0] !== high[0][1])
          set.push(...low, [45, 45], ...high);
        else
          set.push(low[0][0] <= high[0][0] ? [low[0][0], high[0][0]] : this.fail());
      } else {
        set.push(...low);
      }
    }
    return { set, negated };
  }

  member() {
    if (this.at >= this.text.length)
      this.fail();
    if (this.take(/\\b/y))
      return [[8, 8]];
    if (this.take(/\\/y))
      return this.escaped();
    const code = this.text.charCodeAt(this.at++);
    return [[code, code]];
  }
}

// A program: state i is {set, negated}, {at}, {jumps} or {found}; all but jumps go on to state i + 1.
function compiled(tree) {
  const program = [];
  const push = (state) => {
    if (program.length >= MOST_STATES)
      throw new SyntaxError('too large');
    return program.push(state) - 1;
  };
  const write = (node) => {
    if (node.all) {
      node.all.forEach(write);
    } else if (node.any) {
      const fork = push({ jumps: [] });
      const ends = [];
      for (const part of node.any) {
        program[fork].jumps.push(program.length);
        write(part);
        ends.push(push({ jumps: [] }));
      }
      for (const end of ends)
        program[end].jumps.push(program.length);
    } else if (node.loop) {
      writeLoop(node);
    } else {
      push(node);
    }
  };
  const writeLoop = ({ loop, least, most }) => {
    const first = program.length;
    for (let i = 0; i < least && (i === 0 || program.length > first); ++i)  // a loop over nothing ends
      write(loop);
    if (most === Infinity) {
      const start = push({ jumps: [program.length + 1] });
      write(loop);
      push({ jumps: [start] });
      program[start].jumps.push(program.length);
    } else {
      const skips = [];
      for (let i = least; i < most; ++i) {
        skips.push(push({ jumps: [program.length + 1] }));
        write(loop);
      }
      for (const skip of skips)
        program[skip].jumps.push(program.length);
    }
  };
  write(tree);
  push({ found: true });
  return program;
}

const isWordCode = (code) => isIn(WORD, code);
const START = 0, WORD_BEFORE = 1, OTHER_BEFORE = 2;  // what is before a set of states

class Expression {
  // `budget` has the steps that are left; several expressions share it.  Throws SyntaxError.
  constructor(text, ignoresCase, budget) {
    this.program = compiled(new ExpressionReader(text).whole());
    this.ignoresCase = ignoresCase;
    this.budget = budget;
    this.seen = new Uint32Array(this.program.length);
    this.round = 0;
    this.forget();
  }

  forget() {
    this.sets = new Map();
    this.first = this.setOf([0], START);
  }

  setOf(states, before) {
    const key = before + ':' + states;
    let set = this.sets.get(key);
    if (set === undefined) {
      set = { states, before, next: new Array(128), others: new Map() };
      this.sets.set(key, set);
    }
    return set;
  }

  // Follows jumps and tests of places, before the character `code` (-1: the end).  Returns the states that wait for a
  // character; null if the expression has matched.
  reached({ states, before }, code) {
    const waiting = [];
    const left = [...states];
    const { seen, program } = this;
    const round = ++this.round;
    const isEdge = (before === WORD_BEFORE) !== (code >= 0 && isWordCode(code));
    while (left.length > 0) {
      const at = left.pop();
      if (seen[at] === round)
        continue;
      seen[at] = round;
      this.spend(1);
      const state = program[at];
      if (state.found)
        return null;
      if (state.jumps)
        left.push(...state.jumps);
      else if (state.set)
        waiting.push(at);
      else if (state.at === '^' ? before === START : state.at === '$' ? code < 0 : (state.at === 'b') === isEdge)
        left.push(at + 1);
    }
    return waiting;
  }

  isOf({ set, negated = false }, code) {
    const codes = this.ignoresCase ? sameCase.of(code) : [code];
    this.spend(set.length * codes.length);
    return codes.some((one) => isIn(set, one)) !== negated;
  }

  // Returns the next set; null if the expression matches before the character.
  step(set, code) {
    const waiting = this.reached(set, code);
    const found = waiting === null;
    const states = found ? [] : waiting.filter((at) => this.isOf(this.program[at], code)).map((at) => at + 1);
    states.push(0);  // a match may start anywhere
    if (!found && this.sets.size > MOST_SETS)
      this.forget();
    const next = found || code < 0 ? null : this.setOf(states.sort((a, b) => a - b), isWordCode(code) ? WORD_BEFORE : OTHER_BEFORE);
    if (code < 0)
      set.end = found;
    else if (code < 128)
      set.next[code] = next;
    else
      set.others.set(code, next);
    return next;
  }

  spend(steps) {
    this.budget.left -= steps;
    if (this.budget.left < 0)
      throw new RangeError('too slow');
  }

  // Does the expression match anywhere in the text?  Throws RangeError if no steps are left.
  test(text) {
    this.spend(text.length + 1);
    let set = this.first;
    for (let i = 0; i < text.length; ++i) {
      const code = text.charCodeAt(i);
      let next = code < 128 ? set.next[code] : set.others.get(code);
      if (next === undefined)
        next = this.step(set, code);
      if (next === null)
        return true;
      set = next;
    }
    if (set.end === undefined)
      this.step(set, -1);
    return set.end;
  }
}

// Returns what finds text as it is.  The browser's own search for it can take time that grows with its length.
const plainText = (text, ignoresCase, budget) => new Expression(text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), ignoresCase, budget);
