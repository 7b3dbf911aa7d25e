#!/bin/sh
# Compares stackfold --compat with results of stackcollapse-perf.pl: for our own cases, and for the perl
# scripts' data if it exists.
# Usage: stackfold-golden.sh STACKFOLD DATA_FOLDER PERL_DATA_FOLDER
set -u
stackfold=$1 own=$2 perl=$3 failed=0 compared=0
compare() {  # INPUT WANTED OPTION...
  input=$1 wanted=$2
  shift 2
  compared=$((compared + 1))
  "$stackfold" --compat "$@" "$input" 2>/dev/null | cmp -s - "$wanted" || { echo "differs: $* $input"; failed=1; }
}
for kind in addrs all jit kernel pid srcline tid; do
  for folder in "$own" "$perl"; do
    for input in "$folder"/*.txt; do
      wanted=$folder/results/$(basename "$input" .txt)-collapsed-$kind.txt
      [ ! -e "$wanted" ] || compare "$input" "$wanted" --$kind
    done
  done
done
echo "$compared compared"
[ $compared -ge 6 ] || { echo 'no data found'; failed=1; }
exit $failed
