#!/bin/bash
# Files with the names of interpreters have huge tables, which take no room on the disk: the recorder's cost has a limit,
# it ends when its time is up, and its closing lines name the losses.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/budget_lib.sh"
"$cc" -O1 -o "$dir/spin" -x c - <<'END' || fail 'the attack does not compile'
#include <unistd.h>
int main(void) { static volatile long sink; alarm(60); nice(19); for (;;) sink = sink + 1; }
END
numbers=$(seq 20)
for number in $numbers; do
  bytes=$((number % 2 ? 250000000 : 60000000))
  echo "$dir/python$number $bytes"
done | python3 "$here/large_tables.py" "$dir/spin" || fail 'no files'
attackers=()
for number in $numbers; do
  [ "$(id -u)" != 0 ] || chown 65534 "$dir/python$number"
  as_stranger "$dir/python$number"
  attackers+=("$attacker")
done
python3 "$here/cost.py" "$dir/cost" pe-record --engine bpf -a -d 1 -o "$dir/f.pe" 2>"$dir/err"
kill "${attackers[@]}"
costs files 5000 700
grep -Eq 'process [0-9]+ \(python[0-9]+\).* lost names' "$dir/err" || fail "no loss in: $(cat "$dir/err")"
finish
