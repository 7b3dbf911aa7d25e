#!/bin/bash
# Code that is generated at run time has the symbols of its perf map or jitdump, if that is a regular file of
# the process's user.
. "$(dirname "$0")/../lib.sh"
command -v node >/dev/null || skip 'node is not installed'
cd "$dir" || exit 1  # node leaves logs in its working folder
cat >"$dir/spin.js" <<'JS'
function hotInner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
const used = () => process.cpuUsage().user / 1000;  // not the clock: the machine may be busy
function hotOuter(ms) { const end = used() + ms; let s = 0; while (used() < end) s += hotInner(20000); return s; }
hotOuter(+process.argv[2]);
JS
pe-record --keep-stacks -F 997 -- node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$dir/spin.js" 800 2>/dev/null |
  pe-symbolize 2>"$dir/err" | stackfold --annotate >"$dir/j.folded"
at_least 'hotInner below hotOuter, %' 60 "$(share 'hotOuter.*_\[j\];(.*;)?[^;]*hotInner.*_\[j\]' "$dir/j.folded")"


# jitdump: of a process that pe-record starts, of one that runs already, and from perf, with the right clock
# and with another.
dump_names() { at_least "$1: hotInner below hotOuter, %" 60 "$(share 'hotOuter.*_\[j\];(.*;)?[^;]*hotInner.*_\[j\]' "$dir/j.folded")"; }
spin=(node --perf-prof --interpreted-frames-native-stack --no-turbo-inlining "$dir/spin.js")
# node writes its dump in blocks of 2 MiB, so the symbols are only there when it has ended.
pe-record --keep-stacks -F 997 -- "${spin[@]}" 800 >"$dir/j.pe" 2>/dev/null
pe-symbolize "$dir/j.pe" 2>"$dir/err" | stackfold --annotate >"$dir/j.folded"
dump_names 'jitdump'
grep 'of jitdumps' "$dir/err" && fail 'records of the jitdump were not understood'
"${spin[@]}" 2000 & target=$!
sleep 0.7
until_used 500 $target pe-record --keep-stacks -F 997 -p $target >"$dir/j.pe" 2>/dev/null
wait $target
pe-symbolize -q "$dir/j.pe" | stackfold --annotate >"$dir/j.folded"
dump_names 'jitdump of a running process'
if command -v perf >/dev/null; then
  for clock in '' '-k mono'; do
    # shellcheck disable=SC2086 # an option and its value, or nothing
    record_by_perf -e cpu-clock -F 997 -g $clock -o "$dir/perf.data" -- "${spin[@]}" 700 2>/dev/null
    pe-symbolize -q "$dir/perf.data" | stackfold --annotate >"$dir/j.folded"
    dump_names "jitdump beside perf record $clock"
  done
fi
# python writes perf maps from 3.12 on.  Without them its functions have no symbols.
for python in python3 python3.12 python3.13; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || continue
  printf 'def hot_inner():\n    return sum(i for i in range(20000))\nfor _ in range(800):\n    hot_inner()\n' >"$dir/spin.py"
  pe-record -F 997 -- "$python" -X perf "$dir/spin.py" 2>/dev/null | pe-symbolize -q | stackfold --annotate >"$dir/j.folded"
  at_least "$python: hot_inner, %" 60 "$(share 'py::hot_inner:.*_\[j\]' "$dir/j.folded")"
  grep 'py::hot_inner:' "$dir/j.folded" >"$dir/inner.folded"
  at_least "$python: hot_inner from the root on, %" 99 "$(share "^${python%%.*}[^;]*;_start;.*py::<module>:.*_\[j\];.*py::hot_inner:" "$dir/inner.folded")"
done

node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$dir/spin.js" 3000 & target=$!
sleep 0.7
map=/tmp/perf-$target.map
mv "$map" "$dir/real.map"; ln -s "$dir/real.map" "$map"
until_used 500 $target pe-record --keep-stacks -F 997 -p $target 2>/dev/null | pe-symbolize 2>"$dir/err" | stackfold --annotate >"$dir/link.folded"
expect 'names through a symbolic link, %' 0.0 "$(share 'hotInner' "$dir/link.folded")"
grep -q 'without a readable perf map' "$dir/err" || fail "no word about the refused map: $(cat "$dir/err")"
rm "$map"
# The map has bytes that are not lines, a line without end, and a terabyte of zeros.  The entries before them
# still count.
{ cat "$dir/real.map"; head -c 3000000 /dev/urandom; head -c 3000000 /dev/zero | tr '\0' 'f'; } >"$map"
truncate -s 1T "$map"
until_used 500 $target pe-record --keep-stacks -F 997 -p $target 2>/dev/null | (ulimit -v 4000000; timeout 60 pe-symbolize 2>"$dir/err") | stackfold --annotate >"$dir/huge.folded"
at_least 'names from a map that goes on with nonsense, %' 60 "$(share 'hotInner' "$dir/huge.folded")"
grep -q 'of perf maps not understood, 1 perf map too large, not read to the end' "$dir/err" || fail "no word about nonsense: $(cat "$dir/err")"
rm "$map"
if [ "$(id -u)" = 0 ]; then
  cp "$dir/real.map" "$map"; chown 65534 "$map"
  until_used 500 $target pe-record --keep-stacks -F 997 -p $target 2>/dev/null | pe-symbolize 2>"$dir/err" | stackfold --annotate >"$dir/owner.folded"
  expect "names from another user's map, %" 0.0 "$(share 'hotInner' "$dir/owner.folded")"
  rm "$map"
fi
kill $target
finish
