#!/bin/bash
# A stranger's files with huge tables, which take no room on the disk, lose their names: pe-symbolize keeps within the
# memory it may have, and its closing line counts the frames.  Another program of the stranger keeps its names.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/budget_lib.sh"
"$cc" -O1 -g -o "$dir/spin" -x c - <<'END' || fail 'the attack does not compile'
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) void honest_function(void) { for (int i = 0; i < 1000000; ++i) sink = sink + 1; }
int main(void) { alarm(60); nice(19); for (;;) honest_function(); }
END
printf '%s\n' "$dir/symbols 900000000" "$dir/more 900000000" | python3 "$here/large_tables.py" "$dir/spin" || fail 'no files'
python3 "$here/large_debug.py" "$dir/spin" "$dir/debug" 2000000000 || fail 'no file'
cp "$dir/spin" "$dir/honest"
pids=
for name in symbols more debug honest; do
  [ "$(id -u)" != 0 ] || chown 65534 "$dir/$name"
  as_stranger "$dir/$name"
  pids=$pids,$attacker
done
pe-record -q --engine bpf -F 499 -p "${pids#,}" -d 2 -o "$dir/n.pe" || fail 'not recorded'
kill ${pids//,/ }
# Half of this address space is the limit; a file may take a third of that.
(ulimit -v 2000000; pe-symbolize "$dir/n.pe" >"$dir/named.pe" 2>"$dir/err") || fail "pe-symbolize: $(cat "$dir/err")"
grep -q 'in files that take too much time or memory to read' "$dir/err" || fail "no loss in: $(cat "$dir/err")"
stackfold "$dir/named.pe" >"$dir/folded" || fail "not folded"
grep -q '^honest;.*honest_function' "$dir/folded" || fail "the honest program has lost its names: $(head -3 "$dir/folded")"
grep -q '^symbols;.*symbols+0x' "$dir/folded" || fail "no places in: $(head -3 "$dir/folded")"
finish
