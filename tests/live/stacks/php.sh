#!/bin/bash
# The functions of a PHP program that was started without any flag have names, between the native functions
# that call them and that they call.  No stack has a caller that the runtime itself does not know.
. "$(dirname "$0")/../lib.sh"
php=$(command -v php) || skip 'no php'
version=$("$php" -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION, PHP_ZTS ? " with threads" : "";')
case $version in 8.[0-5]) ;; *) skip "frames of PHP $version are not known" ;; esac
here=$(dirname "$0")
"$php" "$here/php_calls.php" 0 "$dir/calls" || fail 'the program itself'
# of NAME: prints the number with that name
of() { sed -n "s/^\([0-9.]*\) $1\$/\1/p" "$dir/found"; }
engines='signal ptrace'
pe-record -q --engine bpf -o "$dir/bpf.pe" -- true 2>/dev/null && engines="$engines bpf"
for engine in $engines; do
  # Some kernels allow signals only 250 times a second.
  [ "$engine" = signal ] && seconds=3 || seconds=1.2
  pe-record -v --engine "$engine" -F 997 -o "$dir/php.pe" -- "$php" "$here/php_calls.php" "$seconds" 2>"$dir/err" ||
    fail "$engine: $(cat "$dir/err")"
  grep -Eq '[0-9]+ frames of PHP, [0-9]+ unreadable' "$dir/err" || fail "$engine: details: $(cat "$dir/err")"
  pe-symbolize -q "$dir/php.pe" | stackfold --annotate >"$dir/folded"
  python3 "$here/script_check.py" php "$dir/calls" "$dir/folded" >"$dir/found" 2>"$dir/wrong"
  expect "$engine: wrong callers" 0 "$(of 'wrong callers')"
  [ ! -s "$dir/wrong" ] || head -c 2000 "$dir/wrong"
  # The start and the end of the interpreter do not count.
  at_least "$engine: stacks with the script's first line, %" 98 "$(of rooted)"
  within "$engine: fifty" 50 "$(of 'shares Shares::fifty')" 5
  within "$engine: thirty" 30 "$(of 'shares Shares::thirty')" 5
  within "$engine: twenty" 20 "$(of 'shares Shares::twenty')" 5
  # Each is half of its part, which may have as few as 40 samples.
  for part in 'shares gzcompress' 'catches throws' 'catches handles' 'fibers Fiber::start' 'fibers Fiber::resume'; do
    [[ $part != fibers* || $version != 8.0 ]] || continue
    at_least "$engine: $part, %" 25 "$(of "$part")"
  done
  for part in 'magic Magic::__get' 'magic Magic::__call' 'magic Magic::__destruct'; do
    at_least "$engine: $part, %" 15 "$(of "$part")"
  done
  for part in 'shares Shares::replaced' 'shares Shares::by_rest'; do
    at_least "$engine: $part, %" 2 "$(of "$part")"
  done
  for part in 'recursion 5001 deep' 'sorts usort' 'sorts by_value' 'sorts by_value from C' 'generates generate' 'delegates delegate' \
    'delegates generate' 'maps array_map' 'includes php_included.php' 'forks in_child'; do
    [ "$part" != 'forks in_child' ] || "$php" -r 'exit((int) !function_exists("pcntl_fork"));' || continue
    at_least "$engine: $part, %" 70 "$(of "$part")"
  done
done
# Without --engine, a command's functions have names with every user's rights.
pe-record -q -F 997 -o "$dir/auto.pe" -- "$php" "$here/php_calls.php" .2 || fail 'no engine given'
fold "$dir/auto.pe" --annotate >"$dir/folded"
at_least 'no engine given, %' 50 "$(share '{main}_.s.;whole' "$dir/folded")"
expect 'functions that perf reads' 1 "$(perf script -i "$dir/php.pe" 2>/dev/null | grep -c -m1 '\[php\] spin .*/php_calls.php:14)')"
expect 'current lines' 1 "$(pe-symbolize -q --lines "$dir/php.pe" | stackfold --lines | grep -c -m1 ';deep:php_calls.php:75;spin:php_calls.php:[12][0-9]')"
finish
