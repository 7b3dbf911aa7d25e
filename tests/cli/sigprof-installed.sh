#!/bin/bash
# Checks the installed files for programs that profile themselves.  The header works in C99 and C++.  The
# library exports only its functions, and needs only the C library.  The example can be built with
# pkg-config's file.
# Usage: sigprof-installed.sh BUILD_FOLDER SOURCE_FOLDER LIBRARY
set -u
build=$1 source=$2 library=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

names=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort | tr '\n' ' ')
[ "$names" = 'sp_sigprof_add_this_thread sp_sigprof_error sp_sigprof_start sp_sigprof_stop ' ] || fail "names: $names"
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | tr '\n' ' ')
[ "$needed" = 'libc.so.6 ' ] || fail "needs: $needed"
readelf -d "$library" | grep -q 'SONAME.*\[libstackpipe-sigprof.so.0\]' || fail 'soname'

for compile in 'cc -std=c99 -x c' 'cc -std=c17 -x c' 'c++ -std=c++98 -Wno-long-long -Wno-variadic-macros -x c++' 'c++ -std=c++20 -x c++'; do
  printf '#include <stackpipe/sigprof.h>\nint main(void) { sp_sigprof_options o = SP_SIGPROF_OPTIONS; sp_sigprof_counts c = SP_SIGPROF_COUNTS; return o.size == c.size; }\n' |
    $compile -Wall -Wextra -pedantic -Werror -I "$source/include" -fsyntax-only - || fail "$compile"
done

# Installs everything that is built, and the files for developers.
DESTDIR=$dir/root meson install -C "$build" --no-rebuild --tags devel,runtime,examples --quiet >"$dir/installed" 2>&1 ||
  fail "$(cat "$dir/installed")"
pc=$(find "$dir/root" -name stackpipe-sigprof.pc)
[ -n "$pc" ] || fail 'no stackpipe-sigprof.pc'
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$dir/root
example=$(find "$dir/root" -name self_profile.c)
# shellcheck disable=SC2046 # words
cc -std=c99 -Wall -Wextra -pedantic -Werror "$example" $(pkg-config --cflags --libs stackpipe-sigprof) -o "$dir/self_profile" || fail 'the example'
readelf -d "$dir/self_profile" | grep -q 'NEEDED.*\[libstackpipe-sigprof.so.0\]' || fail 'the example does not need the library'
LD_LIBRARY_PATH=$(dirname "$(find "$dir/root" -name libstackpipe-sigprof.so.0)") PATH=$build/tools:$PATH "$dir/self_profile" 0.3 >"$dir/folded" ||
  fail 'the example does not run'
grep -q ';main;work;fifty' "$dir/folded" || fail "$(cat "$dir/folded")"
exit $failed
