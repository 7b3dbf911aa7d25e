#!/bin/bash
# profile_run ci: growth by ten points in four seconds, runs of both sides in turn, and the cost of a unit of
# work.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
pr() { "$PE_SCRIPTS/profile_run" "$@"; }
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
hasnt() { ! grep -qF -e "$2" "$3" || fail "$1: '$2' in $(cat "$3")"; }
member() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1/meta.json" "$2"; }

# This is what 4 seconds at 99 Hz showed: one of some twenty functions grew from 59.4 % to 69.7 %.
pr capture --output runs -- "$PE_WORKLOAD" shares 0.1 >out 2>err || fail "$(cat err)"
made=$(cat out)
profile() {  # NAME GROWN REST
  mkdir "$1"
  cp "$made/meta.json" "$1"
  { for number in {1..20}; do echo "main;run;small$number 2"; done; echo "main;run;work;grown $2"; echo "main;run;work;rest $3"; } >"$1/stacks.folded"
}
profile before 235 121
profile after 276 80
pr ci --shares --baseline ./before --run ./after >out 2>err; expect 'ten points more' 3 $?
has 'ten points more' 'grown grew from 59.34% to 69.70%' err
has 'ten points more' ' sure ' out
pr ci --shares --baseline ./after --run ./before --fail-over 11% >out 2>err; expect 'less' 0 $?

# Three runs of each side in turn; the program records which side it is.
cat >program <<'END'
#!/bin/bash
echo "$1" >>order
[ "$1" = before ] && rounds=40000 || rounds=4000
for ((i = 0; i < 60000; i++)); do ((i % 3)) || : "$((i * i))"; done
echo "warm-up: 7 orders"
echo "did $rounds orders in all" >&2
END
chmod +x program
pr ci --output turns --runs 3 --baseline-workload './program before' --work 'did ([0-9]+) orders' --fail-over 30% -- ./program after >out 2>err
status=$?
expect 'order' 'before after before after before after' "$(xargs <order)"
expect 'runs' 7 "$(pr list --output turns | wc -l)"
for run in turns/*Z*; do
  case $(member "$run" workload) in *before) expect 'work' 40000 "$(member "$run" work)" ;; *) expect 'work' 4000 "$(member "$run" work)" ;; esac
done
# Each order costs ten times as much, although no function's share changes.  (On a busy machine, CPU times differ by a
# factor of almost two, which three runs cannot tell from a change.)
expect "cost of an order, '$(cat err)'" 3 $status
has 'cost of an order' 'changes in the cost per unit of work beyond noise, largest first' out
has 'cost of an order' 'everything grew from 100.00%' err
has 'cost of an order' '| baseline |' out
expect 'rows of the table' 6 "$(grep -cE '^\| (baseline|now) ' out)"
has 'verdict' '## Profile: functions cost more' out
has 'the program is heard' 'did 40000 orders in all' err

# The user compares the same two runs by hand.
first=$(pr list --output turns | awk 'NR == 2 { print $1 }') second=$(pr list --output turns | awk 'NR == 3 { print $1 }')
pr diff --output turns --before "$first" --after "$second" --svg diff.svg >out 2>err || fail "diff: $(cat err)"
has diff 'cost per unit of work: before ' out
xmllint --noout diff.svg || fail 'diff: not well-formed'
sed -i 's/^  "work": .*/  "work": null,/' "turns/$first/meta.json"
pr diff --output turns --before "$first" --after "$second" --svg diff.svg >out 2>err || fail "diff: $(cat err)"
has diff 'changes in shares beyond noise, largest first' out
hasnt diff 'cost per unit' out

# Stored runs as programs leave them: five of each side, whose program took 1,000 samples and a little more or less.
# One function gets faster, and no other changes: shares of all others grow, but nothing costs more.
side() {  # NAME PARSE HASH PROGRAM
  local number spread
  for number in 1 2 3 4 5; do
    spread=$((number - 3))
    mkdir -p "$1-$number"
    sed 's/^  "samples": .*/  "samples": 1000,/' "$made/meta.json" >"$1-$number/meta.json"
    printf '%s;main;%s %d\n' "$4" parse_order $(($2 + 2 * spread)) "$4" hash $(($3 + 3 * spread)) "$4" print $((300 - spread)) >"$1-$number/stacks.folded"
  done
}
gate() {  # OPTION... -- NAME BEFORE AFTER
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  python3 -c 'import sys
sys.path.insert(0, sys.argv[1])
from stackpipe.pipeline import Tools
from stackpipe.runs import compare, profile_run, store
given = [word for word in sys.argv[4:] if word]
line = profile_run.options.read(profile_run.OPTIONS, given)
sides = [[store.Run(f"./{name}-{number}") for number in range(1, 6)] for name in sys.argv[2:4]]
compare.find_sides = lambda settings, tools: compare.Sides(*sides)
sys.exit(compare.run_ci(profile_run.Settings("ci", line), Tools("/nowhere")))' "$PE_SCRIPTS/../share/stackpipe/python" "$2" "$3" "${options[@]}" >out 2>err
}
side old 383 317 prog
side faster 383 117 prog
gate -- old faster; expect 'a pure improvement' 0 $?
has 'a pure improvement' '## Profile: no function costs more' out
has 'a pure improvement' 'hash' out
grep -q ' sure .*parse_order' out && fail "a pure improvement: parse_order changed: $(cat out)"
gate --shares -- old faster; expect 'shares of a pure improvement' 3 $?
has 'shares of a pure improvement' '## Profile: shares grew' out
has 'shares of a pure improvement' 'parse_order grew from 38.30% to 47.88%' err
side slower 383 380 prog2  # and renamed
gate -- old slower; expect 'a slower function' 3 $?
has 'a slower function' 'hash grew from 31.70% to 38.00% of the earlier count' err
grep -q '^    .* sure .*  hash$' out || fail "a slower function: not sure in the table: $(cat out)"
grep -q 'parse_order grew\|prog2 grew\|print grew' err && fail "a slower function: others grew: $(cat err)"
side renamed 383 317 prog-2.0
gate -- old renamed; expect 'a renamed program' 0 $?
hasnt 'a renamed program' 'grew' err

# Wrong command lines.
usage() {  # MESSAGE ARGUMENT...
  "$PE_SCRIPTS/profile_run" "${@:2}" >out 2>err; expect "status of ${*:2}" 2 $?
  has "${*:2}" "$1" err
}
usage '--runs: needs --baseline-workload' ci --runs 2 -- true
usage "--runs: not a number above 0: '0'" ci --runs 0 -- true
usage '--baseline, --baseline-workload: cannot be combined' ci --baseline-workload true --baseline latest -- true
usage "--work: not a regular expression: '('" ci --work '('
usage '--work: only with capture or ci' list --work x
pr capture --output none --work 'no ([0-9]+) such' -- "$PE_WORKLOAD" shares 0.2 >out 2>err; expect 'no work told' 0 $?
has 'no work told' "--work: no amount of work above 0 in the program's output" err
pr ci --output none --runs 1 --baseline latest --work 'no ([0-9]+) such' -- "$PE_WORKLOAD" shares 0.2 >out 2>err; expect 'ci without work' 1 $?
finish
