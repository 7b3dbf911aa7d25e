#!/bin/bash
# Fake Pythons make reading of their functions expensive.  The recorder's cost has a limit, it ends when told, and its
# closing lines name the losses.  A real Python beside them keeps its names.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/budget_lib.sh"
"$cc" -O1 -pthread -o "$dir/python3.11" "$here/fake_python.c" || fail 'the attack does not compile'
python=$(PATH=/usr/bin:/bin command -v python3) || skip 'no python3'
cat >"$dir/innocent.py" <<'END'
import signal
signal.alarm(60)
def innocent_function():
    return sum(i * i for i in range(1000))
while True:
    innocent_function()
END
"$python" "$dir/innocent.py" & innocent=$!
# attack LABEL ARGUMENT...: records the fake Python with these arguments, and the innocent one
attack() {
  as_stranger "$dir/python3.11" "${@:2}"
  await_program $attacker python3.11
  until_used 700 $attacker "$python" "$here/cost.py" "$dir/cost" pe-record --engine bpf -F 297 -p $attacker,$innocent -o "$dir/p.pe" 2>"$dir/err"
  kill $attacker; wait $attacker 2>/dev/null
  grep -q "process $attacker (python3.11) lost names" "$dir/err" || fail "$1: no loss in: $(cat "$dir/err")"
  ! grep -q "process $innocent " "$dir/err" || fail "$1: an innocent process has lost: $(cat "$dir/err")"
  fold "$dir/p.pe" >"$dir/folded"
  grep -q innocent_function "$dir/folded" || fail "$1: innocent_function has no name"
}
# All functions share a table of lines of 1 MiB.
attack tables 7900 1048576 8
costs tables 5000 700
# Every sample has other functions.
attack new 7900 64 900 new
costs new 5000 700
at_least 'new: the most bytes of the stream' "$(stat -c %s "$dir/p.pe")" $((100 << 20))
finish
