#!/bin/bash
# offcpu --locks charges the time that threads wait for locks to the stacks that released them, and names the
# locks.
. "$(dirname "$0")/../lib.sh"

offcpu --locks -o "$dir/try.pe" -- "$PE_LOCKS" join >/dev/null 2>"$dir/why" || {
  grep -q '^offcpu: --locks needs the bpf engine: ' "$dir/why" || fail "says: $(cat "$dir/why")"
  [ "$failed" = 0 ] || finish
  skip "no eBPF here: $(cat "$dir/why")"
}

# time_of PATTERN FILE: prints the microseconds of the matching stacks
time_of() { PATTERN=$1 awk '$0 ~ ENVIRON["PATTERN"] { n += $NF } END { print n + 0 }' "$2"; }
# least CASE, most CASE: print how many microseconds the program's waits took at least, and at most
least() { awk -v c="$1" '$1 == c { print $2 }' "$dir/said"; }
most() { awk -v c="$1" '$1 == c { print $3 }' "$dir/said"; }

# record OPTION... -- CASE...: leaves the folded stacks in $dir/folded
record() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  offcpu -v --locks "${options[@]}" -o "$dir/l.pe" -- "$PE_LOCKS" "${@:2}" >"$dir/said" 2>"$dir/err"
  expect "status of ${*:2}" 0 $?
  pe-symbolize -q "$dir/l.pe" 2>"$dir/symbolized" | stackfold >"$dir/folded"
}

# check CASE LOCK RELEASE: the waits of CASE are as long as the program measured, but for half a per cent.  They
# are for LOCK, and below RELEASE.
check() {
  local waits
  waits=$(time_of ";wait_for_$1[;(]" "$dir/folded")
  at_least "$1: microseconds" $(($(least "$1") * 199 / 200)) "$waits"
  at_least "$1: $waits microseconds, at most" "$waits" $(($(most "$1") * 201 / 200))
  at_least "$1: charged to $3, of $waits us" $((waits * 99 / 100)) "$(time_of "(^|;)$3[^-]*;--;\\[$2\\];.*;wait_for_$1[;(]" "$dir/folded")"
}

record -- mutex std_mutex shared_mutex condition semaphore uncommon pi_mutex join process timeout signal bad
check mutex 'mutex first waited for at wait_for_mutex(\(\))?' 'locks;.*release_mutex'
check std_mutex 'mutex g_pool\+0x10' 'locks;.*release_std_mutex'
check shared_mutex 'read-write lock g_shared' 'locks;.*release_shared_mutex'
check condition 'condition variable g_condition' 'locks;.*release_condition'
check semaphore 'semaphore g_semaphore' 'locks;.*release_semaphore'
# Only user space can walk the stack of this release.
check uncommon 'semaphore g_semaphore' 'locks;.*start_thread;.*release_uncommon'
check pi_mutex 'mutex first waited for at wait_for_pi_mutex(\(\))?' 'locks;.*release_pi_mutex'
check process 'mutex first waited for at wait_for_process(\(\))?' 'locks;.*release_process'
check join 'thread joined at wait_for_join[^]]*' 'locks;'
check timeout 'semaphore g_semaphore' '\[timeout\]'
check signal 'semaphore g_semaphore' '\[signal\]'
expect 'waits for what is not a futex' 0 "$(time_of 'wait_for_bad' "$dir/folded")"
grep -qE '10 waits ended by a timeout, 10 by a signal' "$dir/err" || fail "no counts: $(cat "$dir/err")"
expect 'kernel frames' 0 "$(grep -c 'schedule;' "$dir/folded")"
[ "$failed" = 0 ] || { cat "$dir/said" "$dir/err" "$dir/symbolized"; cut -c1-400 "$dir/folded"; }

# The stack of a release may be incomplete while those of all waits are complete.
record -- lost
check lost 'semaphore g_semaphore' 'locks;release_lost'
grep -q ', 100\.0 % of stacks complete' "$dir/err" && fail "incomplete releases: $(cat "$dir/err")"

# Three functions hold one lock for 60, 30 and 10 % of the time.
record -- holders
holders=(release_long release_medium release_short)
for holder in "${holders[@]}"; do
  found=$(grep ';wait_for_holders' "$dir/folded" | share ";$holder(\\(\\))?;.*;--;\\[mutex g_mutex\\];" /dev/stdin)
  least_others=0 most_others=0
  for other in "${holders[@]}"; do
    [ "$other" != "$holder" ] || continue
    least_others=$((least_others + $(least "$other"))) most_others=$((most_others + $(most "$other")))
  done
  at_least "$holder: % of the waits" "$((100 * $(least "$holder") / ($(least "$holder") + most_others) - 3))" "$found"
  at_least "$holder: $found % of the waits, at most" "$found" "$((100 * $(most "$holder") / ($(most "$holder") + least_others) + 3))"
done
[ "$failed" = 0 ] || { cat "$dir/said" "$dir/err"; cut -c1-400 "$dir/folded"; }

# The waiter's stack first.  The same time is below the holders' stacks alone.
record --blame waiter -- std_mutex
at_least 'the waiter first' $(($(least std_mutex) * 9 / 10)) \
  "$(time_of '^locks;.*;wait_for_std_mutex.*;\[mutex g_pool\+0x10\];--;.*release_std_mutex.*;locks ' "$dir/folded")"
stackfold --event offcpu-waker "$dir/l.pe" 2>/dev/null >"$dir/alone"
expect 'separators among holders' 0 "$(grep -c -F ';--;' "$dir/alone")"
[ "$failed" = 0 ] || { cat "$dir/said" "$dir/err"; cut -c1-400 "$dir/folded"; }

# How long threads held a lock that they had waited for, by the function that got it.  A lock that was free counts nothing.
# The program also waits for barriers and releases them.  The recorder does not tell these from mutexes: it has no time.
offcpu --locks --held --summary 7 -o "$dir/h.pe" -- "$PE_HELD" 7>"$dir/json" >"$dir/said" 2>"$dir/err"; expect 'status with --held' 0 $?
grep -qE '^offcpu: [0-9]+ futex releases in [0-9.]+ s, 0 lost, ' "$dir/err" || fail "--held says: $(cat "$dir/err")"
at_least 'releases' 20 "$(grep -oP '"releases":\K[0-9]+' "$dir/json")"
expect 'times in the summary' '' "$(grep -oE '"[a-z]+_seconds"' "$dir/json")"
pe-symbolize -q "$dir/h.pe" | stackfold 2>"$dir/symbolized" >"$dir/folded"
held=$(time_of ';\[mutex g_kept\] ' "$dir/folded")
at_least 'held in all: us' $((($(least keep_long) + $(least keep_short)) * 199 / 200)) "$held"
at_least "held in all: $held us, at most" "$held" $((($(most keep_long) + $(most keep_short)) * 201 / 200))
for keeper in keep_long keep_short; do  # the stack of the first wait may be in code that is new to the kernel
  held=$(time_of ";$keeper(\\(|;).*;\\[mutex g_kept\\] " "$dir/folded")
  at_least "held by $keeper: us" $(($(least $keeper) * 8 / 10)) "$held"
  at_least "held by $keeper: $held us, at most" "$held" $(($(most $keeper) * 201 / 200))
done
expect 'held after a timeout' 0 "$(time_of 'keep_after_timeout' "$dir/folded")"
expect 'held without a wait' 0 "$(time_of 'keep_free' "$dir/folded")"
expect 'barriers held' 0 "$(time_of '\[barrier' "$dir/folded")"
[ "$failed" = 0 ] || { cat "$dir/said" "$dir/err" "$dir/symbolized"; cut -c1-400 "$dir/folded"; }

# The program dies while it waits, or the recording ends before the wait.
offcpu -q --locks -o "$dir/k.pe" -- "$PE_LOCKS" semaphore blocked >"$dir/said" 2>"$dir/err" & recorder=$!
await_text blocked "$dir/said"
sleep 0.15
pkill -KILL -P $recorder
wait $recorder
expect 'status when the target is killed' 137 $?
fold "$dir/k.pe" >"$dir/folded"
at_least 'a wait that a signal ends' 100000 "$(time_of '^\[signal\];--;\[semaphore g_semaphore\];.*wait_for_semaphore' "$dir/folded")"
rm "$dir/said"
offcpu -q --locks -o "$dir/u.pe" -- "$PE_LOCKS" blocked >"$dir/said" 2>"$dir/err" & recorder=$!
await_text blocked "$dir/said"
sleep 0.15
kill -TERM $recorder
wait $recorder
fold "$dir/u.pe" >"$dir/folded"
at_least 'a wait that does not end' 100000 "$(time_of '^locks;.*wait_for_semaphore.*;\[semaphore g_semaphore\];\[still waiting\]' "$dir/folded")"
[ "$failed" = 0 ] || { cat "$dir/err"; cut -c1-400 "$dir/folded"; }

# Go: its threads wait for notes.
if [ -x "${PE_LOCKS_GO:-}" ]; then
  offcpu -q --locks -o "$dir/g.pe" -- "$PE_LOCKS_GO" >"$dir/said" 2>"$dir/err"
  expect 'status of the Go program' 0 $?
  fold "$dir/g.pe" >"$dir/folded"
  at_least 'Go: its thread waits for a note' $(($(least go) * 9 / 10)) \
    "$(time_of 'runtime\.notewakeup.*;--;\[note runtime\.m0[^]]*\];.*runtime\.notesleep.*;runtime\.stoplockedm' "$dir/folded")"
  [ "$failed" = 0 ] || { cat "$dir/said" "$dir/err"; cut -c1-400 "$dir/folded"; }
fi
finish
