#!/bin/sh
# In a bare Debian with our packages in /packages: installs them, uses what was installed as users do, and removes it.
# scripts/dev/check-deb runs it there, as root.
set -u
failed=0
fail() { echo "FAILED: $*"; failed=1; }
dir=$(mktemp -d)
chmod 755 "$dir"  # another user, too, runs what is in it
cd "$dir" || exit 1
install() { apt-get install -y -qq --no-install-recommends "$@" >log 2>&1 || { cat log; fail "installation: $*"; exit 1; }; }
# has FILE WORD...: fails for each that it does not hold.
has() {
  file=$1
  shift
  for word; do grep -qF -- "$word" "$file" || fail "$file has no '$word': $(head -c 1000 "$file")"; done
}
# run COMMAND...: what it prints is in out, what it says in err; it is to succeed.
run() { "$@" >out 2>err || fail "$*: exit $?: $(cat err)"; }

install /packages/*.deb
dpkg -V stackpipe libstackpipe-sigprof0 libstackpipe-sigprof-dev || fail 'not as it was packed'

# All that is called has a manual page, and completions for each shell.  Its libraries are found.
names=$(dpkg -L stackpipe | sed -n 's|^/usr/bin/||p')
[ "$(echo "$names" | wc -l)" -ge 13 ] || fail "tools: $names"
for name in $names; do
  version=$("$name" --version) || fail "$name --version: exit $?"
  echo "$version" | grep -qE "^$name [0-9.]+ \([0-9a-f]{12}\)\$" || fail "$version"
  "$name" --help >/dev/null || fail "$name --help: exit $?"
  [ -s "/usr/share/man/man1/$name.1.gz" ] || fail "$name: no manual page"
  grep -q "^#compdef $name\$" "/usr/share/zsh/vendor-completions/_$name" || fail "$name: no completions for zsh"
done
for file in doc/stackpipe/README.md.gz doc/stackpipe/docs/tutorial.md.gz doc/stackpipe/docs/orders.svg stackpipe/examples/orders.cpp; do
  [ -s "/usr/share/$file" ] || fail "no $file"
done
# The unit is there, and nothing has enabled it.
dpkg -L stackpipe | grep -qE '^(/usr)?/lib/systemd/system/stackpipe-watch@\.service$' || fail 'no unit'
enabled=$(find /etc/systemd/system -name 'stackpipe-watch@*' 2>/dev/null)
[ -z "$enabled" ] || fail "enabled: $enabled"
for link in /usr/libexec/stackpipe/compat/*.pl; do [ -x "$link" ] || fail "$link leads nowhere"; done

# With what the packages depend on, and no more.
run stackpipe help folded  # there is no man: the page is printed as text
has out 'frame;frame;frame count'
pe-record --check || fail "pe-record --check: exit $?"
# shellcheck disable=SC2016 # of that script
echo 'i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done' >busy
pe-record -F 499 -- sh busy | pe-symbolize | stackfold --annotate >busy.folded || fail "the pipeline: exit $?"
grep -q '^sh;' busy.folded || fail "stacks of sh: $(cat busy.folded)"
run flamesvg --colors kind -- busy.folded
mv out busy.svg
run flamegraph line.svg -- sh busy
run stackpipe record -o front.folded -- sh busy
run stackpipe top front.folded
run hotcold hotcold.svg -- sh -c 'sh busy; sleep 0.2'
has hotcold.svg 'schedule'
offcpu -- sleep 0.2 | pe-symbolize | stackfold >waits.folded || fail "offcpu: exit $?"
grep -q '^sleep;.* [0-9]\{6,\}$' waits.folded || fail "where sleep waits, in us: $(cat waits.folded)"
malloctrace -- sh -c : | pe-symbolize | stackfold --event alloc-count | grep -q '^sh' || fail 'malloctrace'
run malloctrace --report -- sh -c :
for engine in signal ptrace bpf; do
  if [ $engine = bpf ] && ! pe-record --check | grep -q '^eBPF.* yes '; then
    echo 'not checked: pe-record --engine bpf, which this machine does not have'
    continue
  fi
  pe-record --engine $engine -F 199 -- sh busy | pe-symbolize | stackfold | grep -q '^sh' || fail "pe-record --engine $engine"
done
# One who is not root; setpriv is of util-linux, which every Debian has.
mkdir -m 777 theirs
cat >theirs/line <<'END_OF_LINE'
cd "$(dirname "$0")" || exit 1
HOME=$PWD flamegraph theirs.svg -- sh ../busy && HOME=$PWD profile_run capture -- sh ../busy
END_OF_LINE
run setpriv --reuid 65534 --regid 65534 --clear-groups sh "$dir/theirs/line"

printf 'main;idle 70\nmain;work;memcpy 30\n' >before.folded
printf 'main;idle 70\nmain;work;memcpy 60\n' >after.folded
run stacktop --hints after.folded
has out memcpy string_view
run flamediff --text before.folded after.folded
has out memcpy
run flamediff -o diff.svg before.folded after.folded
run stackfold --to pprof -- after.folded
mv out after.pprof
run profile-push --spool spool --name checked after.pprof
[ -n "$(ls spool)" ] || fail 'profile-push: nothing in the spool'
run stackfold -- after.pprof
cmp -s out after.folded || fail "a profile of pprof's: $(cat out)"
compat=/usr/libexec/stackpipe/compat
run env PATH=$compat:/usr/bin:/bin flamegraph.pl busy.folded
mv out compat.svg
run env PATH=$compat:/usr/bin:/bin difffolded.pl before.folded after.folded
has out 'main;work;memcpy 30 60'
run merge_fleet --fan-in 2 before.folded after.folded after.folded
has out 'main;work;memcpy 150'

run profile_run capture -- sh busy
run profile_run capture -- sh busy
run profile_run capture --mode heap -- sh busy
run profile_run capture --mode offcpu -- sh -c 'sh busy; sleep 0.2'
run profile_run capture --mode hotcold -- sh -c 'sh busy; sleep 0.2'
run profile_run list
[ "$(grep -c '^20' out)" -eq 5 ] || fail "profile_run list: $(cat out)"
set -- profiles/*
run profile_run analyze --run "$1"
run profile_run diff --before "$1" --after "$2"
run profile_run ci --fail-over 100% --baseline "$1" -- sh busy
for picture in busy.svg line.svg hotcold.svg theirs/theirs.svg theirs/profiles/*/flame.svg diff.svg compat.svg profiles/*/flame.svg; do
  grep -q '</svg>' "$picture" || fail "$picture: no picture"
done

# What users have besides.
install bash-completion fish gcc libc6-dev man-db pkg-config zsh zstd

# Each page opens, by its name, also those of a library's functions, and is understood.
functions='sp_sigprof sp_sigprof_add_this_thread sp_sigprof_error sp_sigprof_start sp_sigprof_stop'
for page in $names $functions pe-stream folded stackpipe; do
  run env MANROFFOPT='-ww' man "$page"
  grep -q '^NAME' out || fail "man $page: $(head -c 300 out)"
  has out "$page"
  [ ! -s err ] || fail "man $page: $(head -n 3 err)"
done

# Shells find completions where they look by themselves, and know what to do with them.
cat >complete.bash <<'END_OF_BASH'
compopt() { :; }  # it is for completions that are asked for by a key
. /usr/share/bash-completion/bash_completion
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$* COMP_POINT=${#COMP_LINE}
_completion_loader "$1"
function=$(complete -p "$1" | sed 's/.* -F \([^ ]*\) .*/\1/')
"$function"
printf '%s\n' "${COMPREPLY[@]}" | sort -u
END_OF_BASH
for name in $names; do
  [ "$(bash complete.bash "$name" --vers)" = --version ] || fail "$name: completions in bash"
  # shellcheck disable=SC2016 # of zsh
  [ "$(zsh -f -c 'autoload -Uz compinit && compinit -D && print -r -- $_comps[$1]' zsh "$name")" = "_$name" ] || fail "$name: completions in zsh"
  fish -c "complete -C '$name --vers'" | grep -q '^--version' || fail "$name: completions in fish"
done
[ "$(bash complete.bash pe-record -F 99 -- mktem)" = mktemp ] || fail 'bash: a command'
[ "$(bash complete.bash pe-record -F 99 -- sort --rev)" = --reverse ] || fail "bash: an option of a command's"

# The library: the example is built as its page says, and prints stacks of its own.
cp /usr/share/stackpipe/examples/self_profile.c .
# shellcheck disable=SC2046 # words
run cc -Wall -Wextra -Werror self_profile.c $(pkg-config --cflags --libs stackpipe-sigprof) -o self_profile
run ./self_profile 0.3
has out 'main;work;fifty'
# A program with names.
pe-record -F 499 -- ./self_profile 0.3 2>err | pe-symbolize | stackfold | grep -q 'main;work;fifty' || fail "names: $(cat err)"
run profile_run capture -- ./self_profile 0.3
run profile_run trend fifty
has out fifty

zstd -q before.folded
run merge_fleet --fan-in 2 before.folded.zst after.folded after.folded
printf 'main;idle 210\nmain;work;memcpy 150\n' >merged.folded
cmp -s out merged.folded || fail "merge_fleet: $(cat out)"

dpkg --purge stackpipe libstackpipe-sigprof-dev libstackpipe-sigprof0 >log 2>&1 || { cat log; fail 'removal'; }
left=$(find / -xdev -ipath '*stackpipe*' ! -path '/proc/*' ! -path '/packages/*' ! -path '/var/lib/apt/*' ! -path '/var/cache/*' ! -path '/source/*')
[ -z "$left" ] || fail "left behind: $left"
rm -rf "$dir"
exit $failed
