#!/bin/bash
# The methods and blocks of a Ruby program that was started without any flag have names, between the native functions
# that call them and that they call.  No stack has a caller that the VM itself does not know.
. "$(dirname "$0")/../lib.sh"
ruby=$(PATH=/usr/bin:/bin command -v ruby) || skip 'no ruby'
version=$("$ruby" -e 'print RUBY_VERSION[/\d+\.\d+/]')
case $version in 3.[0-4]) ;; *) skip "frames of Ruby $version are not known" ;; esac
here=$(dirname "$0")
"$ruby" "$here/ruby_calls.rb" 0 "$dir/calls" || fail 'the program itself'
# of NAME: prints the number with that name
of() { sed -n "s/^\([0-9.]*\) $1\$/\1/p" "$dir/found"; }
engines='signal ptrace'
pe-record -q --engine bpf -o "$dir/bpf.pe" -- true 2>/dev/null && engines="$engines bpf"
for engine in $engines; do
  # Some kernels allow signals only 250 times a second.
  [ "$engine" = signal ] && seconds=1.4 || seconds=.7
  pe-record -v --engine "$engine" -F 997 -o "$dir/rb.pe" -- "$ruby" "$here/ruby_calls.rb" "$seconds" 2>"$dir/err" ||
    fail "$engine: $(cat "$dir/err")"
  grep -Eq '[0-9]+ frames of Ruby, [0-9]+ unreadable' "$dir/err" || fail "$engine: details: $(cat "$dir/err")"
  pe-symbolize -q "$dir/rb.pe" | stackfold --annotate >"$dir/folded"
  "$here/script_check.py" ruby "$dir/calls" "$dir/folded" >"$dir/found" 2>"$dir/wrong"
  expect "$engine: wrong callers" 0 "$(of 'wrong callers')"
  [ ! -s "$dir/wrong" ] || head -c 2000 "$dir/wrong"
  # The start and the end of the interpreter do not count.
  at_least "$engine: stacks with the first line, %" 98 "$(of rooted)"
  within "$engine: fifty" 50 "$(of 'shares fifty')" 5
  within "$engine: thirty" 30 "$(of 'shares thirty')" 5
  within "$engine: twenty" 20 "$(of 'shares twenty')" 5
  # Each is half of its part, which may have as few as 40 samples.
  for part in 'catches throws' 'catches handles'; do
    at_least "$engine: $part, %" 25 "$(of "$part")"
  done
  for part in 'recursion 3001 deep' 'sorts by_value' 'sorts block in sorts from C' 'fibers block in generate' 'executes made' \
    'dispatches method_missing' 'forks in_child' 'in_thread block in in_thread'; do
    at_least "$engine: $part, %" 70 "$(of "$part")"
  done
done
# Without --engine, a command's functions have names with every user's rights.
pe-record -q -F 997 -o "$dir/auto.pe" -- "$ruby" "$here/ruby_calls.rb" .2 || fail 'no engine given'
fold "$dir/auto.pe" --annotate >"$dir/folded"
at_least 'no engine given, %' 50 "$(share '<main>_.s.;whole' "$dir/folded")"
expect 'functions that perf reads' 1 "$(perf script -i "$dir/rb.pe" 2>/dev/null | grep -c -m1 '\[ruby\] spin .*/ruby_calls.rb:16)')"
expect 'current lines' 1 "$(pe-symbolize -q --lines "$dir/rb.pe" | stackfold --lines | grep -c -m1 ';deep:ruby_calls.rb:51;spin:ruby_calls.rb:1[78]')"
finish
