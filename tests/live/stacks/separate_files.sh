#!/bin/bash
# A stripped program has the symbols, inlined functions and lines of its debug file, which is beside it or on
# a debuginfod server.  A debug file of another build is refused.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/spin.c" <<'C'
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + (double)t.tv_nsec * 1e-9; }
static inline __attribute__((always_inline)) double inlined(double x) {
  for (int i = 0; i < 100000; i++) x = x * 1.0000001 + 0.1;
  return x;
}
static __attribute__((noinline)) double local(double x) { return inlined(x) + STEP; }
int main(int count, char **arguments) {
  double x = 1, end = now() + atof(arguments[count - 1]);
  while (now() < end) x += local(x);
  return x == 0;
}
C
mkdir "$dir/served"
cc -g -O2 -DSTEP=1 -Wl,--build-id "$dir/spin.c" -o "$dir/whole" || fail 'the test program does not compile'
objcopy --only-keep-debug "$dir/whole" "$dir/served/program.debug"
objcopy --strip-all --add-gnu-debuglink="$dir/served/program.debug" "$dir/whole" "$dir/program"
pe-record -q -F 997 -o "$dir/rec.pe" -- "$dir/program" 0.5

fold "$dir/rec.pe" >"$dir/none.folded"; expect 'without debug file, %' 0.0 "$(share 'local' "$dir/none.folded")"

# The debug file is on a server.
port=$((20000 + $$ % 20000))
DEBUGINFOD_URLS='' debuginfod -p $port -d "$dir/server.sqlite" -F -t 1 "$dir/served" >/dev/null 2>&1 & server=$!
for _ in $(seq 100); do  # until the server has indexed the file
  DEBUGINFOD_URLS=http://127.0.0.1:$port DEBUGINFOD_CACHE_PATH=$dir/probe debuginfod-find debuginfo "$dir/program" >/dev/null 2>&1 && break
  rm -rf "$dir/probe"; sleep 0.2
done
DEBUGINFOD_URLS=http://127.0.0.1:$port DEBUGINFOD_CACHE_PATH=$dir/cache pe-symbolize --lines "$dir/rec.pe" 2>"$dir/err" |
  stackfold --annotate --lines >"$dir/served.folded"
at_least 'from a server, %' 90 "$(share ';main:spin.c:[0-9]*;local:spin.c:8;inlined:spin.c:5_\[i\]' "$dir/served.folded")"
kill $server; wait $server 2>/dev/null
# The server is gone and has no file: pe-symbolize reports this and prints the rest.
DEBUGINFOD_URLS=http://127.0.0.1:$port DEBUGINFOD_CACHE_PATH=$dir/cache2 pe-symbolize "$dir/rec.pe" 2>"$dir/err" | stackfold >"$dir/gone.folded"
grep -q 'debuginfod: .*failed' "$dir/err" || fail "no word about the server: $(cat "$dir/err")"
at_least 'server gone, main by its place, %' 90 "$(share ';program[+]0x' "$dir/gone.folded")"

# The debug file is beside the program.
cp "$dir/served/program.debug" "$dir/program.debug"
fold "$dir/rec.pe" --annotate >"$dir/link.folded"
at_least 'beside it, %' 90 "$(share ';main;local;inlined_\[i\]' "$dir/link.folded")"

# The debug file is of another build.
cc -g -O2 -DSTEP=2 -Wl,--build-id "$dir/spin.c" -o "$dir/other"
objcopy --only-keep-debug "$dir/other" "$dir/program.debug"
fold "$dir/rec.pe" >"$dir/other.folded"; expect 'of another build, %' 0.0 "$(share 'local' "$dir/other.folded")"
finish
