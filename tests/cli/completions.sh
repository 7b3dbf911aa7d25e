#!/bin/bash
# What shells complete: bash and fish are asked, of zsh the syntax is checked; each option of --help is known to all
# of them.  Usage: completions.sh FOLDER TOOLS_FOLDER SCRIPTS_FOLDER NAME...
set -u
export LC_ALL=C
folder=$1 tools=$2 scripts=$3 failed=0
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; failed=1; }
for shell in zsh fish; do
  command -v $shell >/dev/null || { echo "$shell is missing: scripts/setup"; exit 1; }
done

compared=0
for name; do
  tool=$scripts/$name
  [ -e "$tool" ] || tool=$tools/$name
  bash -n "$folder/$name" || fail "$name: bash"
  zsh -n "$folder/_$name" || fail "$name: zsh"
  fish --no-execute "$folder/$name.fish" || fail "$name: fish"
  [ "$(head -n 1 "$folder/_$name")" = "#compdef $name" ] || fail "$name: zsh's first line"
  while read -r letter option; do
    compared=$((compared + 1))
    grep -qE -- "[ ']--${option}[ ']" "$folder/$name" || fail "$name: bash lacks --$option"
    grep -qE -- "--${option}[=[}]" "$folder/_$name" || fail "$name: zsh lacks --$option"
    grep -qE -- " -l $option " "$folder/$name.fish" || fail "$name: fish lacks --$option"
    [ "$letter" != - ] || continue
    grep -qE -- "[ ']-${letter}[ ']" "$folder/$name" || fail "$name: bash lacks -$letter"
    grep -qE -- "\{-$letter\+?,--$option" "$folder/_$name" || fail "$name: zsh lacks -$letter"
    grep -qE -- " -s $letter -l $option " "$folder/$name.fish" || fail "$name: fish lacks -$letter"
  done < <("$tool" --help | sed -nE 's/^  (-(.), |    )--([a-z-]+).*/\2 \3/p' | sed 's/^ /- /')
done
echo "$compared options"
[ $compared -gt 150 ] || fail 'options are missing'

cd "$dir" || exit 1
mkdir 'a folder' runs
# shellcheck disable=SC2016 # never to be expanded
hostile='two $(touch harm).folded'
touch one.folded "$hostile" 'a folder/three.folded'

# What bash, as it comes, offers for the last word, sorted and each once, as it shows them; "|" between them.
in_bash() {  # WORD...
  bash --norc -c '
    . "$1/$2"
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    complete -p "$1" >/dev/null || exit 1
    function=$(complete -p "$1" | sed "s/.* -F \([^ ]*\) .*/\1/")
    "$function"
    [ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$folder" "$@" | sort -u | paste -sd '|'
}
# The same of fish: candidates, without their descriptions.
in_fish() {  # TOOL COMMAND_LINE
  HOME=$dir XDG_CONFIG_HOME=$dir fish --no-config -c "source '$folder/$1.fish'; complete -C '$2'" | cut -f 1 | sort | paste -sd '|'
}
expect() {  # WANTED GOT WHAT
  [ "$1" = "$2" ] || fail "$3: '$2', not '$1'"
}

expect '--engine|--event' "$(in_bash pe-record --e)" 'an option'
expect 'auto|bpf|perf|ptrace|signal' "$(in_bash pe-record --engine '')" 'a choice'
expect 'perf|ptrace' "$(in_bash pe-record -F 99 --engine = p)" 'a choice behind ='
expect 'auto|bpf|perf|ptrace|signal' "$(in_bash pe-record --engine =)" 'all choices behind ='
expect '--engine=perf|--engine=ptrace' "$(in_bash pe-record --engine=p)" 'a choice where = divides no words'
expect "$$" "$(in_bash pe-record -p $$)" 'a process'
expect "1,$$" "$(in_bash offcpu --pid = 1,$$)" 'one of several processes'
expect "$$" "$(in_bash pe-record --tid $$)" 'a thread'
expect '' "$(in_bash pe-record -F '')" 'a number'
expect 'one.folded' "$(in_bash stackfold one)" 'a file'
expect "$hostile" "$(in_bash stackfold -- tw)" 'a file with a hostile name'
expect 'a folder' "$(in_bash profile_run diff --output 'a f')" 'a folder'
expect 'runs' "$(in_bash profile_run diff --before ru)" 'a run'
expect 'latest' "$(in_bash profile_run diff --before la)" 'the latest run'
expect 'a folder|runs' "$(in_bash hotcold out.svg --keep '')" 'folders only'
expect 'quick' "$(in_bash profile_run capture --mode q)" 'a mode'
expect 'analyze' "$(in_bash profile_run an)" 'a command of profile_run'
expect '' "$(in_bash profile_run capture an)" 'one command only'
expect 'one.folded' "$(in_bash flamesvg --nameattr on)" 'a file of an option'
expect '--inverted' "$(in_bash flamesvg one.folded --inv)" 'an option behind a file'
expect 'mktemp' "$(in_bash pe-record -F 99 mktem)" 'a command'
expect 'mktemp' "$(in_bash malloctrace -q -- mktem)" 'a command behind --'
expect 'one.folded' "$(in_bash pe-record -F 99 -- cat on)" 'an argument of a command'
expect '' "$(in_bash pe-record cat --eng)" 'no option of ours behind a command'
expect 'mktemp' "$(in_bash flamegraph out.svg -- mktem)" 'a command of a script'
[ ! -e harm ] || fail 'a name was run'

expect '--engine|--event' "$(in_fish pe-record 'pe-record --e')" 'fish: an option'
expect 'perf|ptrace' "$(in_fish pe-record 'pe-record --engine p')" 'fish: a choice'
expect '--engine=perf|--engine=ptrace' "$(in_fish pe-record 'pe-record --engine=p')" 'fish: a choice behind ='
expect 'one.folded' "$(in_fish stackfold 'stackfold on')" 'fish: a file'
expect 'one.folded' "$(in_fish flamesvg 'flamesvg --nameattr on')" 'fish: a file of an option'
expect 'analyze' "$(in_fish profile_run 'profile_run an')" 'fish: a command of profile_run'
expect '' "$(in_fish pe-record 'pe-record -F ')" 'fish: a number'
expect 'mktemp' "$(in_fish pe-record 'pe-record -F 99 mktem')" 'fish: a command'
expect 'mktemp' "$(in_fish malloctrace 'malloctrace -q -- mktem')" 'fish: a command behind --'
expect 'one.folded' "$(in_fish pe-record 'pe-record -F 99 cat on')" 'fish: an argument of a command'
in_fish pe-record "pe-record -p $$" | grep -q "\b$$\b" || fail 'fish: a process'
exit $failed
