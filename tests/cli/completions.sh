#!/bin/bash
# Tests the completions by asking each shell: it offers the right words, and knows each option of --help.
# Usage: completions.sh FOLDER TOOLS_FOLDER SCRIPTS_FOLDER NAME...
set -u
export LC_ALL=C
support=$(realpath "$(dirname "$0")/../support")
folder=$1 tools=$2 scripts=$3 failed=0
shift 3
dir=$(mktemp -d) home=$(mktemp -d)
trap 'rm -rf "$dir" "$home"' EXIT
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

# Prints the words that bash, in its default state, offers for the last word, as it shows them: sorted,
# unique, "|" between them.
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
# Does the same with fish: prints candidates that start with the line's last word, without their descriptions.
# fish 4 also offers words that contain its letters.
in_fish() {  # TOOL COMMAND_LINE [LAST_WORD]
  local last=${3:-${2##* }}
  HOME=$home XDG_CONFIG_HOME=$home fish --no-config -c "source '$folder/$1.fish'; complete -C '$2'" | cut -f 1 |
    awk -v last="$last" 'index($0, last) == 1' | sort | paste -sd '|'
}
# Does the same with zsh: prints its offers, and the line after Tab.
coproc ZSH { exec zsh -f "$support/zsh_offers" "$folder"; }
in_zsh() {  # COMMAND_LINE
  printf '%s\n' "$1" >&"${ZSH[1]}"
  { IFS= read -r offers && IFS= read -r line; } <&"${ZSH[0]}" || fail "zsh: $1"
}
expect_in_zsh() {  # WANTED COMMAND_LINE WHAT
  in_zsh "$2"
  expect "$1" "$offers" "zsh: $3"
}
expect_tab() {  # WANTED_LINE COMMAND_LINE WHAT
  in_zsh "$2"
  expect "$1" "$line" "zsh: $3"
}
expect() {  # WANTED GOT WHAT
  [ "$1" = "$2" ] || fail "$3: '$2', not '$1'"
}

expect '--engine|--event' "$(in_bash pe-record --e)" 'an option'
expect 'auto|best|bpf|perf|ptrace|signal' "$(in_bash pe-record --engine '')" 'a choice'
expect 'perf|ptrace' "$(in_bash pe-record -F 99 --engine = p)" 'a choice behind ='
expect 'auto|best|bpf|perf|ptrace|signal' "$(in_bash pe-record --engine =)" 'all choices behind ='
expect '--engine=perf|--engine=ptrace' "$(in_bash pe-record --engine=p)" 'a choice where = divides no words'
expect "$$" "$(in_bash pe-record -p $$)" 'a process'
expect "1,$$" "$(in_bash offcpu --pid = 1,$$)" 'one of several processes'
expect "$$" "$(in_bash pe-record --tid $$)" 'a thread'
expect '' "$(in_bash profile_run capture -p "1,$$")" 'one process only'
expect 'record|runs' "$(in_bash stackpipe r)" 'a command of stackpipe'
expect 'capture|ci' "$(in_bash stackpipe runs c)" 'a command of stackpipe runs'
expect 'waits|watch|watch' "$(in_bash stackpipe help wa)$(in_bash stackpipe runs wa | sed 's/^/|/')" 'a page, and a command'
expect 'one.folded' "$(in_bash stackpipe top on)" 'a file of a command of stackpipe'
expect 'mktemp' "$(in_bash stackpipe record -- mktem)" 'a program for stackpipe'
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
expect '--icicle' "$(in_bash flamesvg one.folded --ici)" 'an option behind a file'
expect 'mktemp' "$(in_bash pe-record -F 99 mktem)" 'a command'
expect 'mktemp' "$(in_bash malloctrace -q -- mktem)" 'a command behind --'
expect 'one.folded' "$(in_bash pe-record -F 99 -- cat on)" 'an argument of a command'
expect '' "$(in_bash pe-record cat --eng)" 'no option of ours behind a command'
expect 'mktemp' "$(in_bash flamegraph out.svg -- mktem)" 'a command of a script'
expect '--engine|--event' "$(in_fish pe-record 'pe-record --e')" 'fish: an option'
expect 'perf|ptrace' "$(in_fish pe-record 'pe-record --engine p')" 'fish: a choice'
expect '--engine=perf|--engine=ptrace' "$(in_fish pe-record 'pe-record --engine=p')" 'fish: a choice behind ='
expect 'one.folded' "$(in_fish stackfold 'stackfold on')" 'fish: a file'
expect 'one.folded' "$(in_fish flamesvg 'flamesvg --nameattr on')" 'fish: a file of an option'
expect 'analyze' "$(in_fish profile_run 'profile_run an')" 'fish: a command of profile_run'
expect 'record|runs' "$(in_fish stackpipe 'stackpipe r')" 'fish: a command of stackpipe'
expect 'capture|ci' "$(in_fish stackpipe 'stackpipe runs c')" 'fish: a command of stackpipe runs'
expect 'one.folded' "$(in_fish stackpipe 'stackpipe top on')" 'fish: a file of a command of stackpipe'
expect 'mktemp' "$(in_fish stackpipe 'stackpipe record -- mktem')" 'fish: a program for stackpipe'
expect '' "$(in_fish pe-record 'pe-record -F ')" 'fish: a number'
expect 'mktemp' "$(in_fish pe-record 'pe-record -F 99 mktem')" 'fish: a command'
expect 'mktemp' "$(in_fish malloctrace 'malloctrace -q -- mktem')" 'fish: a command behind --'
expect 'one.folded' "$(in_fish pe-record 'pe-record -F 99 cat on')" 'fish: an argument of a command'
expect 'mktemp' "$(in_fish flamegraph 'flamegraph out.svg -- mktem')" 'fish: a command of a script'
expect 'one.folded' "$(in_fish profile_run 'profile_run capture -- cat on')" 'fish: an argument of a command of a script'
expect '' "$(in_fish pe-record 'pe-record cat --eng')" 'fish: no option of ours behind a command'
expect '--engine' "$(in_fish pe-record 'pe-record -F 99 --eng')" 'fish: an option behind a value'
expect 'a folder/three.folded' "$(in_fish pe-record 'pe-record cat a\ folder/th' 'a folder/th')" 'fish: a name with a blank'
expect 'latest' "$(in_fish profile_run 'profile_run diff --before la')" 'fish: the latest run'
expect 'runs/' "$(in_fish profile_run 'profile_run diff --before ru')" 'fish: a run'
# shellcheck disable=SC2016
expect 'one.folded' "$(in_fish pe-record 'pe-record cat $(touch harm) on')" 'fish: a hostile line'
# For process IDs, fish offers all that start with the word.
offered() { case "|$1|" in *"|$2|"*) ;; *) fail "$3: '$1', without '$2'" ;; esac }
offered "$(in_fish pe-record "pe-record -p $$")" $$ 'fish: a process'
offered "$(in_fish offcpu "offcpu -p 1,$$")" "1,$$" 'fish: one of several processes'
offered "$(in_fish pe-record "pe-record --tid $$")" $$ 'fish: a thread'

expect_in_zsh '--engine|--event' 'pe-record --e' 'an option'
expect_tab 'pe-record --engine=' 'pe-record --en' 'Tab behind an option'
expect_in_zsh 'auto|best|bpf|perf|ptrace|signal' 'pe-record --engine ' 'choices'
expect_in_zsh 'perf|ptrace' 'pe-record -F 99 --engine=p' 'a choice behind ='
expect_tab 'pe-record --engine=signal ' 'pe-record --engine=s' 'Tab behind a choice'
expect_in_zsh "$$" "pe-record -p $$" 'a process'
expect_in_zsh "$$" "offcpu --pid=1,$$" 'one of several processes'
expect_in_zsh '' "profile_run capture -p 1,$$" 'one process only'
expect_in_zsh 'record|runs' 'stackpipe r' 'a command of stackpipe'
expect_in_zsh 'capture|ci' 'stackpipe runs c' 'a command of stackpipe runs'
expect_in_zsh 'one.folded' 'stackpipe top on' 'a file of a command of stackpipe'
expect_in_zsh 'mktemp' 'stackpipe record -- mktem' 'a program for stackpipe'
expect_in_zsh "$$" "pe-record --tid $$" 'a thread'
expect_in_zsh '' 'pe-record -F ' 'a number'
expect_in_zsh 'one.folded' 'stackfold one' 'a file'
# shellcheck disable=SC2016
expect_tab 'stackfold -- two\ \$\(touch\ harm\).folded ' 'stackfold -- tw' 'a file with a hostile name'
expect_in_zsh 'a\ folder' 'profile_run diff --output a' 'a folder'
expect_in_zsh 'runs' 'profile_run diff --before ru' 'a run'
expect_in_zsh 'a\ folder|latest|previous|runs' 'profile_run diff --after=' 'runs behind ='
expect_in_zsh 'a\ folder|runs' 'hotcold out.svg --keep ' 'folders only'
expect_in_zsh 'quick' 'profile_run capture --mode q' 'a mode'
expect_in_zsh 'analyze' 'profile_run an' 'a command of profile_run'
expect_in_zsh '' 'profile_run capture an' 'one command only'
expect_in_zsh 'one.folded' 'flamesvg --nameattr on' 'a file of an option'
expect_in_zsh '--icicle' 'flamesvg one.folded --ici' 'an option behind a file'
expect_in_zsh 'mktemp' 'pe-record -F 99 mktem' 'a command'
expect_in_zsh 'mktemp' 'malloctrace -q -- mktem' 'a command behind --'
expect_in_zsh 'one.folded' 'pe-record -F 99 -- cat on' 'an argument of a command'
expect_in_zsh '' 'pe-record cat --eng' 'no option of ours behind a command'
expect_in_zsh 'mktemp' 'flamegraph out.svg -- mktem' 'a command of a script'
expect_in_zsh '' 'flamegraph out.svg mktem' 'no command without --'
expect_in_zsh 'one.folded' 'profile_run capture -- cat on' 'an argument of a command of a script'
[ ! -e harm ] || fail 'a name was run'
exit $failed
