#!/bin/bash
# The kernel walks stacks with interrupts off.  Programs that make walks as long as possible do not block a CPU:
# each of these walks ends at a limit, and a closing line tells of it and names the process.
. "$(dirname "$0")/../lib.sh"
can_record --engine bpf 2>"$dir/err" || skip "$(cat "$dir/err")"
mkdir "$dir/python" "$dir/php" "$dir/ruby"
for language in python php ruby; do
  cc -O2 -w -pthread "-D${language^^}" -o "$dir/$language/$language" "$(dirname "$0")/../../data/src/slow_walk.c" || fail "$language: not built"
done

# attack LANGUAGE KIND HZ: records the program for 0.3 s of its CPU time, and counts the samples.  Each is walked.
attack() {
  pe-record -v --engine bpf --walk-budget 0 -F "$3" -o "$dir/x.pe" -- "$dir/$1/$1" "$2" 0.3 2>"$dir/err" || fail "$1 $2: $(cat "$dir/err")"
  samples=$(sed -nE 's/^pe-record: ([0-9]+) samples? in .*/\1/p' "$dir/err")
}
# told REASON: prints how many walks ended for that reason, in a process that the line names
told() { sed -nE "s/^[a-z-]+: stacks cut short to avoid blocking a CPU: (.*, )?([0-9]+) $1.* \(most in process [0-9]+, $language\):.*/\2/p" "$dir/err"; }

# Each read of the memory fails: the walks end after a few of these, once the kernel knows the interpreter.
for attack in 'python threads' 'python frames' 'php frames' 'ruby threads' 'ruby frames'; do
  read -r language kind <<<"$attack"
  attack "$language" "$kind" 499
  ended=$(told 'kept hitting unreadable memory')
  at_least "$attack: walks that ended, of $samples" 10 "${ended:-0}"
done
# A stack has a few unreadable frames, and no more are read.
frames=$(sed -nE 's/.* ([0-9]+) frames of Ruby, .*/\1/p' "$dir/err")
at_least 'unreadable frames, no more than' "${frames:-1000000}" $((40 * samples))

# The stack has a hole after each frame, which only frame pointers find.
language=python
attack python windows 499
at_least 'windows: walks that ended, and stacks that are too deep' 10 \
  $(($(told 'kept hitting unreadable memory' | grep . || echo 0) + $(sed -nE 's/.* ([0-9]+) ended in .anon.: too deep.*/\1/p' "$dir/err" | grep . || echo 0)))

# So do the walks of a thread that leaves its CPU, with the run queue locked.  All waits are there.
for language in python php ruby; do
  offcpu --engine bpf -o "$dir/w.pe" -- "$dir/$language/$language" frames 0 200 2>"$dir/err" || fail "waits: $language: $(cat "$dir/err")"
  ended=$(told 'kept hitting unreadable memory')
  at_least "waits: $language: walks that ended" 10 "${ended:-0}"
  at_least "waits: $language" 200 "$(sed -nE 's/^offcpu: ([0-9]+) waits in .*, 0 lost.*/\1/p' "$dir/err")"
done

# Everything is readable, each frame in other pages, and there is no end.  Stacks end by their number of frames, by
# time, or because such walks have used up a part of the CPU's time; each stack that was cut is counted.
for language in python php ruby; do
  attack "$language" deep 4999
  cut=$(sed -nE 's/^pe-record: ([0-9]+) stacks? of scripts cut at the root: .*/\1/p' "$dir/err")
  at_least "$language deep: stacks that were cut, of $samples" 10 "${cut:-0}"
  budget=$(sed -nE "s/^pe-record: ([0-9]+) stacks? cut after 0.1 ms, .* \(most in process [0-9]+, $language\): lower --freq\$/\1/p" "$dir/err")
  late=$(told 'took too long')
  longest=$(sed -nE 's/.*the longest stack walk took ([0-9.]+) ms.*/\1/p' "$dir/err")
  # At this rate, walks of a millisecond take more than 25 % of a CPU.  A faster machine walks all frames.
  awk -v ms="${longest:-0}" 'BEGIN { exit !(ms < 1) }' ||
    at_least "$language deep: walks that ended by time (the longest took ${longest:-0} ms)" 1 $((${budget:-0} + ${late:-0}))
done
finish
