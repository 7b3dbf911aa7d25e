#!/bin/sh
# With the installed links, a script that calls the perl scripts calls our tools.  Usage: perl-names.sh BUILD_FOLDER
set -u
build=$1 failed=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; failed=1; }

DESTDIR=$dir/root meson install -C "$build" --no-rebuild --quiet >"$dir/install.log" 2>&1 || { cat "$dir/install.log"; exit 1; }
prefix=$dir/root$(meson introspect "$build" --buildoptions |
  python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
links=$(find "$prefix" -path '*/stackpipe/compat' -type d)
[ -n "$links" ] || { echo 'no folder of links'; exit 1; }
for link in "$links"/*; do
  [ -x "$link" ] || fail "$link leads nowhere"
  case $(readlink "$link") in /*) fail "$link cannot be moved" ;; esac
done

cat >"$dir/pipeline" <<'SCRIPT'
#!/bin/sh
stackcollapse-perf.pl --kern -all "$1" | flamegraph.pl -TITLE "it's" --wid=800 --hash -
SCRIPT
chmod +x "$dir/pipeline"
printf 'prog 12/13 [000] 1.0: 3 cycles: \n\t400000 do_work+0x1 ([kernel.kallsyms])\n\t400000 main+0x1 (/bin/prog)\n\n' >"$dir/input"
PATH=$links:$PATH "$dir/pipeline" "$dir/input" >"$dir/out.svg" 2>"$dir/err" || fail "pipeline: exit $?, $(cat "$dir/err")"
for text in 'width="800"' "it&#39;s\|it's\|it&apos;s" 'do_work'; do
  grep -q -- "$text" "$dir/out.svg" || fail "no $text in the picture"
done
"$links/stackcollapse-perf.pl" "$dir/input" -k >"$dir/folded" 2>/dev/null
[ "$(cat "$dir/folded")" = 'prog;main;do_work_[k] 3' ] || fail "folded: $(cat "$dir/folded")"
echo garbage | "$links/stackcollapse-perf.pl" >"$dir/folded" 2>/dev/null || fail "text without a sample: exit $?"
[ ! -s "$dir/folded" ] || fail 'text without a sample is folded'

printf "\n              genunix\`syscall+0x1\n              main+0x2\n   7\n" >"$dir/dtrace"
[ "$("$links/stackcollapse.pl" "$dir/dtrace")" = 'main;genunix`syscall 7' ] || fail "dtrace: $("$links/stackcollapse.pl" "$dir/dtrace")"
printf '@[\n    f+1\n    main+2\n]: 3\n' >"$dir/bpftrace"
[ "$("$links/stackcollapse-bpftrace.pl" "$dir/bpftrace")" = 'main;f 3' ] || fail 'bpftrace'
printf 'Thread 1 (LWP 5):\n#0  f () at x.c:1\n#1  0x0000000000401000 in main () at x.c:2\n' >"$dir/gdb"
[ "$("$links/stackcollapse-gdb.pl" "$dir/gdb")" = 'main;f 1' ] || fail "gdb: $("$links/stackcollapse-gdb.pl" "$dir/gdb")"
[ "$(echo 'a;b;b;c 2' | "$links/stackcollapse-recursive.pl")" = 'a;b;c 2' ] || fail 'recursive'

echo 'a;0x1f 2' >"$dir/before"
echo 'a;0x2f 8' >"$dir/after"
[ "$("$links/difffolded.pl" -ns "$dir/before" "$dir/after")" = 'a;0x... 8 8' ] || fail 'difffolded'
"$links/difffolded.pl" "$dir/before" >"$dir/out" 2>"$dir/err"
status=$?
[ $status = 2 ] || fail "difffolded.pl of one file: exit $status"

"$links/flamegraph.pl" --name x >"$dir/out" 2>"$dir/err" </dev/null
status=$?
[ $status = 255 ] || fail "an ambiguous option: exit $status"
[ ! -s "$dir/out" ] || fail 'output in spite of an ambiguous option'
grep -q 'ambiguous: --nameattr, --nametype' "$dir/err" || fail "message: $(cat "$dir/err")"
exit $failed
