#!/bin/bash
# Programs have their symbols although their file is gone, or never had a path: from the process while they
# run, later from the kept copy.  A file that was replaced is refused.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/spin.c" <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>
double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + (double)t.tv_nsec * 1e-9; }
__attribute__((noinline)) double LEAF(double x) { for (int i = 0; i < 100000; i++) x = x * 1.0000001 + 0.1; return x; }
int main(int count, char **arguments) {  /* SECONDS [memory] */
  if (count > 2) {
    int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("../../escaped", 0);
    while (sendfile(to, from, NULL, 1 << 20) > 0) {}
    char *again[] = {arguments[0], arguments[1], NULL};
    fexecve(to, again, environ);
    return 1;
  }
  double x = 1, end = now() + atof(arguments[1]);
  while (now() < end) x += LEAF(x);
  return x == 0;
}
C
compile() { cc -O2 -Wl,--build-id "$@" "$dir/spin.c" || fail 'the test program does not compile'; }
compile -DLEAF=first_leaf -o "$dir/first"
compile -DLEAF=memory_leaf -o "$dir/second"

# The file is deleted before the recording.  When the stream is symbolized, another file has its name.
cp "$dir/first" "$dir/program"; "$dir/program" 3 & target=$!
await_program $target program; rm "$dir/program"
until_used 500 $target pe-record -v -F 997 -p $target -o "$dir/deleted.pe" 2>"$dir/err"
grep -q ' 1 binary file kept in' "$dir/err" || fail "deleted: $(cat "$dir/err")"
fold "$dir/deleted.pe" >"$dir/live.folded"; at_least 'deleted, live, %' 95 "$(share ';main;first_leaf' "$dir/live.folded")"
kill $target; wait $target 2>/dev/null
cp "$dir/second" "$dir/program"
fold "$dir/deleted.pe" >"$dir/later.folded"; at_least 'deleted, later, %' 95 "$(share ';main;first_leaf' "$dir/later.folded")"
if command -v perf >/dev/null; then
  perf script -i - <"$dir/deleted.pe" 2>/dev/null | grep -q ' first_leaf+' || fail 'perf does not find what was kept'
fi

# The file is deleted during the recording.
cp "$dir/first" "$dir/program"; rm -rf "$HOME/.debug"; "$dir/program" 3 & target=$!
(sleep 0.4; rm "$dir/program") &
pe-record -q -F 997 -d 0.8 -p $target -o "$dir/during.pe"; kill $target; wait
fold "$dir/during.pe" >"$dir/during.folded"; at_least 'deleted meanwhile, %' 95 "$(share ';main;first_leaf' "$dir/during.folded")"

# The file is replaced during the recording, and no process that uses it is left.
cp "$dir/first" "$dir/program"; rm -rf "$HOME/.debug"
(until pgrep -f "^$dir/program 60" >"$dir/running"; do sleep 0.1; done
 sleep 0.3; cp "$dir/second" "$dir/new"; mv "$dir/new" "$dir/program"; kill "$(head -n 1 "$dir/running")") &
pe-record -v -F 997 -o "$dir/upgraded.pe" -- "$dir/program" 60 2>"$dir/err"; wait
grep -q ' 1 binary file kept in' "$dir/err" || fail "replaced meanwhile: $(cat "$dir/err")"
fold "$dir/upgraded.pe" >"$dir/upgraded.folded"; at_least 'replaced meanwhile, %' 95 "$(share ';main;first_leaf' "$dir/upgraded.folded")"

# The file is replaced after the recording: pe-symbolize refuses it, reports this, and counts the frames.
rm -rf "$HOME/.debug"; cp "$dir/first" "$dir/program"
pe-record -q -F 997 -o "$dir/replaced.pe" -- "$dir/program" 0.5
[ ! -e "$HOME/.debug" ] || fail 'a file that stays where it is was kept'
cp "$dir/second" "$dir/program"
pe-symbolize "$dir/replaced.pe" 2>"$dir/err" | stackfold >"$dir/replaced.folded"
expect 'names of another program, %' 0.0 "$(share '_leaf' "$dir/replaced.folded")"
at_least 'places in it, %' 90 "$(share ';program[+]0x' "$dir/replaced.folded")"
grep -q "^pe-symbolize: '$dir/program': its build id is not the recorded [0-9a-f]*: not used$" "$dir/err" || fail "not told: $(cat "$dir/err")"
grep -q 'in files whose build id differs' "$dir/err" || fail "not counted: $(cat "$dir/err")"

# perf keeps build IDs at the end of its file, and binaries in the same cache.
if command -v perf >/dev/null; then
  cp "$dir/first" "$dir/program"
  record_by_perf_without_ids "$dir/perf.data" -e cpu-clock -g -- "$dir/program" 0.5
  rm "$dir/program"  # perf keeps a hard link
  cp "$dir/second" "$dir/program"
  fold "$dir/perf.data" >"$dir/perf.folded"; at_least "perf's, from its cache, %" 95 "$(share ';first_leaf' "$dir/perf.folded")"
  rm -rf "$HOME/.debug"
  pe-symbolize "$dir/perf.data" 2>"$dir/err" | stackfold >"$dir/perf.folded"
  expect "perf's, names of another program, %" 0.0 "$(share '_leaf' "$dir/perf.folded")"
  grep -q 'in files whose build id differs' "$dir/err" || fail "perf's: not counted: $(cat "$dir/err")"
  # In a pipe the build IDs come too late.  pe-symbolize only has the program's path.
  cp "$dir/first" "$dir/program"
  # shellcheck disable=SC2002 # a pipe is what is wanted
  cat "$dir/perf.data" | pe-symbolize 2>"$dir/err" | stackfold >"$dir/perf.folded"
  grep -q '1 file found by name, with a different inode than recorded: names may be wrong' "$dir/err" || fail "perf's, through a pipe: $(cat "$dir/err")"
  at_least "perf's, through a pipe, %" 95 "$(share ';first_leaf' "$dir/perf.folded")"
fi

# The tables of another file must not unwind copied stacks.
pe-record -q --keep-stacks -F 997 -o "$dir/copies.pe" -- "$dir/first" 0.3
mv "$dir/first" "$dir/kept"; cp "$dir/second" "$dir/first"
pe-symbolize "$dir/copies.pe" 2>"$dir/err" | stackfold >"$dir/copies.folded"
grep -q ';first+0x' "$dir/copies.folded" || fail "places in the copies: $(cat "$dir/err")"
expect 'unwound by other tables' '' "$(grep ';__libc_start.*;first+0x' "$dir/copies.folded")"
mv "$dir/kept" "$dir/first"

# The program runs from memory.
pe-record -v -F 997 -o "$dir/memory.pe" -- "$dir/second" 0.7 memory 2>"$dir/err"
grep -q ' 1 binary file kept in' "$dir/err" || fail "memory: $(cat "$dir/err")"
fold "$dir/memory.pe" >"$dir/memory.folded"; at_least 'run from memory, %' 95 "$(share ';main;memory_leaf' "$dir/memory.folded")"
[ -z "$(find "$dir" -name '*escaped*' -not -path "$HOME/.debug/*")" ] || fail 'a name led out of ~/.debug'
finish
