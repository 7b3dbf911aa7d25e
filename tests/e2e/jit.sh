#!/bin/bash
# Code made at run time has the names of its perf map, if that is the process's own regular file.
. "$(dirname "$0")/lib.sh"
command -v node >/dev/null || skip 'node is not installed'
cd "$dir" || exit 1  # node leaves logs behind
cat >"$dir/spin.js" <<'JS'
function hotInner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
function hotOuter(ms) { const end = Date.now() + ms; let s = 0; while (Date.now() < end) s += hotInner(20000); return s; }
hotOuter(+process.argv[2]);
JS
pe-record -F 997 -- node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$dir/spin.js" 1500 2>/dev/null |
  pe-symbolize 2>"$dir/err" | stackfold --annotate >"$dir/j.folded"
at_least 'hotInner below hotOuter, %' 60 "$(share 'hotOuter.*_\[j\];(.*;)?[^;]*hotInner.*_\[j\]' "$dir/j.folded")"

node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$dir/spin.js" 3000 & target=$!
sleep 0.7
map=/tmp/perf-$target.map
mv "$map" "$dir/real.map"; ln -s "$dir/real.map" "$map"
pe-record -F 997 -d 0.5 -p $target 2>/dev/null | pe-symbolize 2>"$dir/err" | stackfold --annotate >"$dir/link.folded"
expect 'names through a symbolic link, %' 0.0 "$(share 'hotInner' "$dir/link.folded")"
grep -q 'without a readable perf map' "$dir/err" || fail "no word about the refused map: $(cat "$dir/err")"
rm "$map"
if [ "$(id -u)" = 0 ]; then
  cp "$dir/real.map" "$map"; chown 65534 "$map"
  pe-record -F 997 -d 0.5 -p $target 2>/dev/null | pe-symbolize 2>"$dir/err" | stackfold --annotate >"$dir/owner.folded"
  expect "names from another user's map, %" 0.0 "$(share 'hotInner' "$dir/owner.folded")"
  rm "$map"
fi
kill $target
finish
