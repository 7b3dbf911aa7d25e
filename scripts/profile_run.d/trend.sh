#!/bin/bash
# A function's share over time.
# shellcheck disable=SC2154 # names of other parts of the script

# Of awk: a function's name without its mark and what compilers add to those of clones.
# shellcheck disable=SC2016 # of awk
plain_name='
  function plain(name) {
    sub(/_\[[a-z]\]$/, "", name)
    while (sub(/ \[clone [^]]*\]$/, "", name) || sub(/\.(isra|constprop|part|lto_priv|cold|llvm)(\.[0-9]+)?$/, "", name));
    return name
  }'

# "SELF TOTAL FOUND": a function's shares in per cent, whatever its mark and clone, and 1 if the profile has it;
# "- - 0" of a profile without samples.  A stack counts once, however many of the clones are in it.
# The name goes through the environment: awk takes backslashes of -v away.
share_of() {  # FUNCTION FILE
  FUNCTION=$1 awk "$plain_name"'
    function is_meant(frame) {
      if (!(frame in known)) known[frame] = frame == wanted || plain(frame) == wanted
      return known[frame]
    }
    BEGIN { wanted = ENVIRON["FUNCTION"] }
    {
      count = $NF; stack = $0; sub(/[ \t]+[^ \t]+$/, "", stack)
      all += count
      n = split(stack, frame, ";")
      if (is_meant(frame[n])) self += count
      for (i = n; i > 0 && !is_meant(frame[i]); i--);
      if (i > 0) { total += count; found = 1 }
    }
    END {
      if (all > 0) printf "%.2f %.2f %d\n", 100 * self / all, 100 * total / all, found
      else print "- - 0"
    }' "$2"
}

# Functions whose names have the last part of this one in them, or begin as it does: up to five, the hottest first.
near_names() {  # FUNCTION FILE
  FUNCTION=$1 awk "$plain_name"'
    BEGIN { wanted = tolower(ENVIRON["FUNCTION"]); sub(/^.*::/, "", wanted); first = substr(wanted, 1, 4) }
    {
      count = $NF; stack = $0; sub(/[ \t]+[^ \t]+$/, "", stack)
      n = split(stack, frame, ";")
      for (i = 1; i <= n; i++) {
        if (!(frame[i] in name)) {
          name[frame[i]] = text = plain(frame[i])
          text = tolower(text); last = text; sub(/\(.*/, "", last); sub(/^.*::/, "", last)
          if (index(text, wanted) || (length(first) > 2 && index(last, first) == 1)) near[frame[i]] = 1
        }
        if (frame[i] in near) sum[name[frame[i]]] += count
      }
    }
    END { for (text in sum) printf "%.0f\t%s\n", sum[text], text }' "$2" | sort -k1,1nr -k2 | head -n 5 | cut -f2- |
    awk '{ printf "%s%s", (NR > 1 ? ", " : ""), (length($0) > 200 ? substr($0, 1, 200) "..." : $0) }'
}

# Numbers, one a line, as blocks between 0 and the largest of them: noise is not to look like change.
sparkline() {
  awk '{ value[NR] = $1 + 0; if ($1 + 0 > high) high = $1 + 0 }
    END {
      split("▁ ▂ ▃ ▄ ▅ ▆ ▇ █", block, " ")
      for (i = 1; i <= NR; i++)
        printf "%s", block[(high > 0) ? 1 + int(7 * value[i] / high + 0.5) : 1]
      printf "\n"
    }'
}

# Lines "RUN SAMPLES SELF TOTAL" as a picture.  Names of runs that were renamed by hand may hold anything:
# what is no letter, digit, "-", "_", ":" or "." is not in it.
trend_svg() {  # TITLE
  TITLE=$(xml_text "$1") awk '
    function px(i) { return n > 1 ? left + (i - 1) * (width - left - right) / (n - 1) : (left + width - right) / 2 }
    function py(share) { return bottom - share * (bottom - top) / scale }
    function line(column, i, points) {
      for (i = 1; i <= n; i++) points = points sprintf("%.1f,%.1f ", px(i), py(column == "self" ? self[i] : total[i]))
      return points
    }
    { n++; name[n] = $1; gsub(/[^A-Za-z0-9._:-]/, "?", name[n]); samples[n] = $2; self[n] = $3; total[n] = $4
      if ($4 > high) high = $4 }
    END {
      width = 900; left = 60; right = 90; top = 60; bottom = 300
      step = high > 50 ? 20 : high > 20 ? 10 : high > 10 ? 5 : high > 4 ? 2 : high > 2 ? 1 : 0.5
      scale = step * (int(high / step) + 1); if (scale > 100) scale = 100
      printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d 360\" width=\"%d\" height=\"360\" font-family=\"sans-serif\" font-size=\"12\">\n", width, width
      print "<style>svg{background:#fff;color:#222}.g{stroke:#ddd}.t{stroke:#c2410c;fill:none;stroke-width:2}.s{stroke:#1d4ed8;fill:none;stroke-width:2;stroke-dasharray:5 4}.p{fill:#c2410c}.q{fill:#1d4ed8}text{fill:#222}@media(prefers-color-scheme:dark){svg{background:#1b1b1b}.g{stroke:#444}.t{stroke:#fb923c}.s{stroke:#93c5fd}.p{fill:#fb923c}.q{fill:#93c5fd}text{fill:#ddd}}</style>"
      printf "<text x=\"%d\" y=\"28\" font-size=\"16\">%s</text>\n", left, ENVIRON["TITLE"]
      for (share = 0; share <= scale; share += step) {
        printf "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", left, width - right, py(share), py(share)
        printf "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g %%</text>\n", left - 8, py(share) + 4, share
      }
      printf "<polyline class=\"t\" points=\"%s\"/>\n<polyline class=\"s\" points=\"%s\"/>\n", line("total"), line("self")
      for (i = 1; i <= n; i++) {
        printf "<circle class=\"q\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>%s: self %.2f %%, %d samples</title></circle>\n", px(i), py(self[i]), name[i], self[i], samples[i]
        printf "<circle class=\"p\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>%s: total %.2f %%, %d samples</title></circle>\n", px(i), py(total[i]), name[i], total[i], samples[i]
      }
      # Labels that would lie on each other are moved apart.
      t = py(total[n]); s = py(self[n])
      if (s - t < 14) { t = (s + t) / 2 - 7; s = t + 14 }
      printf "<text x=\"%.1f\" y=\"%.1f\">total</text><text x=\"%.1f\" y=\"%.1f\">self</text>\n", px(n) + 10, t + 4, px(n) + 10, s + 4
      printf "<text x=\"%d\" y=\"%d\">%s</text>\n", left, bottom + 24, name[1]
      if (n > 1) printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", width - right, bottom + 24, name[n]
      print "</svg>"
    }'
}

# Of `runs`, those stay that count the same in the same program as the run $1; how many do not is in `others`.
keep_alike() {  # RUN
  local wanted unit folder same=()
  wanted=$(program_of "$(meta "$1" workload)") unit=$(unit_of_run "$1")
  for folder in "${runs[@]}"; do
    if [ "$(program_of "$(meta "$folder" workload)")" = "$wanted" ] && [ "$(unit_of_run "$folder")" = "$unit" ]; then
      same+=("$folder")
    fi
  done
  others=$((${#runs[@]} - ${#same[@]}))
  runs=("${same[@]}")
}

run_trend() {
  local function=${operands[0]} folder rows='' told file shares near others
  find_run "$run" trend
  read_runs
  keep_alike "$found"
  [ ${#runs[@]} -gt 0 ] || die "trend: no such run in '$output': '$run'"
  for folder in "${runs[@]}"; do
    shares=$(share_of "$function" "$folder/stacks.folded")
    rows+="$(run_name "$folder" | tr -d '[:space:]' | shown_lines) $(figure "$folder" samples) $shares"$'\n'
  done
  rows=${rows%$'\n'}
  if ! awk '$5 > 0 { found = 1 } END { exit !found }' <<<"$rows"; then
    near=$(near_names "$function" "${runs[-1]}/stacks.folded")
    die "trend: no run of $(shown "$(meta "$found" workload)") has a function '$function'${near:+; the last has $near}"
  fi
  told=$(awk '$4 != "-"' <<<"$rows")  # runs without samples have no share
  print_trend "$function" "$rows" "$told" | print_all stdout || exit
  file=${svg:-$output/trend.svg}
  write_file "$file" trend_svg "Share of $function" <<<"$told" || die "$file: not drawn"
  printf '\n%s\n' "$file" | print_all stdout || exit
  [ "$others" -eq 0 ] || say "$others run$([ "$others" -eq 1 ] || echo s) of other programs, or that count something else, left out; --run chooses"
  exit 0
}

print_trend() {  # FUNCTION ROWS ROWS-WITH-SAMPLES
  printf 'share of %s in %d run%s\n\n' "$(shown "$1")" "${#runs[@]}" "$([ ${#runs[@]} -eq 1 ] || echo s)"
  awk '{ if (NR == 1 || $4 < low) low = $4; if (NR == 1 || $4 > high) high = $4 }
    END { printf "total %.2f to %.2f %%  ", low, high }' <<<"$3"
  cut -d' ' -f4 <<<"$3" | sparkline
  printf '\n%-22s %9s %8s %8s\n' run samples 'self %' 'total %'
  awk '{ printf "%-22s %9s %8s %8s\n", $1, $2, $3, $4 }' <<<"$2"
}
