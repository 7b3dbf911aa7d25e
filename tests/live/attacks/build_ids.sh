#!/bin/bash
# The author of a file can copy a build id.  Such a file names no code of another process, and no later recording.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'processes of others and containers need root'
readonly id=00112233445566778899aabbccddeeff00112233
cat >"$dir/library.c" <<'C'
volatile long sum;
#ifdef PADDING
__attribute__((noinline)) void padding(void) { for (long i = 0; i < 9; i++) sum += i * i; }
#endif
__attribute__((noinline)) void WORK(void) { for (long i = 0; i < 2000000; i++) sum++; }
C
cat >"$dir/host.c" <<'C'
#include <dlfcn.h>
#include <unistd.h>
int main(int count, char** arguments) {  /* LIBRARY FUNCTION */
  alarm(60);
  void* library = count == 3 ? dlopen(arguments[1], RTLD_NOW) : 0;
  void (*work)(void) = library ? (void (*)(void))dlsym(library, arguments[2]) : 0;
  while (work) work();
  return 1;
}
C
compile() { cc -O1 "$@" || fail 'the test program does not compile'; }
library() { compile -shared -fPIC -Wl,--build-id=0x$id "-DWORK=$1" "${@:3}" -o "$2" "$dir/library.c"; }
compile -o "$dir/host" "$dir/host.c" -ldl
library evil_work "$dir/evil.so"
library real_work "$dir/real.so"
# of PID FILE: the names that the process has in folded text
of() { grep -- "-$1;" "$2" | grep -o '[a-z]*_work' | sort -u | paste -sd ' '; }

# Two processes of one recording, each with a library of its own: the attacker's is found first.
"$dir/host" "$dir/evil.so" evil_work & attacker=$!
"$dir/host" "$dir/real.so" real_work & victim=$!
await_program $attacker host; await_program $victim host
record() { until_used 300 $victim pe-record -q -F 499 --user-only "$@"; }
record -a -o "$dir/all.pe"
fold "$dir/all.pe" --pid >"$dir/all.folded"
expect "the victim's names" real_work "$(of $victim "$dir/all.folded")"
expect "the attacker's names" evil_work "$(of $attacker "$dir/all.folded")"
kill $attacker $victim; wait 2>/dev/null

# In a container, the same path leads to the attacker's library.
unshare --mount --user --map-root-user true 2>/dev/null || skip 'unshare(1) is not allowed here'
mkdir "$dir/lib"; cp "$dir/real.so" "$dir/lib/the.so"; chmod 755 "$dir/lib/the.so"
mkdir "$dir/inside"; cp "$dir/evil.so" "$dir/inside/the.so"
# shellcheck disable=SC2016  # for the inner shell
unshare --mount --user --map-root-user sh -c 'mount --bind "$0/inside" "$0/lib" && exec "$0/host" "$0/lib/the.so" evil_work' "$dir" &
attacker=$!
"$dir/host" "$dir/lib/the.so" real_work & victim=$!
await_program $attacker host; await_program $victim host
record -p $attacker,$victim -o "$dir/same.pe"
fold "$dir/same.pe" --pid >"$dir/same.folded"
expect 'one path, the victim' real_work "$(of $victim "$dir/same.folded")"

# Its file is kept, and names what was recorded, but no other recording.  The victim's file is gone, too.
rm -rf "$HOME/.debug" "$dir/lib/the.so"
record -p $attacker,$victim -o "$dir/kept.pe"
record --no-cache -p $victim -o "$dir/later.pe"
kill $attacker $victim; wait 2>/dev/null
fold "$dir/kept.pe" --pid >"$dir/kept.folded"
expect 'kept, the attacker' evil_work "$(of $attacker "$dir/kept.folded")"
expect 'kept, the victim' real_work "$(of $victim "$dir/kept.folded")"
rm -rf "$HOME/.debug/.build-id" "$HOME/.debug/.kept/$id"  # of the victim's own file
fold "$dir/later.pe" --pid >"$dir/later.folded"
expect 'a later recording of the victim' '' "$(of $victim "$dir/later.folded")"
fold "$dir/kept.pe" --pid >"$dir/again.folded"
expect 'still, the attacker' evil_work "$(of $attacker "$dir/again.folded")"

# With --trust it names later recordings.  Files that are not used make room.
mkdir -p "$dir/inside2/lib"; library trusted_work "$dir/inside/the.so" -DPADDING; cp "$dir/real.so" "$dir/lib/the.so"
# shellcheck disable=SC2016
unshare --mount sh -c 'mount --bind "$0/inside" "$0/lib" && rm "$0/evil.so" && exec "$0/host" "$0/lib/the.so" trusted_work' "$dir" &
victim=$!
await_program $victim host; rm "$dir/lib/the.so"
rm -rf "$HOME/.debug"
record -p $victim -o "$dir/without.pe"
[ ! -e "$HOME/.debug/.build-id" ] || fail 'a file of another mount namespace is kept for all recordings'
STACKPIPE_CACHE_MIB=0 pe-record -v -F 499 --user-only -d 0.3 --trust -p $victim -o "$dir/none.pe" 2>"$dir/err"
grep -q 'too large to keep' "$dir/err" || fail "the limit: $(cat "$dir/err")"
record --trust -p $victim -o "$dir/trusted.pe"
[ -e "$HOME/.debug/.build-id/${id:0:2}/${id:2}/elf" ] || fail '--trust keeps nothing for other recordings'
kill $victim; wait 2>/dev/null
finish
