#!/bin/bash
# The real perf reads our stream, with the same samples.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip 'perf is not installed'
pe-record -F 997 -o "$dir/s.pe" -- "$PE_WORKLOAD" threads 0.5 2>/dev/null

# The stacks are the same.  The test compares only the frames in the program, because the libraries' symbols
# depend on debug files that only perf searches for.  perf 6.12 prints parameters, which our symbols do not
# have.
perf script -i - -F comm,tid,ip,sym,dso --no-inline <"$dir/s.pe" 2>"$dir/err" | awk -v own="($PE_WORKLOAD)" '
  function without_parameters(name,    depth, i) {
    if (name !~ /\)$/ || name ~ /operator\(\)$/) return name
    for (i = length(name); i > 0; i--) {
      depth += (substr(name, i, 1) == ")") - (substr(name, i, 1) == "(")
      if (depth == 0) return substr(name, 1, i - 1)
    }
  }
  function flush() { if (root != "") count[root stack]++; root = stack = "" }
  /^[^ \t]/ { flush(); root = $1 ~ /^:-?[0-9]+$/ ? "workload" : $1; next }  # a thread that has ended has no name
  NF == 0 { flush(); next }
  $NF == own { sub(/^[ \t]*[0-9a-f]+ /, ""); sub(/ \([^(]*$/, ""); stack = ";" without_parameters($0) stack }
  END { flush(); for (s in count) print s, count[s] }' | LC_ALL=C sort >"$dir/perf.folded"
pe-symbolize -q --no-inline --no-tail-calls "$dir/s.pe" | stackfold --annotate | awk '
  /^# / { next }
  { n = $NF; sub(/ [0-9]+$/, ""); k = split($0, f, ";"); s = f[1]
    for (i = 2; i <= k; i++) if (f[i] !~ /_\[[lk]\]$/ && f[i] != "[unknown]") s = s ";" f[i]
    count[s] += n }
  END { for (s in count) print s, count[s] }' | LC_ALL=C sort >"$dir/our.folded"
cmp -s "$dir/perf.folded" "$dir/our.folded" || { fail 'perf script sees other stacks'; diff "$dir/perf.folded" "$dir/our.folded" | head -20; }
[ -s "$dir/perf.folded" ] || fail "perf script reads nothing: $(cat "$dir/err")"

ours=$(fold "$dir/s.pe" | awk '{ n += $NF } END { print n }')
expect 'samples in perf report' "$ours" "$(perf report -i - --stdio -n -g none <"$dir/s.pe" 2>/dev/null | awk '!/^#/ && NF { n += $2 } END { print n }')"
finish
