#!/bin/bash
# Many fake JVMs, whose tables take long to read and never lead to anything: the recorder's cost has a limit, and it ends
# when its time is up.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/budget_lib.sh"
"$cc" -O1 -shared -fPIC -DLIBRARY -o "$dir/libjvm.so" "$here/fake_jvm.c" || fail "the library does not compile"
"$cc" -O1 -o "$dir/java" "$here/fake_jvm.c" -L"$dir" -ljvm -Wl,-rpath,"$dir" || fail 'the attack does not compile'
as_stranger "$dir/java" 120
await_program $attacker java
python3 "$here/cost.py" "$dir/cost" pe-record --engine bpf -a -F 997 -d 1 -o "$dir/j.pe" 2>"$dir/err"
kill $attacker; wait $attacker 2>/dev/null
costs jvms 4000 700
finish
