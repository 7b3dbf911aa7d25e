#!/bin/bash
# If symbols are missing, pe-symbolize names the file or runtime, and tells the user how to get them.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
unset DEBUGINFOD_URLS
# told COMMAND...: prints the messages of pe-symbolize about a recording of the command, with the options $options
options=()
told() {
  pe-record -q -e cpu-clock -F 997 --no-cache "${options[@]}" -o r.pe -- "$@" >/dev/null 2>err || fail "$*: $(cat err)"
  { pe-symbolize r.pe >/dev/null; } 2>&1
}

# A program is linked with -s, another is stripped afterwards.
cat >spin.c <<'END'
#include <time.h>
static __attribute__((noinline)) void spin(void) {
  while (clock() < CLOCKS_PER_SEC / 4) {}
}
int main(void) { spin(); return 0; }
END
cc -O1 -o whole spin.c
cc -O1 -s -o linked spin.c
cp whole stripped
strip stripped
fix='install its -dbgsym package, set DEBUGINFOD_URLS, or link it without -s'
for name in linked stripped; do
  told ./$name | grep -qE "^pe-symbolize: '$dir/$name' \([0-9.]+ % of the samples\) is stripped, so frames have no names: $fix\$" ||
    fail "$name: $(told ./$name)"
done
told ./whole | grep -q "whole'.* stripped" && fail 'a program that is not stripped'

# This program looks like a JVM: its library is mapped, and it runs code that it generated.
cat >jvm.c <<'END'
#include <string.h>
#include <sys/mman.h>
#include <time.h>
void library(void);
int main(void) {
  static const unsigned char loop[] = {0xb9, 0x00, 0x00, 0x10, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};  // mov, dec, jnz, ret
  void* code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, loop, sizeof loop);
  library();
  while (clock() < CLOCKS_PER_SEC / 4) ((void (*)(void))code)();
  return 0;
}
END
echo 'void library(void) {}' | cc -shared -fPIC -x c -o libjvm.so -
cc -O1 -o jvm jvm.c -L. -ljvm "-Wl,-rpath,$dir"
told sh -c './linked; ./stripped' | grep -E '(is|are) stripped' >said
expect 'lines about two stripped files' 1 "$(wc -l <said)"
grep -qE "'$dir/(linked|stripped)' \(.*\), '$dir/(linked|stripped)' \(.*\).* are stripped, .*: install their -dbgsym packages, .* them without -s" said || fail "two stripped files: $(cat said)"
told ./jvm >said
grep -qE '^pe-symbolize: function names are missing: Java: record it while it runs .* run .jcmd [0-9]+ Compiler.perfmap., .* -XX:\+PreserveFramePointer ' said || fail "java: $(cat said)"
expect 'lines about other runtimes' 0 "$(grep -c 'node\|Python\|PHP\|Ruby' said)"

# This looks like Python: its function has the name of the interpreter's.
sed 's/spin/_PyEval_EvalFrameDefault/g' spin.c >python.c
cc -O1 -o python3.10 python.c && cp python3.10 python3.13
told ./python3.10 >said
grep -qx 'pe-symbolize: function names are missing: this is Python 3.10; names need 3.11 or later' said || fail "Python 3.10: $(cat said)"
how='as root, or with --engine ptrace'
[ "$(id -u)" -ne 0 ] || how='--engine bpf or --engine ptrace'
told ./python3.13 >said
grep -qx 'pe-symbolize: function names are missing: Python: record it by pe-record '"$how"' (3.11 to 3.15), or start it with -X perf (3.12 and later)' said || fail "Python 3.13: $(cat said)"

# malloctrace cannot name them, so there is no advice about recorders.
cat >allocates.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) void *_PyEval_EvalFrameDefault(void) { return malloc(100); }
int main(void) {
  for (int i = 0; i < 1000; ++i) free(_PyEval_EvalFrameDefault());
  return 0;
}
END
cc -O1 -o python3.13 allocates.c
malloctrace -q -o heap.pe -- ./python3.13 && pe-symbolize heap.pe 2>said >/dev/null
grep -qx 'pe-symbolize: function names are missing: Python: start it with -X perf (3.12 and later)' said || fail "heap: $(cat said)"

# The recorder names versions whose functions have no names.  These look like Python.
cat >old.c <<'END'
#include <time.h>
#ifdef HAS_RUNTIME
long _PyRuntime[8];
#endif
const char* volatile version = VERSION;
void LOOP(void) {
  while (clock() < CLOCKS_PER_SEC / 4) {}
}
int main(void) { LOOP(); return 0; }
END
only='only native frames are shown; functions of Python 3.11 to 3.15 have names'
# unnamed VERSION TEXT OPTION...: compiles such a program with that text; the closing line must name the version
unnamed() {
  local version=$1 text=$2
  shift 2
  cc -O1 -rdynamic "-DVERSION=\"$text\"" "$@" -o python-old old.c
  pe-record -F 997 --no-cache -o r.pe -- ./python-old 2>err || fail "$version: $(cat err)"
  grep -qx "pe-record: $version has functions without names: $only" err || fail "$version: $(cat err)"
}
unnamed 'Python 2.7' 2.7.18 -DLOOP=PyEval_EvalFrameEx
unnamed 'Python 3.6' 3.6.15 -DLOOP=PyEval_EvalFrameEx
unnamed 'Python 3.9' 3.9.18+ -DLOOP=_PyEval_EvalFrameDefault -DHAS_RUNTIME
unnamed 'a Python before 3.11' 3.40.1 -DLOOP=_PyEval_EvalFrameDefault -DHAS_RUNTIME

# Real runtimes.
echo 'const end = Date.now() + 1000; function work(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s } while (Date.now() < end) work(1e5)' >loop.js
strip -o stripped-node "$(node -p process.execPath)"
if readelf -SW "$(node -p process.execPath)" | grep -q ' \.symtab '; then
  told node loop.js >said
  ! grep -q 'function names are missing' said || fail "node: $(cat said)"
fi  # else it is as that of Debian, which is stripped
pe-record -F 997 --no-cache -o r.pe -- ./stripped-node loop.js 2>err
pe-symbolize -q r.pe | stackfold >said
grep -q ';work' said || fail "stripped node: $(cat err)"
options=(--keep-stacks)  # names nothing
told node loop.js >said
grep -q 'function names are missing: Node: record it while it runs .*, or start it with --perf-basic-prof$' said ||
  fail "node without names: $(cat said)"
told node --perf-basic-prof loop.js >said
! grep -q 'function names are missing' said || fail "node with names: $(cat said)"
finish
