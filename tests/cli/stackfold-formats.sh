#!/bin/sh
# Each captured input of DATA/FORMAT folds to the file beside it: CASE.folded, or with options
# CASE--OPTION.folded (several: CASE--ONE--TWO.folded).  CASE.err has the expected messages; without this file
# there are none.
# The result is the same if stackfold detects the format or --from names it, and with Unix or DOS lines.
# Usage: stackfold-formats.sh STACKFOLD DATA_FOLDER MANUAL_PAGE
set -u
stackfold=$(realpath "$1") data=$2 page=$3 failed=0 compared=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT

check() {  # WANTED GOT WHAT
  compared=$((compared + 1))
  cmp -s "$1" "$2" || { echo "differs: $3"; diff "$1" "$2" | head -5; failed=1; }
}

for wanted in "$data"/*/*.folded; do
  folder=$(dirname "$wanted") name=$(basename "$wanted" .folded)
  format=$(basename "$folder") case=${name%%--*}
  options=$(printf '%s' "${name#"$case"}" | sed 's/--/ --/g')
  input=$(find "$folder" -name "$case.*" ! -name '*.folded' ! -name '*.err')
  # shellcheck disable=SC2086 # a list of options
  (cd "$folder" && "$stackfold" $options "$(basename "$input")") >"$dir/out" 2>"$dir/err"
  check "$wanted" "$dir/out" "$format/$name"
  said=$folder/$name.err
  [ -e "$said" ] || said=/dev/null
  check "$said" "$dir/err" "$format/$name, messages"
  # shellcheck disable=SC2086
  "$stackfold" --from "$format" $options "$input" >"$dir/named" 2>/dev/null
  check "$wanted" "$dir/named" "$format/$name with --from"
  case $input in *.txt) ;; *) continue ;; esac
  sed 's/$/\r/' "$input" >"$dir/dos"
  # shellcheck disable=SC2086
  "$stackfold" $options "$dir/dos" >"$dir/out" 2>/dev/null
  check "$wanted" "$dir/out" "$format/$name with DOS lines"
done
# The manual page and this folder have all formats of the table of formats.
for format in $("$stackfold" --from '?' 2>&1 | sed 's/.*not one of \(.*\): .*/\1/; s/,//g'); do
  grep -q "^\.It Cm $format\$" "$page" || { echo "$format is not in the manual page"; failed=1; }
  case $format in stream | folded | perf-script) continue ;; esac  # these have their own tests
  [ -d "$data/$format" ] || { echo "no captured input of $format"; failed=1; }
done
echo "$compared compared"
[ $compared -gt 0 ] || failed=1
exit $failed
