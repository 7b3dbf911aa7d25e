#!/bin/bash
# Files with the names of interpreters have huge tables, which take no room on the disk: the recorder's cost has a limit,
# it ends when its time is up, and its closing lines name the losses.  In a container, they may belong to root.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/budget_lib.sh"
"$cc" -O1 -o "$dir/spin" -x c - <<'END' || fail 'the attack does not compile'
#include <unistd.h>
int main(void) { static volatile long sink; alarm(60); nice(19); for (;;) sink = sink + 1; }
END
numbers=$(seq 20)
mkdir -m 711 "$dir/own" "$dir/inside"
containers=own
[ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null || containers=inside
for number in $numbers; do
  bytes=$((number % 2 ? 250000000 : 60000000))
  folder=own
  [ "$number" -le 10 ] || folder=$containers
  echo "$dir/$folder/python$number $bytes"
done | python3 "$here/large_tables.py" "$dir/spin" || fail 'no files'
attackers=()
for file in "$dir"/own/*; do
  [ "$(id -u)" != 0 ] || chown 65534 "$file"
  as_stranger "$file"
  attackers+=("$attacker")
done
for file in "$dir"/inside/*; do
  [ -e "$file" ] || continue
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount sh -c 'mount --bind "$0/inside" "$0/own" && exec "$@"' "$dir" "${stranger[@]}" "$dir/own/${file##*/}" &
  attackers+=($!)
done
python3 "$here/cost.py" "$dir/cost" pe-record --engine bpf -a -d 1 -o "$dir/f.pe" 2>"$dir/err"
kill "${attackers[@]}"
costs files 5000 700
grep -Eq 'process [0-9]+ \(python[0-9]+\).* lost names' "$dir/err" || fail "no loss in: $(cat "$dir/err")"
finish
