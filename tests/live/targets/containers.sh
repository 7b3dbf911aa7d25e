#!/bin/bash
# A program in a container of its own (mounts, processes, root): stacks are complete and symbols are right
# while it runs, and later from the kept files.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'a container with a root of its own needs root'
! ischroot || skip 'in a chroot, paths of other mount namespaces begin outside of it'
unshare --mount --pid --fork true 2>/dev/null || skip 'unshare(1) is not allowed here'

# Inside and outside, the same path is another program.  The container also has the libraries that the program
# needs.
root=$dir/root; work=$dir/work; mkdir -p "$root$work" "$root/tmp" "$root/old" "$work"
cat >"$dir/spin.c" <<'C'
#include <stdlib.h>
#include <time.h>
double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + (double)t.tv_nsec * 1e-9; }
__attribute__((noinline)) double LEAF(double x) { for (int i = 0; i < 100000; i++) x = x * 1.0000001 + 0.1; return x; }
#ifdef PADDING
__attribute__((noinline)) double padding(double x) { return x * LEAF(x) + LEAF(x + 1); }
#endif
__attribute__((noinline)) double OUTER(double s) { double x = 1, end = now() + s; while (now() < end) x += LEAF(x); return x; }
int main(int count, char **arguments) { return OUTER(count > 1 ? atof(arguments[1]) : 1) == 0; }
C
compile() { cc -O2 -fomit-frame-pointer -Wl,--build-id "$@" "$dir/spin.c" || fail 'the test program does not compile'; }
compile -DLEAF=host_leaf -DOUTER=host_outer -o "$work/spin"
compile -DLEAF=guest_leaf -DOUTER=guest_outer -DPADDING -o "$root$work/spin"
put_libraries() {  # PROGRAM: copies the libraries that it loads
  ldd "$1" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"
  done
}
put_libraries "$work/spin"
# inside COMMAND: runs the container's first process.  The caller must run it with &, so that $! is
# unshare(1).
inside() {
  # shellcheck disable=SC2016  # for the inner shell
  exec unshare --mount --pid --fork --kill-child --propagation private sh -c \
    'mount --bind "$0" "$0" && cd "$0" && pivot_root . old && exec "$@"' "$root" "$@"
}
process_inside() {  # UNSHARE NAME: prints its only child, when that runs this program
  until pgrep -P "$1" -x "$2"; do sleep 0.02; done
}

# While both run, each has its own symbols.
inside "$work/spin" 4 & container=$!
"$work/spin" 4 & outside=$!
guest=$(process_inside $container spin)
# User frames only: a kernel frame can be another user's eBPF program, whose symbol is gone later.
pe-record -v --user-only -F 997 -d 1 -p "$guest,$outside" -o "$dir/live.pe" 2>"$dir/err"
fold "$dir/live.pe" --pid >"$dir/live.folded"
grep -q 'stacks complete' "$dir/err" || fail "no word about stacks: $(cat "$dir/err")"
at_least 'complete stacks, %' 99 "$(grep -o '[0-9.]* % of stacks complete' "$dir/err" | cut -d' ' -f1)"
grep -q 'binary files\{0,1\} kept in' "$dir/err" || fail "nothing was kept: $(cat "$dir/err")"
at_least "inside, %" 95 "$(grep -- "-$guest;" "$dir/live.folded" >"$dir/g"; share ';main;guest_outer;guest_leaf' "$dir/g")"
at_least "outside, %" 95 "$(grep -- "-$outside;" "$dir/live.folded" >"$dir/h"; share ';main;host_outer;host_leaf' "$dir/h")"
grep -q host_ "$dir/g" && fail 'names of the host in the container'
grep -q guest_ "$dir/h" && fail 'names of the container in the host'

# Later, the symbols are the same, from the cache.  None comes from the host's file with that path.
kill $container $outside 2>/dev/null; wait $container $outside 2>/dev/null
mv "$root" "$dir/away"
fold "$dir/live.pe" --pid >"$dir/later.folded"
cmp -s "$dir/live.folded" "$dir/later.folded" || fail "other names once the container is gone: $(diff "$dir/live.folded" "$dir/later.folded" | head -6)"
[ -z "$(find "$HOME/.debug" ! -type l -perm /077)" ] || fail 'kept files that others can read'

# Without the kept file, pe-symbolize refuses the host's file.
HOME=$dir/nobody pe-symbolize "$dir/live.pe" 2>"$dir/refused.err" | stackfold --pid >"$dir/refused.folded"
grep -- "-$guest;" "$dir/refused.folded" | grep -q 'host_\|guest_' && fail 'names from a file that was not recorded'
expect 'told once' 1 "$(grep -c 'its build id is not the recorded' "$dir/refused.err")"
grep -q 'in files whose build id differs' "$dir/refused.err" || fail "not counted: $(cat "$dir/refused.err")"

# With --no-cache nothing is kept.
mv "$dir/away" "$root"; rm -rf "$HOME/.debug"
inside "$work/spin" 2 & container=$!
guest=$(process_inside $container spin)
pe-record --no-cache -F 997 -d 0.3 -p "$guest" -o "$dir/none.pe" 2>"$dir/err"
[ ! -e "$HOME/.debug" ] || fail '--no-cache keeps'
kill $container 2>/dev/null; wait $container 2>/dev/null

# node's perf map is in the container's /tmp, under the process ID inside the container.
if command -v node >/dev/null; then
  node=$(readlink -f "$(command -v node)"); mkdir -p "$root$(dirname "$node")"; cp "$node" "$root$node"; put_libraries "$node"
  [ ! -d /usr/share/nodejs ] || { mkdir -p "$root/usr/share"; cp -a /usr/share/nodejs "$root/usr/share/"; }  # Debian's node reads it
  cat >"$root/spin.js" <<'JS'
function hotInner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
function hotOuter(ms) { const end = Date.now() + ms; let s = 0; while (Date.now() < end) s += hotInner(20000); return s; }
hotOuter(6000);
JS
  inside "$node" --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining /spin.js & container=$!
  guest=$(process_inside $container node)
  sleep 1  # time to compile its functions
  pe-record -F 997 -d 0.5 -p "$guest" 2>/dev/null | pe-symbolize 2>"$dir/err" | stackfold >"$dir/node.folded"
  at_least "node's own functions, %" 80 "$(share 'hotInner' "$dir/node.folded")"
  kill $container 2>/dev/null; wait $container 2>/dev/null
fi
finish
