#!/bin/bash
# stackfold --to: viewers of other projects read the same data as in the folded text.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
for command in go node; do
  command -v "$command" >/dev/null || skip "no $command here"
done
export HOME=$dir PPROF_TMPDIR=$dir

# same LABEL STREAM [OPTION...]: requires that the exported profile folds to the same text as the stream
# itself
same() {
  stackfold "${@:3}" "$2" 2>"$dir/err" >"$dir/text" || fail "$1: $(cat "$dir/err")"
  grep -v '^# ' "$dir/text" >"$dir/want"  # profiles have no facts
  stackfold --to pprof "$2" >"$dir/there.pb.gz" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  stackfold "${@:3}" "$dir/there.pb.gz" >"$dir/got" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  [ -s "$dir/want" ] || fail "$1: nothing is folded"
  cmp -s "$dir/want" "$dir/got" || fail "$1: $(diff "$dir/want" "$dir/got" | head -n 4 | cut -c1-300)"
}

# Several processes and threads; the kernel, inlined functions, lines; with and without symbols.
# shellcheck disable=SC2016 # for the shell that runs it
pe-record -q -F 499 -o "$dir/cpu.raw" -- bash -c 'for _ in 1 2 3 4 5 6; do ls -R /usr/share/man >/dev/null; done; "$0" shares 1' "$PE_WORKLOAD" ||
  fail 'recording'
pe-symbolize -q --lines "$dir/cpu.raw" >"$dir/cpu.pe"
same 'CPU time' "$dir/cpu.pe"
# Profiles have no mark of functions that returned by a tail call.
pe-symbolize -q --lines --no-tail-calls "$dir/cpu.raw" >"$dir/unchanged.pe"
same 'CPU time, marked' "$dir/unchanged.pe" --annotate
same 'CPU time, by thread' "$dir/cpu.pe" --tid
same 'without names' "$dir/cpu.raw"
offcpu -q --wakers -o "$dir/wait.raw" -- "$PE_WAITS" nanosleep read mutex condition >/dev/null 2>&1
pe-symbolize -q "$dir/wait.raw" >"$dir/wait.pe"
same 'waits' "$dir/wait.pe"
malloctrace -o "$dir/heap.raw" -- sort "$PE_WORKLOAD" >/dev/null 2>&1
pe-symbolize -q "$dir/heap.raw" >"$dir/heap.pe"
for event in alloc-bytes alloc-count live-bytes peak-bytes temporary; do
  same "$event" "$dir/heap.pe" --event "$event"
done
stackfold "$dir/cpu.pe" >"$dir/cpu.folded"
same 'folded text' "$dir/cpu.folded"
printf 'a;b 18446744073709551615\na;c 1.5\n' | stackfold --to pprof 2>"$dir/err" | stackfold >"$dir/got" 2>>"$dir/err"
expect 'large and broken counts' 'a;b 9223372036854775807
a;c 2' "$(cat "$dir/got")"
for said in 'rounded to whole numbers' 'were capped'; do
  grep -q "$said" "$dir/err" || fail "does not say '$said': $(cat "$dir/err")"
done

# Selected samples and stacks.
kept=$(stackfold --to pprof --include '^fifty$' "$dir/cpu.pe" 2>"$dir/err" | stackfold)
expect '--include' "$(stackfold --include '^fifty$' "$dir/cpu.pe" 2>/dev/null)" "$kept"
grep -q -e '--include, --exclude: .* left out' "$dir/err" || fail "--include does not say what it leaves out: $(cat "$dir/err")"
expect '--exclude, by thread' "$(stackfold --exclude '^ls$' "$dir/cpu.pe" 2>/dev/null)" \
  "$(stackfold --to pprof --exclude '^ls$' "$dir/cpu.pe" 2>/dev/null | stackfold)"
stackfold --to pprof --modules "$dir/cpu.pe" >/dev/null 2>"$dir/err" && fail '--modules is taken'
stackfold --to nothing "$dir/cpu.pe" >/dev/null 2>"$dir/err"
expect 'status of an unknown form' 2 $?

# pprof itself reads the profile: the text that it prints, and its table by function.
stackfold --to pprof "$dir/cpu.pe" >"$dir/cpu.pb.gz"
go tool pprof -symbolize=none -raw "$dir/cpu.pb.gz" >"$dir/cpu.txt" 2>"$dir/err" || fail "pprof -raw: $(cat "$dir/err")"
expect 'pprof -raw' "$(sed 's/^[^;]*;//' "$dir/cpu.folded" | stackfold | md5sum)" "$(stackfold "$dir/cpu.txt" 2>"$dir/err" | md5sum)"
# The table has one row for each function.  pprof marks functions with "(inline)" that are inlined everywhere.
table() { sed 's/ (\(partial-\)\?inline)$//' | LC_ALL=C sort; }
go tool pprof -symbolize=none -top -nodecount=1000000 -nodefraction=0 -edgefraction=0 "$dir/cpu.pb.gz" 2>"$dir/err" |
  awk 'rows { f = $1; c = $4; $1 = $2 = $3 = $4 = $5 = ""; sub(/^ +/, ""); print f, c, $0 } /^ *flat +flat%/ { rows = 1 }' | table >"$dir/top"
sed 's/^[^;]*;//' "$dir/cpu.folded" | stackfold | stacktop --tsv -n 0 | awk -F '\t' 'NR > 1 { print $1, $3, $5 }' | table >"$dir/ours"
[ -s "$dir/top" ] || fail "pprof -top: $(cat "$dir/err")"
cmp -s "$dir/top" "$dir/ours" || fail "pprof -top: $(diff "$dir/top" "$dir/ours" | head -n 6)"
go tool pprof -symbolize=none -sample_index=cpu -top "$dir/cpu.pb.gz" 2>/dev/null | grep -q '^Type: cpu$' || fail 'no CPU time in the profile'
go tool pprof -symbolize=none -lines -top "$dir/cpu.pb.gz" 2>/dev/null | grep -q 'workload\.[a-z]*:[0-9]' || fail 'no lines of the program'

# The other formats follow their rules, and have as many samples.
for form in speedscope firefox; do
  for input in cpu.pe wait.pe heap.pe cpu.folded; do
    stackfold --to "$form" "$dir/$input" >"$dir/$form.json" 2>"$dir/err" || fail "$form, $input: $(cat "$dir/err")"
    if [ "${input#*.}" = pe ]; then stackfold "$dir/$input" >"$dir/want" 2>/dev/null; else cp "$dir/$input" "$dir/want"; fi
    node "$here/exports_check.mjs" "$form" "$dir/$form.json" "$dir/want" >"$dir/err" 2>&1 || fail "$form, $input: $(cat "$dir/err")"
  done
done

# No samples make no profile.
for form in pprof speedscope firefox; do
  stackfold --to $form </dev/null >"$dir/out" 2>"$dir/err"; expect "$form of nothing: status" 1 $?
  grep -q 'no stack in the input, so there is no profile to write' "$dir/err" || fail "$form of nothing: $(cat "$dir/err")"
  [ ! -s "$dir/out" ] || fail "$form of nothing: an output"
done
finish
