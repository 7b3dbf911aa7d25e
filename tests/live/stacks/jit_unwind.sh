#!/bin/bash
# Code generated at run time has frame pointers and no CFI.  Stacks lead through it, from native code to
# native code.
. "$(dirname "$0")/../lib.sh"
command -v node >/dev/null || skip 'node is not installed'
cd "$dir" || exit 1  # node leaves logs in its working folder
# Array.sort is native code that calls back.  JSON.stringify with toJSON is C++ code that does the same.
cat >"$dir/spin.js" <<'JS'
function hotLeaf(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
class Item { constructor(n) { this.n = n; } toJSON() { return hotLeaf(this.n); } }
function viaNative(n) { return JSON.stringify([new Item(n), new Item(n)]).length; }
const used = () => process.cpuUsage().user / 1000;
function hotOuter(ms) { const end = used() + ms; let s = 0; while (used() < end) s += viaNative(20000); return s; }
hotOuter(+process.argv[2]);
JS
pe-record -F 997 -o "$dir/j.pe" -- node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$dir/spin.js" 1500 2>"$dir/err" ||
  fail "pe-record: $(cat "$dir/err")"
fold "$dir/j.pe" --annotate >"$dir/all.folded"
grep '^node;.*_\[j\]' "$dir/all.folded" >"$dir/j.folded"
root='^node;_start;__libc_start_main[^;]*;([^;]+;){1,2}node::Start'
jit=$(share "$root" "$dir/j.folded") native=$(share "$root.*_\\[j\\];.*[jJ]son.*;[^;]*toJSON[^;]*_\\[j\\];(.*;)?[^;]*hotLeaf" "$dir/j.folded")
[ -z "${PE_VERBOSE:-}" ] || { tail -1 "$dir/err"; echo "to the root: $jit %; JIT below C++ below JIT: $native %"; }
at_least 'samples with JIT frames' 600 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/j.folded")"
at_least 'stacks with JIT frames from the root on, %' 95 "$jit"
at_least "JIT frames on both sides of C++ frames, %" 70 "$native"
finish
