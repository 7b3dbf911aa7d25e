#!/bin/sh
# Every program and library that is installed is hardened.  If one is not, the check names the missing property.
# Usage: hardening.sh BUILD_FOLDER SOURCE_FOLDER VERSION FORTIFIED   (true or false: whether the build must be fortified)
set -u
build=$1 source=$2 version=$3 is_fortified=$4 failed=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; failed=1; }
# malloctrace's library has no stack protector: see tools/meson.build.
check() { "$source/scripts/dev/check-hardening" --no-stack-protector libmalloctrace_preload.so "$@"; }

DESTDIR=$dir/root meson install -C "$build" --no-rebuild --quiet >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
find "$dir/root" -type f | while read -r file; do
  [ "$(head -c 4 "$file" | tr -d '\0')" != "$(printf '\177ELF')" ] || printf '%s\n' "$file"
done >"$dir/files"
for name in flamediff flamesvg malloctrace offcpu pe-record pe-symbolize stackfold stacktop libmalloctrace_preload.so libsampler_preload.so libstackpipe-sigprof.so.$version; do
  grep -q "/$name\$" "$dir/files" || fail "$name is not installed"
done
xargs -d '\n' "$source/scripts/dev/check-hardening" --no-stack-protector libmalloctrace_preload.so <"$dir/files" || fail 'not hardened'

# All our files are compiled with _FORTIFY_SOURCE, except those of the libraries for other programs.
python3 - "$build/compile_commands.json" "$is_fortified" <<'END' || fail 'not fortified'
import json, re, sys
commands = [c for c in json.load(open(sys.argv[1])) if re.match(r"(languages|libcommon|painting|recording|tools)/(?!lib[^/]*\.so)", c["output"])]
last = {c["output"]: re.findall(r"-[DU]_FORTIFY_SOURCE\S*", c["command"])[-1:] for c in commands}
wanted = ["-D_FORTIFY_SOURCE=2"] if sys.argv[2] == "true" else []
wrong = [f"{output}: {flag}" for output, flag in last.items() if flag != wanted]
print("\n".join(wrong) or f"{len(last)} files")
sys.exit(bool(wrong) or len(last) < 20)
END

# For each property, a program that lacks it.
cat >"$dir/prog.c" <<'END'
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) void copy(const char *from, size_t size) {
  char text[64];
  memcpy(text, from, size);
  puts(text);
}
int main(int argc, char **argv) {
  copy(argv[0], (size_t)argc);
  return 0;
}
END
expect() {  # PROBLEM COMPILER_OPTION...
  problem=$1
  shift
  cc -O2 -fPIE -pie -Wl,-z,relro,-z,now,-z,noexecstack -fstack-protector-strong -fcf-protection "$@" \
    -o "$dir/prog" "$dir/prog.c" 2>"$dir/log" || fail "cc $*: $(cat "$dir/log")"
  said=$(check "$dir/prog") && said="fine: $said"
  [ "$said" = "$problem" ] || fail "$*: '$said', not '$problem'"
}
expect 'fine: 1 checked'
expect "$dir/prog: not position independent" -fno-pie -no-pie
expect "$dir/prog: no GNU_RELRO" -Wl,-z,norelro
expect "$dir/prog: not bound at the start (BIND_NOW)" -Wl,-z,lazy
expect "$dir/prog: executable stack" -Wl,-z,execstack
printf '.section .mixed, "awx", @progbits\n.long 1\n.section .note.GNU-stack, "", @progbits\n' >"$dir/mixed.s"
expect "$dir/prog: a segment that is writable and executable" "$dir/mixed.s"
expect "$dir/prog: RPATH or RUNPATH" -Wl,-rpath,/tmp
expect "$dir/prog: no stack protector" -fno-stack-protector
expect "$dir/prog: no -fcf-protection" -fcf-protection=none
exit $failed
