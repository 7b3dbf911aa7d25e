#!/bin/bash
# The functions of a Python program that was started without any flag have names, between the native functions
# that call them and that they call.  No stack has a caller that the runtime itself does not know.
. "$(dirname "$0")/../lib.sh"
python=$(PATH=/usr/bin:/bin command -v python3) || skip 'no python3'
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in 3.11 | 3.12 | 3.13 | 3.14 | 3.15) ;; *) skip "frames of Python $version are not known" ;; esac
here=$(dirname "$0")
"$python" "$here/python_calls.py" 0 "$dir/calls" || fail 'the program itself'
# of NAME: prints the number with that name
of() { sed -n "s/^\([0-9.]*\) $1\$/\1/p" "$dir/found"; }
engines='signal ptrace'
pe-record -q --engine bpf -o "$dir/bpf.pe" -- true 2>/dev/null && engines="$engines bpf"
for engine in $engines; do
  pe-record -v --engine "$engine" -F 997 -o "$dir/py.pe" -- "$python" "$here/python_calls.py" 1 2>"$dir/err" ||
    fail "$engine: $(cat "$dir/err")"
  grep -Eq '[0-9]+ frames of Python, [0-9]+ unreadable' "$dir/err" || fail "$engine: details: $(cat "$dir/err")"
  pe-symbolize -q "$dir/py.pe" | stackfold --annotate >"$dir/folded"
  "$python" "$here/script_check.py" python "$dir/calls" "$dir/folded" >"$dir/found" 2>"$dir/wrong"
  expect "$engine: wrong callers" 0 "$(of 'wrong callers')"
  [ ! -s "$dir/wrong" ] || head -c 2000 "$dir/wrong"
  # The start and the end of the interpreter do not count.
  at_least "$engine: stacks with the first line, %" 98 "$(of rooted)"
  within "$engine: fifty" 50 "$(of 'shares Shares.fifty')" 5
  within "$engine: thirty" 30 "$(of 'shares Shares.thirty')" 5
  within "$engine: twenty" 20 "$(of 'shares Shares.twenty')" 5
  # Each is half of its part, which may have as few as 40 samples.
  for part in 'shares deflate' 'catches throws' 'catches handles'; do
    at_least "$engine: $part, %" 25 "$(of "$part")"
  done
  for part in 'recursion 5001 deep' 'sorts qsort' 'sorts by_value' 'sorts by_value from C' 'generates generate' 'awaits inner' 'executes made' \
    'forks in_child' 'Thread.run in_thread.<locals>.<lambda>' 'enters inside'; do
    at_least "$engine: $part, %" 70 "$(of "$part")"
  done
done
# A program with another name, which another program starts, is recognised by its symbols.
cp "$(readlink -f "$python")" "$dir/snake"
for engine in $engines; do
  PYTHONHOME=/usr pe-record -q --engine "$engine" -F 997 -o "$dir/snake.pe" -- sh -c "'$dir/snake' '$here/python_calls.py' .2; exit \$?" ||
    fail "$engine: another name"
  fold "$dir/snake.pe" --annotate >"$dir/folded"
  at_least "$engine: another name, %" 50 "$(share '<module>_.s.;whole' "$dir/folded")"
done
# Without --engine, a command's functions have names with every user's rights.
pe-record -q -F 997 -o "$dir/auto.pe" -- "$python" "$here/python_calls.py" .2 || fail 'no engine given'
fold "$dir/auto.pe" --annotate >"$dir/folded"
at_least 'no engine given, %' 50 "$(share '<module>_.s.;whole' "$dir/folded")"
expect 'functions that perf reads' 1 "$(perf script -i "$dir/py.pe" 2>/dev/null | grep -c -m1 '\[python\] spin .*/python_calls.py:24)')"
expect 'current lines' 1 "$(pe-symbolize -q --lines "$dir/py.pe" | stackfold --lines | grep -c -m1 ';deep:python_calls.py:58;spin:python_calls.py:2[5-7]')"
finish
