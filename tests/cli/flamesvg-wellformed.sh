#!/bin/sh
# With any profile or option, the page is well-formed XML, and no text of theirs becomes markup.
# Usage: flamesvg-wellformed.sh FLAMESVG
set -u
tool=$1 failed=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

# check LABEL [OPTION...]: draws $dir/in, with the embedded tree and without it
check() {
  wanted_trees=1
  check_page "$@"
  label=$1
  shift
  wanted_trees=0
  check_page "$label, no tree" --embed none "$@"
}

check_page() {
  label=$1
  shift
  "$tool" "$@" "$dir/in" >"$dir/out.svg" 2>"$dir/err" || { echo "$label: exit $?"; cat "$dir/err"; failed=1; }
  xmllint --noout --nonet "$dir/out.svg" || { echo "$label: not well-formed"; failed=1; }
  scripts=$(xmllint --xpath 'count(//*[local-name()="script"])' "$dir/out.svg")
  [ "$scripts" = 1 ] || { echo "$label: $scripts scripts, not 1"; failed=1; }
  # The names that the page's script reads are in base64, so they cannot end the element.
  trees=$(xmllint --xpath 'count(//*[local-name()="metadata"][translate(., "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", "") = ""])' "$dir/out.svg")
  [ "$trees" = "$wanted_trees" ] || { echo "$label: $trees trees, not $wanted_trees"; failed=1; }
  handlers=$(xmllint --xpath 'count(//@*[starts-with(name(), "on")] | //*[local-name()="evil"])' "$dir/out.svg")
  [ "$handlers" = 0 ] || { echo "$label: $handlers foreign handlers or elements"; failed=1; }
}

# The names do not compress.  Uncut, one element would have more text than parsers accept by default.
LC_ALL=C awk 'BEGIN { srand(1); for (i = 0; i < 90000; i++) { s = ""; for (j = 0; j < 120; j++) s = s sprintf("%c", 97 + int(rand() * 26)); print "main;" s " 1" } }' >"$dir/in"
wanted_trees=2
check_page 'a large tree' --embed all

# All bytes except newline, alone and as a part of a name.
awk 'BEGIN { for (i = 1; i < 256; i++) if (i != 10) printf "main;x%cy;%c 5\n", i, i }' >"$dir/in"
printf 'main;nul\000nul 5\n' >>"$dir/in"
check bytes
LC_ALL=C awk 'BEGIN { for (i = 1; i < 256; i++) if (i != 10) printf "main;x%cy;%c 5\n", i, i }' >"$dir/in"
check 'bytes in the C locale'

printf '%s\n' \
  '<script>alert(1)</script> 1' \
  'a;]]>;-->;--;<!--;<![CDATA[ 1' \
  'a;" onload="alert(1);'"' onclick='alert(1)"' 1' \
  '</title><script>alert(1)</script><title> 1' \
  '</g></svg><evil/> 1' \
  '&lt;&amp;&#0;&#x1;&bogus;&;%d%s%n{}{0} 1' \
  '<?xml version="9"?>;<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>;&e; 1' \
  'javascript:alert(1) 1' >"$dir/in"
check markup

printf 'a;\302\205;\355\240\200;\357\277\276;\357\277\277;\360\237\224\245;\364\220\200\200;\302;\342\202 1\n' >"$dir/in"
check 'odd UTF-8'

nasty='"/></text><evil/><script>alert(1)</script>]]>'
for option in title subtitle fonttype countname nametype; do
  check "--$option" "--$option" "$nasty"
  check "--$option, control characters" "--$option" "$(printf 'a\001\377b')"
done

: >"$dir/in"
"$tool" --title "$nasty" "$dir/in" >"$dir/out.svg" 2>/dev/null
[ $? -eq 2 ] || { echo "empty input: not exit 2"; failed=1; }
xmllint --noout "$dir/out.svg" || { echo "empty input: not well-formed"; failed=1; }
exit $failed
