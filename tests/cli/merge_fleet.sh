#!/bin/bash
# merge_fleet, and a cluster's stages run by hand, write the same bytes as one stackfold, or report why they
# cannot.
. "$(dirname "$0")/../live/lib.sh"
command -v zstd >/dev/null || skip "no zstd here"
export LC_ALL=C
tool=$PE_SCRIPTS/merge_fleet
stackfold=$(command -v stackfold)
mkdir "$dir/temp" "$dir/hosts" "$dir/bin"
cd "$dir/hosts" || exit 1
export TMPDIR=$dir/temp

# merge ARGUMENT...: sets $status; the output goes to out and err beside the hosts
merge() { "$tool" "$@" >"$dir/out" 2>"$dir/err" </dev/null; status=$?; }
# same LABEL: requires the complete result, no messages, and no remaining files
same() {
  expect "$1: status" 0 "$status"
  cmp -s "$dir/want" "$dir/out" || fail "$1: $(diff -a "$dir/want" "$dir/out" | head -n 5)"
  [ ! -s "$dir/err" ] || fail "$1: says $(cat "$dir/err")"
  left "$1"
}
left() { [ -z "$(ls -A "$dir/temp")" ] || { fail "$1: leaves $(ls -A "$dir/temp")"; rm -rf "${dir:?}"/temp/*; }; }
# refused LABEL TEXT: requires a failure with this message
refused() {
  expect "$1: status" 1 "$status"
  grep -aqF -e "$2" "$dir/err" || fail "$1: no '$2' in: $(cat "$dir/err")"
  left "$1"
}
empty() { [ ! -s "$dir/out" ] || fail "$1: writes all the same"; }

# Writes the folded text of a made-up host, unsorted.  Some stacks are common to all hosts, some to a few,
# some its own.  Three counts are too large for a double.  Names have blanks, and are UTF-8 or not.  One stack
# is the start of another.
host() {  # NUMBER
  printf '%s\n' 'all;of;them 1' 'a (x);b 2' 'a;b 3' "a $1" 'a;;b 1' 'größe;ключ;名前 2' $'bad\xff\xfe;x 1' \
    "std::vector<int, std::allocator<int> >::push_back;operator new(unsigned long) $1" \
    "worker-$1/17;run 12345678.25" "worker-$1/18;run 1.5" "[unknown];it's \"\\\$(quoted)\" 7"
  [ $(($1 % 10)) -ne 3 ] || echo 'huge 4611686018427387905'
  for ((i = 0; i < 60; i++)); do echo "main;f$((i * $1 % 97));g$((i % 7)) $((i * 1000003))"; done
}

# The hosts' files: one is empty, others are compressed, or have names that are difficult for a shell.
# shellcheck disable=SC2016 # no shell is to expand it
odd=('two words' $'new\nline' '-n' '-' '--' '*' "q'u\"ote" 'a&b\1' '$(touch pwned)' 'ünï')
for ((n = 0; n < 29; n++)); do
  name=${odd[n]:-host-$n}
  if [ "$n" -ne 7 ]; then host "$n" >>"$dir/all"; host "$n" | stackfold >"./$name"; else : >"./$name"; fi
  case $((n % 5)) in 2) gzip -- "./$name" && name=$name.gz ;; 4) zstd -q --rm -- "./$name" && name=$name.zst ;; esac
  names+=("$name")
done
stackfold "$dir/all" >"$dir/want" || fail 'nothing to compare with'
[ "$(wc -l <"$dir/want")" -gt 200 ] || fail 'few stacks are made up'

merge -j 1 -- "${names[@]}"; same 'at once'
merge -j 2 -- "${names[@]}"; same 'two branches'
merge -j 3 --fan-in 2 -- "${names[@]}"; same 'a tree of five levels'
[ ! -e pwned ] || fail 'a name was run'
printf '%s\0' "${names[@]}" >"$dir/list"
merge --fan-in=4 --files-from="$dir/list"; same 'names from a file'
"$tool" --fan-in 7 --files-from - <"$dir/list" >"$dir/out" 2>"$dir/err"; status=$?; same 'names from a pipe'
merge --stats --fan-in 5 --files-from "$dir/list"
grep -q "^merge_fleet: 29 files: read [0-9]* lines, a count of 13835058.*; wrote $(wc -l <"$dir/want") stacks$" "$dir/err" || fail "--stats: $(cat "$dir/err")"
cmp -s "$dir/want" "$dir/out" || fail '--stats: the output differs'

# Incomplete input must not look complete: with a single merge, and with several.
for way in '-j 1' '--fan-in 3'; do
  IFS=' ' read -ra options <<<"$way"
  merge "${options[@]}" -- "${names[@]}" 'not there'; refused "$way, missing" 'not there: No such file or directory'; empty "$way, missing"
  mkdir folder; merge "${options[@]}" -- "${names[@]}" folder; refused "$way, a folder" 'folder: no file'; rmdir folder
  for cut in 'host-10' 'two words' 'a&b\1.gz' 'host-12.gz' 'host-14.zst'; do
    cp "$cut" "$dir/whole"; truncate -s -3 "$cut"
    merge "${options[@]}" -- "${names[@]}"; refused "$way, $cut is cut" "$cut"
    cp "$dir/whole" "$cut"
  done
  cp host-11 "$dir/whole"; sort -r "$dir/whole" >host-11
  merge "${options[@]}" -- "${names[@]}"; refused "$way, out of order" 'host-11:2'
  gzip <"$dir/whole" | sed 's/$/x/' >host-11
  merge "${options[@]}" -- "${names[@]}"; refused "$way, damaged" 'host-11: gzip'
  cat "$stackfold" >host-11
  merge "${options[@]}" -- "${names[@]}"; refused "$way, no folded text" 'host-11:'
  cp "$dir/whole" host-11
  "$tool" "${options[@]}" -- "${names[@]}" >/dev/full 2>"$dir/err"; expect "$way, a full disk" 1 $?
  left "$way, a full disk"
done
merge --fan-in 3 --temp "$dir/none" -- "${names[@]}"; refused 'no folder for what is half merged' "$dir/none"
merge; expect 'no file: status' 2 "$status"
merge --fan-in 1 host-11; expect '--fan-in 1: status' 2 "$status"
merge --jobs=none host-11; expect '--jobs: status' 2 "$status"

# Some branches silently lose a line, or die.
fake() { printf '%s\n' '#!/bin/bash' "$1" >"$dir/bin/stackfold"; chmod +x "$dir/bin/stackfold"; }
fake "case \"\$1\" in --merge-sorted) set -o pipefail; '$stackfold' \"\$@\" | sed 2d ;; *) exec '$stackfold' \"\$@\" ;; esac"
PATH=$dir/bin:$PATH merge --fan-in 3 -- "${names[@]}"; refused 'a lost line' 'something was lost'
fake "case \"\$*\" in *host-20*) kill -9 \$\$ ;; esac; exec '$stackfold' \"\$@\""
PATH=$dir/bin:$PATH merge --fan-in 3 -- "${names[@]}"; refused 'killed' 'status 137'; empty killed
mkfifo "$dir/begun"
fake "case \"\$1\" in --merge-sorted) echo \$\$ >'$dir/begun'; exec sleep 1000 ;; esac; exec '$stackfold' \"\$@\""
for way in '-j 1' '-j 1 --fan-in 3'; do
  IFS=' ' read -ra options <<<"$way"
  PATH=$dir/bin:$PATH "$tool" "${options[@]}" -- "${names[@]}" >"$dir/out" 2>"$dir/err" &
  read -r sleeper <"$dir/begun"
  kill "$!"; wait "$!"; expect "$way, told to end" 143 $?
  left "$way, told to end"
  for ((i = 0; i < 500; i++)); do kill -0 "$sleeper" 2>/dev/null || break; sleep 0.02; done
  ! kill -0 "$sleeper" 2>/dev/null || fail "$way, told to end: stackfold runs on"
done

# A cluster by hand.  Hadoop: the text before a line's first tab is the key.  Lines are sorted and distributed
# by the key only.  A line without a tab gets one at its end.  The input also has stacks with tabs, and sums
# beyond 2^64.
cd "$dir" || exit 1
printf 'with\ta tab;b 5\nwith 3\nwith\ta tab;c 1\nhuge 18446744073709551615\n' >>all
stackfold all >want 2>/dev/null
split -n r/5 all split.
: >split.empty
by_key() { tac | sort -s -t $'\t' -k 1,1; }
for split in split.*; do
  "$tool" --map <"$split" >"mapped.$split" || fail "mapper: $split"
  by_key <"mapped.$split" | "$tool" --map >"combined.$split" || fail "combiner: $split"
done
[ ! -s combined.split.empty ] || fail 'something comes of nothing'
for form in mapped combined; do
  rm -f part-*
  cat "$form".split.* | awk -F '\t' '{ print >("part-" length($1) % 3) }'
  for part in part-[0-9]; do
    by_key <"$part" | stackfold --from folded 2>/dev/null | sed 's/$/\t/' >"$part.out"
    expect "$form, reducer $part" '0 0 0' "${PIPESTATUS[*]}"
  done
  if ! [ -s part-0.out ] || ! [ -s part-1.out ] || ! [ -s part-2.out ]; then fail "$form: a reducer has nothing to do"; fi
  stackfold --merge-sorted part-*.out 2>/dev/null | cmp - want || fail "$form: not the same as at once"
done
# If no stack has a tab, memory use is constant.  If one has, there is a message.
sed '/\t/d' all | stackfold >want.plain 2>/dev/null
cat mapped.split.* | grep -v $'\t.*\t' | by_key | stackfold --merge-sorted 2>/dev/null | cmp - want.plain || fail 'sorted reducer'
cat mapped.split.* | by_key | stackfold --merge-sorted >out 2>err && fail 'a sorted reducer takes stacks with tabs'
stackfold out 2>/dev/null | cmp - want || fail 'a sorted reducer loses something'
echo 'no stack' | "$tool" --map >out 2>err; expect 'a mapper of nothing' 1 $?

# Spark: the count follows a line's last blank.  Lines are distributed by stack, in any order.
for split in split.*; do stackfold --from folded "$split" 2>/dev/null; done | tac |
  awk '{ stack = $0; sub(/ [^ ]*$/, "", stack); print >("piped-" length(stack) % 3) }'
for part in piped-[0-9]; do stackfold --from folded "$part" >"$part.out" 2>/dev/null || fail "$part: status"; done
stackfold --merge-sorted piped-*.out 2>/dev/null | cmp - want || fail 'piped: not the same as at once'
finish
