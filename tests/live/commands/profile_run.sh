#!/bin/bash
# Records the demo's workload twice, compares the runs, and reports a trend.  Runs stay complete, whatever
# names, programs and users do.
. "$(dirname "$0")/../lib.sh"
runs="$dir/runs of a 'user' \"quoted\""
pr() { "$PE_SCRIPTS/profile_run" "$@"; }
in_runs() { pr "$1" --output "$runs" "${@:2}"; }
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
hasnt() { ! grep -qF -e "$2" "$3" || fail "$1: '$2' in $(cat "$3")"; }
member() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1/meta.json" "$2"; }
is_whole() {  # LABEL RUN
  for file in report.txt flame.svg stacks.folded named.pe.gz meta.json messages.txt; do
    [ -f "$2/$file" ] || fail "$1: no $file"
  done
  xmllint --noout "$2/flame.svg" || fail "$1: the picture is not well-formed"
  expect "$1: format" 1 "$(member "$2" format)"
  gzip -dc "$2/named.pe.gz" | stackfold --annotate - 2>/dev/null | cmp -s - "$2/stacks.folded" || fail "$1: stream and stacks differ"
}

# Records the same program twice.
first=$(in_runs capture --mode detailed --workload "$PE_WORKLOAD shares 1" 2>"$dir/err")
expect 'status of capture' 0 $?
has 'closing line' "report: $first/report.txt" "$dir/err"
second=$(in_runs capture --mode detailed -- "$PE_WORKLOAD" shares 1 2>/dev/null)
for run in "$first" "$second"; do
  is_whole 'a run' "$run"
  at_least samples 700 "$(member "$run" samples)"
  expect 'frequency' 997 "$(member "$run" rate_hz)"
  expect 'arguments' "['$PE_WORKLOAD', 'shares', '1']" "$(member "$run" arguments)"
  within 'fifty' 50 "$(share ';work;fifty' "$run/stacks.folded")" 6
  for text in "Profile of $PE_WORKLOAD shares 1" 'detailed, 997 Hz' ' lost' 'exit status 0' 'HOT SPOTS' fifty; do
    has report "$text" "$run/report.txt"
  done
  case $(member "$run" frames) in None | [1-9]*) ;; *) fail "frames: $(member "$run" frames)" ;; esac
  # Some frames have no name, because some libraries have no symbols.
  grep -Eq '^symbols +(every frame has a name|[0-9.]+ % of [0-9]+ frames have a name)' "$run/report.txt" || fail "report: no symbols in $(cat "$run/report.txt")"
done
has 'the first report' 'There is no earlier run' "$first/report.txt"
has 'the second report' "Baseline: $(basename "$first")" "$second/report.txt"
expect 'lines of list' 3 "$(in_runs list | wc -l)"
in_runs list >"$dir/out"
has list "$(basename "$second")" "$dir/out"

in_runs diff --before "$(basename "$first")" --after "$second" >"$dir/out" || fail 'diff: status'
has diff 'changes in shares beyond noise, largest first' "$dir/out"
xmllint --noout "$(tail -n 1 "$dir/out")" || fail 'diff: not well-formed'
in_runs trend fifty >"$dir/out" || fail 'trend: status'
has trend 'share of fifty in 2 runs' "$dir/out"
within 'trend, total' 50 "$(awk -v run="$(basename "$second")" '$1 == run { print $4 }' "$dir/out")" 6
xmllint --noout "$runs/trend.svg" || fail 'trend: not well-formed'
in_runs trend no_such_function >/dev/null 2>"$dir/err"; expect 'trend of nothing' 1 $?
in_runs analyze --top 3 >"$dir/out" || fail 'analyze: status'
has analyze fifty "$dir/out"
in_runs flamegraph --run previous --svg "$dir/-x y.svg" -- --inverted >/dev/null || fail 'flamegraph: status'
in_runs flamegraph --svg "$dir/titled.svg" -- --title 'a title of theirs' --colors=hot >/dev/null || fail 'flamegraph, their title: status'
has 'their title' 'a title of theirs' "$dir/titled.svg"
grep -q 'Icicle' "$dir/-x y.svg" || xmllint --noout "$dir/-x y.svg" || fail 'flamegraph: no picture'
in_runs ci --shares --baseline previous --fail-over 10% >"$dir/out" 2>"$dir/err"; expect 'ci of the same' 0 $?
has ci '## Profile: no share grew' "$dir/out"
in_runs ci --baseline previous >"$dir/out" 2>"$dir/err"; expect 'ci of the cost of one run' 1 $?
has 'ci of the cost of one run' 'one run of each side does not show' "$dir/err"

# ci reports growth that so few samples cannot tell from noise.
for run in few fewer; do mkdir "$dir/$run" && cp "$first/meta.json" "$dir/$run"; done
printf 'main;a 10\nmain;b 10\n' >"$dir/few/stacks.folded"
printf 'main;a 6\nmain;b 14\n' >"$dir/fewer/stacks.folded"
in_runs ci --shares --baseline "$dir/few" --run "$dir/fewer" --fail-over 5% >"$dir/out" 2>"$dir/err"; expect 'ci of what may be noise' 0 $?
has ci '## Profile: the runs are too few or too noisy to tell' "$dir/out"
has ci '    flamediff: b grew from 50.00% to 70.00%, but there are too few samples to tell this from noise (20 and 20)' "$dir/out"

# A function grew; the names are malicious to shells, terminals, Markdown, XML and awk.
# shellcheck disable=SC2016 # they are not to be expanded
names=('$(touch pwned)' '`touch pwned`' "'; touch pwned; '" '</svg><script>alert(1)</script>' '\n\\&' 'a" b' '--output' $'esc\033]0;x\a\x9b\xff' '| a | b |' '```')
slow=$runs/2000-01-01T00-00-00Z fast=$runs/1999-01-01T00-00-00Z
for run in "$fast" "$slow"; do
  mkdir "$run"
  sed "s/^  \"workload\": .*/  \"workload\": \"\$(touch pwned)\",/" "$first/meta.json" >"$run/meta.json"
  for name in "${names[@]}"; do printf 'main;%s 1000\n' "$name"; done >"$run/stacks.folded"
done
printf 'main;%s;grew 4000\n' "${names[@]}" >>"$slow/stacks.folded"
cd "$dir" || exit 1
in_runs ci --shares --baseline "$(basename "$fast")" --run "$slow" --summary "$dir/summary.md" 2>"$dir/err"
expect 'ci of what grew' 3 $?
has 'who grew' grew "$dir/err"
has summary '## Profile: shares grew' "$dir/summary.md"
for name in "${names[@]}"; do
  in_runs trend "$name" --run "$slow" --svg "$dir/trend.svg" >>"$dir/summary.md" 2>&1
  xmllint --noout "$dir/trend.svg" || fail "trend of $name: not well-formed"
done
{ in_runs list; in_runs analyze --run "$slow"; in_runs diff --before "$fast" --after "$slow"; } >>"$dir/summary.md" 2>&1
in_runs flamegraph --run "$slow" >/dev/null || fail 'a hostile picture: status'
xmllint --noout "$slow/flame.svg" || fail 'a hostile picture: not well-formed'
! LC_ALL=C grep -q $'[\001-\010\013-\037\x9b\xff]' "$dir/summary.md" || fail 'control characters are printed'
! grep -q '^```' "$dir/summary.md" || fail 'a name is Markdown'
[ -z "$(find "$dir" -name 'pwned*')" ] || fail 'a name was run'
rm -r "$slow" "$fast"

# Clones that compilers made, names that are nearly right, long names, and runs without samples.
clones=$dir/clones
for run in 1999-01-01T00-00-00Z 2000-01-01T00-00-00Z 2001-01-01T00-00-00Z; do
  mkdir -p "$clones/$run"
  sed 's/^  "samples": .*/  "samples": 100,/' "$first/meta.json" >"$clones/$run/meta.json"
  printf 'main;app::Work::thirty.isra.0;app::Work::thirty.part.1.cold 30\nmain;%s::end 70\n' "$(printf '%0300d' 0)" >"$clones/$run/stacks.folded"
done
: >"$clones/2000-01-01T00-00-00Z/stacks.folded"
for name in app::Work::thirty app::Work::thirty.isra.0; do
  pr trend --output "$clones" "$name" >"$dir/out" 2>&1 || fail "trend of $name: $(cat "$dir/out")"
  expect "trend of $name" 30.00 "$(awk '/^2001/ { print $4 }' "$dir/out")"
done
expect 'trend, no samples' '- -' "$(awk '/^2000/ { print $3, $4 }' "$dir/out")"
has 'trend, no samples' 'total 30.00 to 30.00 %' "$dir/out"
xmllint --noout "$clones/trend.svg" || fail 'trend of clones: not well-formed'
pr trend --output "$clones" Work::thirteen 2>"$dir/err" && fail 'trend: a name that is nearly right'
mkdir "$clones/2002-01-01T00-00-00Z"
sed 's/^  "workload": .*/  "workload": "other",/' "$first/meta.json" >"$clones/2002-01-01T00-00-00Z/meta.json"
echo 'main;app::Work::thirty 5' >"$clones/2002-01-01T00-00-00Z/stacks.folded"
pr trend --output "$clones" app::Work::thirty >"$dir/out" 2>"$dir/other"
expect 'trend, of the last program' 'share of app::Work::thirty in 1 run' "$(head -n 1 "$dir/out")"
has 'trend, other programs' '3 runs of other programs, or that count something else, left out' "$dir/other"
pr trend --output "$clones" --run 2001-01-01T00-00-00Z app::Work::thirty >"$dir/out" 2>/dev/null
expect 'trend, of one program' 'share of app::Work::thirty in 3 runs' "$(head -n 1 "$dir/out")"
sed 's/^  "mode": .*/  "mode": "heap",/' "$first/meta.json" >"$clones/2002-01-01T00-00-00Z/meta.json"
pr trend --output "$clones" app::Work::thirty >"$dir/out" 2>"$dir/other"
expect 'trend, of bytes' 'share of app::Work::thirty in 1 run' "$(head -n 1 "$dir/out")"
has 'trend, of samples' '3 runs of other programs, or that count something else, left out' "$dir/other"
for of_bytes in 'diff --before previous' 'ci --baseline previous' 'watch --baseline latest'; do
  # shellcheck disable=SC2086 # words
  timeout 20 "$PE_SCRIPTS/profile_run" $of_bytes --output "$clones" >"$dir/out" 2>"$dir/other"; expect "$of_bytes, of bytes: status" 1 $?
  grep -qE '^profile_run: --[a-z]+: .* counts (bytes, not samples|samples, not bytes)$' "$dir/other" || fail "$of_bytes, of bytes: $(cat "$dir/other")"
done
rm -r "$clones/2002-01-01T00-00-00Z"
mv "$clones/2000-01-01T00-00-00Z" "$clones/2003-01-01T00-00-00Z"
pr analyze --output "$clones" | grep -q Work::thirty || fail 'the latest run is one without samples'
mv "$clones/2003-01-01T00-00-00Z" "$clones/2000-01-01T00-00-00Z"
mkdir "$clones/.capture-1"
pr list --output "$clones" 2>"$dir/out2" >"$dir/out"
has 'list, drafts' 'unfinished: 1 capture,' "$dir/out2"
rmdir "$clones/.capture-1"
# list marks folders that are not complete runs.
mkdir "$clones/2004-01-01T00-00-00Z"
pr list --output "$clones" >"$dir/out" 2>&1
has 'list, an empty folder' '2004-01-01T00-00-00Z   broken: no meta.json' "$dir/out"
touch "$clones/2004-01-01T00-00-00Z"/{meta.json,stacks.folded}
pr list --output "$clones" >"$dir/out" 2>&1
has 'list, an empty file' '2004-01-01T00-00-00Z   broken: meta.json cannot be read' "$dir/out"
rm -r "$clones/2004-01-01T00-00-00Z"
has 'near names' 'the last has app::Work::thirty' "$dir/err"
pr analyze --output "$clones" >"$dir/out"
has 'long names' '::end' "$dir/out"
expect 'lines of analyze that are too long' 0 "$(grep -c '.\{121\}' "$dir/out")"

# Programs that fail, do nothing, or have odd names; the arguments and environment that they receive.
# shellcheck disable=SC2016 # the program is to expand it
run=$(in_runs capture -- sh -c '"$0" shares 0.5; echo said; exit 7' "$PE_WORKLOAD" 2>"$dir/err"); expect 'status of the program' 7 $?
is_whole 'a failing program' "$run"
has 'failing program' 'exit status 7' "$run/report.txt"
has 'failing program' 'sh: exit status 7' "$dir/err"
in_runs capture -- "$dir/no such" 2>/dev/null >&2; expect 'a program that is not there' 127 $?
sleep 600 & asleep=$!
in_runs capture --pid $asleep --duration 0.1 >"$dir/out" 2>"$dir/err"; expect 'a program without samples' 1 $?
kill $asleep
has 'a program without samples' 'profile_run: nothing was recorded' "$dir/err"
expect 'a program without samples: runs' '' "$(cat "$dir/out")"
in_runs capture --limit f=3% -- true >"$dir/out" 2>"$dir/err"; expect 'an option of watch' 2 $?
has 'an option of watch' '--limit: only with watch' "$dir/err"
odd="$dir/-o \"dd' \$(touch pwned)"
cp /bin/sh "$odd"
# shellcheck disable=SC2016 # the program is to expand it
run=$(in_runs capture -- "$odd" -c '"$0" shares 0.5' "$PE_WORKLOAD" $'a\nb' 2>/dev/null); expect 'an odd name' 0 $?
is_whole 'an odd name' "$run"
expect 'odd arguments' "['$(printf %s "$odd" | sed "s/'/\\\\'/g")', '-c', '\"\$0\" shares 0.5', '$PE_WORKLOAD', 'a\\nb']" "$(member "$run" arguments)"
# shellcheck disable=SC2016 # the program is to expand it
expect 'locale of the program' C.UTF-8 "$(LC_ALL=C.UTF-8 in_runs capture -- sh -c 'echo $LC_ALL >&2' 2>&1 >/dev/null | grep -x C.UTF-8)"
printf 'main;one 1\n' >"$run/stacks.folded"
in_runs analyze --run "$run" >"$dir/out" || fail 'a single sample'
has 'a single sample' '100.00%    1 100.00%     1  one' "$dir/out"
: >"$run/stacks.folded"
in_runs analyze --run "$run" >/dev/null 2>&1 || fail 'an empty profile'

# Ctrl-C reaches the whole process group, as from a terminal.
timeout -s INT 1.5 "$PE_SCRIPTS/profile_run" capture --output "$runs" --duration 0 -- "$PE_WORKLOAD" shares 60 >"$dir/out" 2>"$dir/err"
run=$(head -n 1 "$dir/out")
[ -n "$run" ] || fail "Ctrl-C: $(cat "$dir/err")"
is_whole 'Ctrl-C' "$run"
expect 'Ctrl-C is told' True "$(member "$run" interrupted)"
# SIGTERM reaches only the command, which ends its recorder.
"$PE_SCRIPTS/profile_run" capture --output "$runs" -- "$PE_WORKLOAD" shares 60 >"$dir/out" 2>"$dir/err" & capturing=$!
until find "$runs" -path '*/.capture*/raw.pe' -size +0 | grep -q .; do kill -0 $capturing 2>/dev/null || break; sleep 0.05; done
kill $capturing; wait $capturing
is_whole SIGTERM "$(head -n 1 "$dir/out")"
expect 'SIGTERM is told' True "$(member "$(head -n 1 "$dir/out")" interrupted)"
[ -z "$(find "$runs" -name '.capture*')" ] || fail 'drafts are left'

# watch keeps one file for each hour, and raises alerts.
mkdir -p "$dir/w/watch"
echo 'a 1' | tee "$dir/w/watch/2001-01-01T00Z.folded" >"$dir/w/watch/2001-01-01T01Z.folded"
# shellcheck disable=SC2016 # the script is to expand it
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >>"$0.log"\n' >"$dir/alarm" && chmod +x "$dir/alarm"
"$PE_WORKLOAD" shares 20 &
target=$!
pr watch --output "$dir/w" --pid $target --rate 499 --interval 0.5 --duration 1.5 --keep 2 --limit fifty=20% --limit thirty=90 --limit no_such=20% \
  --alert "$dir/alarm first" 2>"$dir/err" || fail "watch: $(cat "$dir/err")"
kill $target
hours=("$dir"/w/watch/*.folded)
# Compares with an hour in which the same program had other shares.
mkdir -p "$dir/v/watch"
printf 'workload;other 5000\nworkload;work 5000\n' >"$dir/v/watch/2001-01-01T00Z.folded"
"$PE_WORKLOAD" shares 20 &
other=$!
pr watch --output "$dir/v" --pid $other --rate 997 --interval 1 --duration 1 2>"$dir/grown" || fail "watch: $(cat "$dir/grown")"
kill $other
has 'watch, growth' ' alert: growth: ' "$dir/grown"
expect 'alerts for an hour' 1 "$(grep -c alert: "$dir/grown")"
[ ! -e "$dir/w/watch/2001-01-01T00Z.folded" ] || fail 'the oldest hour is kept'
at_least 'hours kept' 2 ${#hours[@]}
within 'watched share' 50 "$(share ';work;fifty' "${hours[-1]}")" 12
has watch 'alert: fifty: ' "$dir/err"
hasnt watch 'alert: thirty: ' "$dir/err"
expect 'a limit of no function is told once' 1 "$(grep -c -e '--limit no_such=20%: no function has this name so far' "$dir/err")"
# The recorder prints its messages once: it records all intervals.
mkdir "$dir/bin"
printf '#!/bin/sh\necho "pe-record: $$ processes could not be read" >&2\nexec "%s" "$@"\n' "$(command -v pe-record)" >"$dir/bin/pe-record"
chmod +x "$dir/bin/pe-record"
PATH=$dir/bin:$PATH pr watch --output "$dir/u" --pid $$ --interval 0.3 --duration 1.5 2>"$dir/again" || fail "watch: $(cat "$dir/again")"
# Samples that could not be folded are missing, and watch reports this.  It does not add half of them.
mkdir "$dir/broken"
printf '#!/bin/sh\necho main 1; echo "stackfold: stdout: No space left on device" >&2; exit 1\n' >"$dir/broken/stackfold"
chmod 755 "$dir/broken/stackfold"
PATH=$dir/broken:$PATH pr watch --output "$dir/x" --pid $$ --interval 0.2 --duration 1 2>"$dir/err"; expect 'watch that cannot fold' 1 $?
has 'watch that cannot fold' 'No space left on device' "$dir/err"
has 'watch that cannot fold' 'could not be folded' "$dir/err"
expect 'half a chunk' '' "$(cat "$dir"/x/watch/*.folded 2>/dev/null)"
expect 'a message of the recorder' 1 "$(grep -c 'could not be read' "$dir/again")"
expect 'what an alert gets' 'first fifty 20' "$(awk 'NR == 1 || NR == 2 || NR == 4' "$dir/alarm.log" | paste -sd' ')"

# Records the bytes that a program allocates, until it ends.
heap=$(pr capture --output "$dir/heap" --mode heap -- "$PE_WORKLOAD" shares 0.1 2>"$dir/err"); expect '--mode heap' 0 $?
is_whole 'a run of the heap' "$heap"
expect 'unit of the heap' bytes "$(member "$heap" unit)"
expect 'event of the heap' alloc-bytes "$(member "$heap" event)"
at_least 'allocations' 1 "$(member "$heap" samples)"
has 'report of the heap' 'bytes allocated' "$heap/report.txt"
heap=$(pr capture --output "$dir/heap" --mode heap -- "$PE_HEAP" peak 2>"$dir/err"); expect 'the heap of a peak' 0 $?
for part in peak leaks; do
  xmllint --noout "$heap/$part.svg" || fail "$part.svg is not well-formed"
done
expect 'other events are told once' 1 "$(grep -c 'left out' "$heap/report.txt")"
expect 'held at the peak' 10000 "$(awk '/;peak_of_10000;/ { sum += $NF } END { print sum + 0 }' "$heap/peak.folded")"
expect 'of these not freed' 0 "$(awk '/;peak_of_10000;/ { sum += $NF } END { print sum + 0 }' "$heap/leaks.folded")"
expect 'not freed' 1000 "$(awk '/;keep_ten_of_100;/ { sum += $NF } END { print sum + 0 }' "$heap/leaks.folded")"
expect 'allocated' 11000 "$(awk '/;(keep_ten_of_100|peak_of_10000);/ { sum += $NF } END { print sum + 0 }' "$heap/stacks.folded")"
has 'report: not freed' 'NOT FREED' "$heap/report.txt"
has 'report: at the peak' 'peak_of_10000' "$heap/report.txt"

# Wrong command lines.
usage() {  # MESSAGE ARGUMENT...
  "$PE_SCRIPTS/profile_run" "${@:2}" >"$dir/out" 2>"$dir/err"; expect "status of ${*:2}" 2 $?
  has "${*:2}" "$1" "$dir/err"
  [ ! -s "$dir/out" ] || fail "${*:2}: standard output"
}
usage "unknown command 'dance'" dance
usage "unrecognised option '--no-such'" list --no-such x
usage '--duration: needs a value' capture --duration
usage "--duration: not a number of seconds: '-1'" capture --duration -1
usage "nothing to record: give a program" capture
usage 'cannot be combined' capture --pid 1 -- true
usage 'ci: needs --baseline or --baseline-workload' ci
usage "list: unexpected 'true'" list true
usage 'diff: give the runs to compare, such as diff previous latest' diff
pr analyze --output "$dir/none" 2>"$dir/err"; expect 'no runs' 1 $?
has 'no runs' "no latest run with samples in '$dir/none'" "$dir/err"
pr --help >/dev/full 2>/dev/null && fail 'a full disk looks like success'
[ -z "$(find "$dir" -name 'pwned*')" ] || fail 'a name was run'
finish
