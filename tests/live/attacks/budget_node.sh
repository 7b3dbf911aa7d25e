#!/bin/bash
# A fake Node has functions in scripts of millions of lines, which would take gigabytes to keep: the recorder's memory and
# its CPU time have limits, and it ends when its time is up.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/budget_lib.sh"
"$cc" -O1 -rdynamic -o "$dir/node" "$here/fake_node.c" || fail 'the attack does not compile'
as_stranger "$dir/node" 500 60000000 1
await_program $attacker node
until_used 1500 $attacker python3 "$here/cost.py" "$dir/cost" pe-record --engine bpf -p $attacker -o "$dir/n.pe" 2>"$dir/err"
kill $attacker; wait $attacker 2>/dev/null
costs node 4000 300
grep -q "process $attacker (node) lost names" "$dir/err" || fail "no loss in: $(cat "$dir/err")"
finish
