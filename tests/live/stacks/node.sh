#!/bin/bash
# The functions of a Node program that was started without any flag have names, between the native functions that
# call them and that they call: interpreted, compiled and inlined ones; in shares, recursion, callbacks from a sort
# and a replacement, closures, methods, generators, asynchronous functions, exceptions and worker threads.  No
# function has a caller that it cannot have.  Node's own profiler finds the same shares.
. "$(dirname "$0")/../lib.sh"
command -v node >/dev/null || skip 'no node'
case $(node -p 'process.versions.v8.split(".").slice(0, 2).join(".")') in
  10.2 | 11.3 | 12.4 | 13.6 | 14.1 | 14.6) ;;
  *) skip "frames of Node $(node -p process.version) are not known" ;;
esac
! pe-record -F 997 -o "$dir/try.pe" -- node -e 'for (let i = 0; i < 1e8; ++i) {}' 2>&1 | grep 'a stripped Node' || skip 'node is stripped'
cat >"$dir/work.js" <<'END'
'use strict';
const zlib = require('zlib'), fs = require('fs'), threads = require('worker_threads');
let sink = 0;
function wVary(n) { return n * (0.5 + Math.random()); }
function wSpin(n) {
  let x = 1;
  for (let i = 0; i < n; ++i) x = (x * 48271 + i) % 2147483647;
  return x;
}
function wFifty() { sink += wSpin(wVary(50000)); }
function wThirty() { sink += wSpin(wVary(30000)); }
function wTwenty() { sink += wSpin(wVary(20000)); }
function wShares() {
  wFifty();
  wThirty();
  wTwenty();
}

function wDeep(n) { if (n > 0) wDeep(n - 1); else wBottom(); }
function wBottom() { sink += wSpin(wVary(10000)); }
function wRecursion() { wDeep(200); }

function wKey(a) { for (let i = 0; i < 20; ++i) a = (a * 17 + i) & 65535; return a; }
function wCompare(a, b) { return wKey(a) - wKey(b); }
const numbers = Array.from({ length: 300 }, (_, i) => i * 7919 % 1009);
function wSorts() { sink += [...numbers].sort(wCompare)[3]; }
function wReplacement(text) { sink += wSpin(wVary(200)); return text; }
function wReplaces() { sink += 'some text of several words'.replace(/[a-z]+/g, wReplacement).length; }

const content = Buffer.alloc(50000, 1).map((_, i) => i * i >> 3);
function wCompresses() { sink += zlib.deflateSync(content).length; }

function wMakes(factor) { return function wClosure(n) { sink += wSpin(wVary(factor * n)); }; }
const closure = wMakes(100);
class Worker { wMethod(n) { sink += wSpin(wVary(n)); } }
const worker = new Worker();
function wObjects() { closure(50); worker.wMethod(5000); }
function* wGenerator() { for (let i = 0; i < 5; ++i) { sink += wSpin(wVary(1000)); yield i; } }
function wGenerates() { for (const i of wGenerator()) sink += i; }
async function wAsync() { sink += wSpin(wVary(3000)); await null; wAfter(); }
function wAfter() { sink += wSpin(wVary(5000)); }
function wFails(n) { if (n > 0) wFails(n - 1); else throw new RangeError('no'); }
function wCatches() { for (let i = 0; i < 10; ++i) try { wFails(i); } catch (e) { sink += e.stack.length; } }

function wAll() {
  wShares();
  wRecursion(); wSorts(); wReplaces(); wCompresses(); wObjects(); wGenerates(); wCatches();
}
let rounds = 0;
function wTick() {
  wAll();
  wAsync();
  ++rounds;
  if (rounds === 30 && threads.isMainThread && process.argv[2]) fs.writeFileSync(process.argv[2], '');
  if (rounds < (process.argv[3] || Infinity)) setImmediate(wTick);
}
if (threads.isMainThread && !process.argv[3]) new threads.Worker(__filename, { argv: [] });
setImmediate(wTick);
END
# Prints each pair of a function of the program and its next outer one that the program does not have.
cat >"$dir/pairs.awk" <<'END'
BEGIN {
  split("Fifty<Shares Thirty<Shares Twenty<Shares Shares<All Deep<Recursion Deep<Deep Bottom<Deep Recursion<All " \
        "Compare<Sorts Key<Compare Sorts<All Replacement<Replaces Replaces<All Compresses<All Closure<Objects " \
        "Method<Objects Objects<All Generator<Generates Generates<All Fails<Catches Fails<Fails Catches<All " \
        "All<Tick Async<Tick Async< After<Async Tick<", pairs, " ")
  for (i in pairs) legal[pairs[i]] = 1
  split("Fifty Thirty Twenty Bottom Replacement Closure Method Generator Async After", spins, " ")
  for (i in spins) legal["Spin<" spins[i]] = legal["Vary<" spins[i]] = 1
}
/^# / { next }
{
  frames = split($0, frame, ";")
  caller = ""
  for (i = 1; i <= frames; ++i) if (frame[i] ~ /^w[A-Z][a-z]+_\[/) {
    name = substr(frame[i], 2); sub(/_\[.*/, "", name)
    if (caller == "" && name != "Tick" && name != "Async") break  # its outer frames are missing
    if (!((name "<" caller) in legal)) print name "<" caller
    caller = name
  }
}
END
mark='_\[[sji]\];'  # the end of a function's name
# of FUNCTION PATTERN: the percentage of matching stacks among those with a function
of() { grep -E ";w$1$mark" "$dir/folded" >"$dir/part"; share "$2" "$dir/part"; }
start() {  # NODE-OPTION...
  rm -f "$dir/ready"
  node "$@" "$dir/work.js" "$dir/ready" & target=$!
  await "$dir/ready"
}
record() {  # LABEL ENGINE
  until_used 2500 $target pe-record -v --engine "$2" -F 997 -p $target -o "$dir/node.pe" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  unreadable=$(sed -n 's/.* frames\{0,1\} of Node, \([0-9]*\) unreadable.*/\1/p' "$dir/err")
  frames=$(sed -n 's/.* \([0-9]*\) frames\{0,1\} of Node,.*/\1/p' "$dir/err")
  [ "${frames:-0}" -gt 100 ] || fail "$1: details: $(cat "$dir/err")"
  at_least "$1: readable frames, %" 99 "$(awk -v n="$frames" -v u="$unreadable" 'BEGIN { print 100 * (n - u) / n }')"
  pe-symbolize -q "$dir/node.pe" | stackfold --annotate >"$dir/folded"
  expect "$1: pairs of caller and function" '' "$(awk -f "$dir/pairs.awk" "$dir/folded" | sort | uniq -c)"
  grep -E ';w[A-Z][a-z]+_\[' "$dir/folded" >"$dir/node"
  at_least "$1: stacks from the loop, %" 97 "$(share "uv_run.*;w(Tick|Async)$mark" "$dir/node")"
  within "$1: fifty" 50 "$(of Shares ';wFifty_')" 5
  within "$1: thirty" 30 "$(of Shares ';wThirty_')" 5
  within "$1: twenty" 20 "$(of Shares ';wTwenty_')" 5
}
start
engines='ptrace'
for engine in perf bpf; do
  if pe-record -q --engine $engine -o "$dir/try.pe" -- true 2>/dev/null; then engines="$engines $engine"; fi
done
for engine in $engines; do
  record "$engine" "$engine"
  at_least "$engine: compiled, %" 90 "$(of Shares ';wSpin_\[[ji]\]|;w(Fifty|Thirty|Twenty)_\[j\]')"
  at_least "$engine: whole recursion, %" 90 "$(of Recursion "wRecursion$mark(wDeep$mark){201}wBottom_")"
  at_least "$engine: native callees, %" 50 "$(of Compresses ';wCompresses_.*ZlibContext.*deflate')"
  at_least "$engine: callbacks of a sort, %" 50 "$(of Sorts ';Builtins_Array.*;wCompare_')"
  # V8 decides which part of the time the callback takes.
  at_least "$engine: callbacks of a replacement, %" 10 "$(of Replaces ';Builtins_.*;wReplacement_')"
  at_least "$engine: closures and methods, %" 90 "$(of Objects ';w(Closure|Method)_')"
  at_least "$engine: generators, %" 70 "$(of Generates ';wGenerator_')"
  at_least "$engine: after waiting, %" 20 "$(of Async ';wAfter_')"
  expect "$engine: functions that perf reads" 1 "$(perf script -i "$dir/node.pe" 2>/dev/null | grep -c -m1 "\[node-jit\] w[A-Za-z]* $dir/work.js:")"
  cp "$dir/folded" "$dir/compared"
  expect "$engine: lines" 1 "$(pe-symbolize -q --lines "$dir/node.pe" | stackfold --lines | grep -c -m1 ";wShares:work.js:1[3-6];wFifty:work.js:10;wSpin:work.js:7")"
done
kill $target
# Another thread than the first one has the same functions.
pe-symbolize -q "$dir/node.pe" | stackfold --tid >"$dir/threads"
at_least 'threads' 2 "$(sed -n 's/;.*;wTick;.*//p' "$dir/threads" | sort -u | grep -c .)"
start --no-opt --no-maglev --no-sparkplug
record interpreter "${engines##* }"
at_least 'interpreted, %' 90 "$(of Shares ';wSpin_\[s\]')"
expect 'interpreted: lines' 1 "$(pe-symbolize -q --lines "$dir/node.pe" | stackfold --lines | grep -c -m1 ";wAll:work.js:46;wShares:work.js:1[4-6];wFifty:")"
kill $target
# Node's own profiler.
(cd "$dir" && node --cpu-prof --cpu-prof-name=own.json work.js '' 150) || fail '--cpu-prof'
node -e '
  const profile = JSON.parse(require("fs").readFileSync(process.argv[1])), nodes = new Map(), total = {};
  for (const node of profile.nodes) nodes.set(node.id, node);
  for (const node of profile.nodes) for (const child of node.children || []) nodes.get(child).parent = node;
  for (const id of profile.samples) {
    const names = new Set();
    for (let node = nodes.get(id); node; node = node.parent) names.add(node.callFrame.functionName);
    for (const name of names) total[name] = (total[name] || 0) + 1;
  }
  for (const name of ["wFifty", "wThirty", "wRecursion", "wCompresses", "wSorts"])
    console.log(name, (100 * total[name] / total.wAll).toFixed(1));' "$dir/own.json" >"$dir/own"
while read -r name own; do within "as Node's profiler: $name" "$own" "$(grep ';wAll_' "$dir/compared" >"$dir/part"; share ";${name}_" "$dir/part")" 5; done <"$dir/own"
finish
