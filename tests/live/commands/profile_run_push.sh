#!/bin/bash
# watch sends to a server the same profiles that it keeps.  A server that hangs does not stop the recording;
# the next watch sends the profiles that this server did not accept.  A watch that could send none has status 1.
# shellcheck disable=SC2016 # conditions are expanded each time that they are looked at
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")
cd "$dir" || exit 1
pr() { "$PE_SCRIPTS/profile_run" "$@"; }
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
mode() { echo "$2" >"$1/mode.new" && mv "$1/mode.new" "$1/mode"; }  # FOLDER MODE
await() {  # CONDITION
  local i
  for ((i = 0; i < 300; i++)); do eval "$1" && return; sleep 0.1; done
  fail "never: $1"
}
begin_watch() {  # OUTPUT [OPTION]...
  "$PE_SCRIPTS/profile_run" watch --output "$1" --pid $target --rate 499 --interval 0.5 --push "$url" "${@:2}" 2>err &
  watch=$!
}
end_watch() {  # CONDITION [STATUS]
  await "$1"
  kill $watch
  wait $watch; status=$?
  expect "watch: status; $(cat err)" "${2:-0}" $status
}
senders() { pgrep -P $watch -f 'profile-push .*--follow$'; }  # not those that only check options or spool a profile
files() { find "$1" -name "$2" 2>/dev/null | wc -l; }  # FOLDER PATTERN
# Removes the marks of --annotate, which profiles do not have, and sorts.
plain() { stackfold "$@" 2>/dev/null | sed 's/_\[[kjil]\]//g' | stackfold; }

mkdir taken
"$here/../../support/push_server.py" taken &
server=$!
await '[ -e taken/port ]'
url=http://127.0.0.1:$(cat taken/port)
"$PE_WORKLOAD" lazy 100 &
target=$!

begin_watch w --push-label env=e2e
end_watch '[ "$(files taken "*.query")" -ge 2 ]'
count=$(files taken '*.query')
has 'closing line' "profile-push: $count profiles sent" err
expect 'what is sent and what is kept' "$(plain w/watch/*.folded)" "$(plain taken/*.pprof.gz)"
within 'share of what is sent' 50 "$(share ';work;fifty' <(plain taken/*.pprof.gz))" 12
for text in "name=workload%7Benv%3De2e%2Chostname%3D" '&sampleRate=499&'; do has query "$text" taken/0.query; done
python3 - <<'END' || fail "times: $(cat taken/*.query)"
import glob, sys, time, urllib.parse
ranges = []
for number in range(len(glob.glob("taken/*.query"))):
    query = dict(urllib.parse.parse_qsl(open(f"taken/{number}.query").read()))
    ranges.append((int(query["from"]), int(query["until"])))
good = all(a < b <= time.time() + 1 and b > time.time() - 170 for a, b in ranges) and ranges == sorted(ranges)
sys.exit(not good)
END
expect 'left in the spool' 0 "$(files w/watch/spool '*.gz')"

# The server hangs: watch still keeps the recorded profiles, and they wait in the spool.
mode taken hang
begin_watch v --spool-size 1M
end_watch '[ "$(files v/watch/spool "*.gz")" -ge 3 ]' 1
has 'nothing was sent' 'watch: no profile was sent' err
waiting=$(files v/watch/spool '*.gz')
has 'what waits' "profile-push: 0 profiles sent; $waiting profiles not sent yet, in v/watch/spool: the next run sends them" err
rm -f taken/*.gz taken/*.query
mode taken 200
pr watch --output v --pid $target --rate 499 --interval 0.5 --duration 0.5 --push "$url" 2>err || fail "watch: $(cat err)"
has 'what waited' "profile-push: v/watch/spool: $waiting profiles from before" err
expect 'all that was recorded' "$(plain v/watch/*.folded)" "$(plain taken/*.pprof.gz)"
expect 'left in the spool' 0 "$(files v/watch/spool '*.gz')"

# The sender is killed: the next one continues.
rm -f taken/*.gz taken/*.query
begin_watch u
await '[ -n "$(senders)" ]'
first=$(senders)
kill -9 "$first"
end_watch "[ -n \"\$(senders | grep -vx $first)\" ] && [ \"\$(files taken '*.query')\" -ge 1 ]"
expect 'all that was recorded' "$(plain u/watch/*.folded)" "$(plain taken/*.pprof.gz)"
# The script is killed: its sender ends by itself, and another watch can use the folder.
begin_watch u
await '[ -n "$(senders)" ]'
sender=$(senders)
kill -9 $watch
await "! kill -0 $sender 2>/dev/null"
wait $watch 2>/dev/null
pr watch --output u --pid $target --rate 499 --interval 0.5 --duration 0.5 --push "$url" 2>err || fail "after it was killed: $(cat err)"
expect 'what the killed one left' '' "$(find u/watch -name '.chunk-*')"

# Wrong options are reported before the recording starts.
pr watch --output t --pid $target --push "$url" --push-label 'a b=c' 2>err; expect 'a wrong label' 2 $?
pr watch --output t --pid $target --push http://example.com 2>err; expect 'http' 2 $?
has http 'profile-push: --url: http shows profiles' err
pr watch --output t --pid $target --push-name x 2>err; expect 'a name without a server' 2 $?
has 'a name without a server' 'options for sending profiles need --push' err
expect 'nothing recorded' '' "$(find t -name '*.folded' 2>/dev/null)"
kill $target $server
wait $target $server 2>/dev/null
finish
