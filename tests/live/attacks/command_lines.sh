#!/bin/bash
# Command lines that are hostile: long, with control characters, changing, or in memory that never comes.  Recordings end, and
# frames are short and clean.
. "$(dirname "$0")/../lib.sh"

# check LABEL FOLDED: all lines are folded text without control characters, whose first frame is short
check() {
  [ -s "$2" ] || fail "$1: nothing"
  ! LC_ALL=C grep -q '[[:cntrl:]]' "$2" || fail "$1: control characters"
  expect "$1: lines that are not folded text" 0 "$(grep -cvE '^[^;]{1,160}(;[^;]+)* [0-9.]+$' "$2")"
}

# An argument has at most 128 KiB.
long=$(head -c 120000 /dev/zero | tr '\0' x)
words=()
for _ in $(seq 16); do words+=("$long"); done
cat >"$dir/loop.sh" <<'END'
i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done
END
cat >"$dir/odd.sh" <<'END'
exec -a "$1" sh "$2" $'c;d\e[31m\xe2\x80\xae'
END
for engine in bpf perf ptrace signal; do
  record() { pe-record --engine $engine -F 499 -o "$dir/a.pe" -- "$@" 2>"$dir/err"; }
  can_record --engine $engine 2>"$dir/err" || { echo "not by $engine: $(tail -1 "$dir/err")"; continue; }
  record sh "$dir/loop.sh" "${words[@]}" || fail "$engine: $(cat "$dir/err")"
  fold "$dir/a.pe" --root tree >"$dir/a.folded"
  check "$engine: 1.9 MB" "$dir/a.folded"
  at_least "$engine: share of 1.9 MB" 90 "$(share "^sh $dir/loop.sh x+\.\.\.x*" "$dir/a.folded")"
  at_least "$engine: bytes for a stream" "$(stat -c %s "$dir/a.pe")" 4000000
  record bash "$dir/odd.sh" $'a\nb;' "$dir/loop.sh" || fail "$engine: $(cat "$dir/err")"
  fold "$dir/a.pe" --root tree >"$dir/a.folded"
  check "$engine: control characters" "$dir/a.folded"
  at_least "$engine: share of control characters" 90 "$(share "^a\?b: $dir/loop.sh c:d\?\[31m\?;" "$dir/a.folded")"
done

# Programs that run already: their command lines are read once, in /proc.
cc -O1 -o "$dir/odd_words" "$(dirname "$0")/odd_words.c" || fail 'not built'
for kind in absent changes; do
  mkfifo "$dir/ready.$kind"
  "$dir/odd_words" $kind "$(head -c 9000 /dev/zero | tr '\0' y)" >"$dir/ready.$kind" & target=$!
  read -r _ <"$dir/ready.$kind"
  until_used 300 $target pe-record -p $target -o "$dir/a.pe" 2>"$dir/err"
  expect "status, $kind" 0 $?
  if kill $target 2>/dev/null; then
    fold "$dir/a.pe" --root command >"$dir/a.folded"
    check "$kind" "$dir/a.folded"
    at_least "$kind: share in $(head -1 "$dir/a.folded")" 90 "$(share '^odd_words.*;main' "$dir/a.folded")"
  elif [ $kind != absent ]; then  # not everybody may use userfaultfd(2)
    fail "$kind: ended"
  fi
  wait $target 2>/dev/null
done
finish
