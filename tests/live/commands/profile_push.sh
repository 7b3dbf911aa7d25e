#!/bin/bash
# The server fails, hangs, disappears, refuses or says "wait", and comes back.  Every profile arrives once, or
# waits in the spool, or is counted as lost, even if a process is killed in between.
# shellcheck disable=SC2016 # conditions are expanded each time that they are looked at
. "$(dirname "$0")/../lib.sh"
here=$(dirname "$(readlink -f "$0")")
cd "$dir" || exit 1
PATH=$PE_SCRIPTS:$PATH
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
hasnt() { ! grep -qF -e "$2" "$3" || fail "$1: '$2' in $(cat "$3")"; }

serve() {  # FOLDER [PORT [CERTIFICATE KEY]]
  mkdir -p "$1"
  rm -f "$1/port"
  "$here/../../support/push_server.py" "$@" 2>"$1/said" 7>&- &
  server=$!
  await "[ -e $1/port ]" || { cat "$1/said"; fail "no server"; finish; }
  port=$(cat "$1/port")
  url=http://127.0.0.1:$port
}
await() {  # CONDITION; waits at least 30 s
  local i
  for ((i = 0; i < 300; i++)); do eval "$1" && return; sleep 0.1; done
  return 1
}
mode() { echo "$2" >"$1/mode.new" && mv "$1/mode.new" "$1/mode"; }  # FOLDER MODE
requests() { if [ -e "$1/requests" ]; then wc -l <"$1/requests"; else echo 0; fi; }  # FOLDER
profile() { printf 'main;p%s %s\n' "$1" "$1" | stackfold --to pprof; }  # NUMBER
# Makes profiles that each hold one number, so that the test knows which of them arrive.
put() {  # SPOOL NUMBER...
  local spool=$1 number
  shift
  for number in "$@"; do
    profile "$number" | profile-push --spool "$spool" --name test.app --label env=e2e --label 'text=a b&c=d+é%' --rate 99 \
      --from "$((1700000000 + 60 * number)).25" --until "$((1700000060 + 60 * number)).25" || fail "put $number: $?"
  done
}
push() { profile-push --spool "$1" --url "$url" "${@:2}"; }  # SPOOL [OPTION]...
# follow CONDITION SPOOL [OPTION]...: runs a sender whose input ends when the condition holds; sets `status`
# to its exit status
follow() {
  await "$1" | push "$2" --follow "${@:3}" 2>err
  local both=("${PIPESTATUS[@]}")
  [ "${both[0]}" -eq 0 ] || fail "never: $1: $(cat err)"
  status=${both[1]}
}
# Starts a sender whose input stays open until end(), and sets `sender`.
begin() {  # SPOOL [OPTION]...
  rm -f input
  mkfifo input
  profile-push --spool "$1" --url "$url" --follow "${@:2}" <input 2>err &
  sender=$!
  exec 7>input
}
end() {
  exec 7>&-
  wait "$sender"
}
arrived() {  # FOLDER: prints the numbers, in the order of their arrival
  local file
  for file in $(find "$1" -name '*.pprof.gz' | sort -V); do stackfold "$file" | sed 's/.*;p//; s/ .*//'; done | paste -sd' '
}
waiting() { find "$1" -name '*.pprof.gz' | wc -l; }  # SPOOL

# Normal operation: all profiles arrive unchanged, oldest first, with their times and labels.
serve a
put s1 3 1 2
expect 'files of the spool' '1700000060250-1700000120250-0.pprof.gz 1700000120250-1700000180250-0.pprof.gz 1700000180250-1700000240250-0.pprof.gz' \
  "$(cd s1 && echo *.gz)"
expect 'a spooled file is a profile' 'main;p2 2' "$(stackfold s1/1700000120250-*.gz)"
push s1 2>err || fail "push: $(cat err)"
expect 'closing line' 'profile-push: 3 profiles sent' "$(tail -n 1 err)"
expect arrived '1 2 3' "$(arrived a)"
profile 1 | cmp - a/0.pprof.gz || fail 'what arrives is another'
gzip -t a/0.pprof.gz || fail 'what arrives is not compressed'
python3 - a/0.query "$(uname -n)" <<'END' || fail "query: $(cat a/0.query)"
import re, sys, urllib.parse
query = dict(urllib.parse.parse_qsl(open(sys.argv[1]).read(), strict_parsing=True))
host = re.sub(r"[^A-Za-z0-9_./-]", "_", sys.argv[2])
wanted = {"name": "test.app{env=e2e,hostname=%s,text=a b&c=d+é%%}" % host, "from": "1700000060", "until": "1700000121",
          "sampleRate": "99", "format": "pprof", "spyName": "stackpipe"}
sys.exit(query != wanted)
END
expect 'path' /ingest "$(cut -f 3 a/requests | sort -u)"
expect 'no token' - "$(cut -f 5 a/requests | sort -u)"
push s1 2>err || fail 'push of nothing'
expect 'nothing to send' 'profile-push: 0 profiles sent' "$(cat err)"

# The server fails once; the next attempt succeeds.
mode a 'once 500'
put s2 4
follow '[ "$(waiting s2)" = 0 ]' s2
expect 'after a failure' 0 "$status"
has 'a failure' "$url/ingest: 500; unsent profiles stay in the spool" err
has 'a failure' "$url/ingest: accepts profiles again" err

# The server asks the sender to wait, and the sender does.
mode a 'once 429 Retry-After: 2'
put s2 5
follow '[ "$(waiting s2)" = 0 ]' s2
awk -F '\t' '$2 ~ /^429/ { asked = $1 } END { exit !(asked && $1 - asked >= 2) }' a/requests || fail "Retry-After: $(cut -f 1,2 a/requests)"

# The input ends while the sender waits as the server asked: there is no further attempt.
mode a '503 Retry-After: 3000'
put s2 6
before=$(requests a)
follow 'grep -q 503 err' s2
expect 'the end while waiting' 1 "$status"
expect 'requests while waiting' $((before + 1)) "$(requests a)"
has 'what waits' 'profile-push: 0 profiles sent; 1 profile not sent yet, in s2: the next run sends it' err
# Otherwise there is a last attempt.
mode a 503
follow 'grep -q 503 err && mode a 200' s2
expect 'the last attempt' 0 "$status"
has 'what was there before' 'profile-push: s2: 1 profile from before' err

# The server refuses one profile: the sender counts it, and the others arrive.
mode a 'once 400'
put s2 7 8
push s2 2>err; expect 'a refusal' 1 $?
has refused "$url/ingest: a profile is refused: 400: 'bad \\x1b[31m label\\x0abad" err
has refused 'profile-push: 1 profile sent, 1 refused by the server' err
at_least 'length of a message' "$(wc -L <err)" 700
expect 'after a refusal' 8 "$(arrived a | awk '{ print $NF }')"
# These errors are not the profile's fault, so the sender keeps it.
for status in 301 401 403 404; do
  mode a "$status"
  put s3 9
  push s3 2>err; expect "$status" 1 $?
  has "$status" '1 profile not sent yet' err
  hasnt "$status" refused err
  mode a 200
  push s3 2>err || fail "after $status: $(cat err)"
done

# The server hangs, closes the connection, or answers without end.
for how in hang close endless; do
  mode a $how
  put s4 10
  push s4 --timeout 1 2>err; expect "$how" 1 $?
  has "$how" '1 profile not sent yet' err
  mode a 200
  push s4 2>err || fail "after $how: $(cat err)"
done
mode a hang
put s4 11
before=$(requests a)
# The input ends while the server hangs.
follow "[ \"\$(requests a)\" -gt $before ]" s4 --patience 0.1 --timeout 3000
expect 'the end while it hangs' 1 "$status"
has 'the end while it hangs' 'no time left' err
# The sender is killed while the server hangs: the profile that it was sending stays in the spool.
begin s4 --timeout 3000
await "[ \"\$(requests a)\" -gt $((before + 1)) ]" || fail 'no request'
expect 'on its way' 1700000660250-1700000720250-0.pprof.gz "$(cd s4/sending && echo *)"
push s4 2>err2; expect 'a second sender' 1 $?
expect 'a second sender' 'profile-push: s4: another profile-push is sending from here' "$(tail -n 1 err2)"
kill -9 "$sender"
end 2>/dev/null
expect 'killed' 0 "$(find s4 -maxdepth 1 -name '*.gz' | wc -l)"
mode a 200
push s4 2>err || fail "after it was killed: $(cat err)"
expect 'each once' '1 2 3 4 5 6 8 9 9 9 9 10 10 10 11' "$(arrived a)"

# The server ends, and comes back on the same port.
kill $server
wait $server 2>/dev/null
put s5 12 13
begin s5
await "grep -q 'unsent profiles stay in the spool' err" || fail "a server that is gone: $(cat err)"
put s5 14
serve a "$port"
await '[ "$(waiting s5)" = 0 ]' || fail 'a server that came back'
end || fail "a server that came back: $(cat err)"
expect 'after it came back' '12 13 14' "$(arrived a | cut -d ' ' -f 16-)"

# The spool is full: profile-push drops the oldest profiles, and counts them in this run and the next ones.
profile 100 | profile-push --spool sized-spool --name test.app --label env=e2e --label 'text=a b&c=d+é%' --rate 99
size=$(stat -c %s sized-spool/*.gz)
for number in 101 102 103 104 105; do
  profile $number | profile-push --spool s6 --spool-size $((size * 3 + size / 2)) --name test.app --label env=e2e --label 'text=a b&c=d+é%' --rate 99 \
    --from $((1700000000 + number)) --until $((1700000001 + number)) 2>>full
done
expect 'full' $'profile-push: s6: 1 profile dropped: the spool is full\nprofile-push: s6: 1 profile dropped: the spool is full' "$(cat full)"
expect 'within the bound' 3 "$(waiting s6)"
head -c 100000 /dev/urandom | gzip | profile-push --spool s6 --spool-size 1K 2>err; expect 'larger than all' 1 $?
has 'larger than all' 'is dropped: there is room for 1024' err
push s6 2>err || fail "push: $(cat err)"
has 'dropped before' 'profile-push: s6: 3 profiles from before; so far 3 dropped because the spool was full' err
has 'dropped ever' 'profile-push: 3 profiles sent (in all runs: 3 dropped because the spool was full)' err
expect 'the newest arrive' '103 104 105' "$(arrived a | cut -d ' ' -f 19-)"

# The disk is full: profile-push reports it and leaves no file.
head -c 5000 /dev/urandom | gzip >random.gz
(ulimit -f 2; profile-push --spool s7 random.gz 2>err); expect 'a full disk' 1 $?
has 'a full disk' 'File too large' err
expect 'after a full disk' '' "$(find s7 -type f)"

# profile-push is killed while it writes: the half-written file is not sent.  It is removed and counted.
head -c 50000000 /dev/urandom | gzip -1 >large
seen=0
for ((i = 0; i < 50 && !seen; i++)); do
  profile-push --spool s7 --spool-size 10G <large &
  putter=$!
  while kill -0 $putter 2>/dev/null; do
    if compgen -G 's7/*.pprof.gz.??????' >/dev/null; then kill -9 $putter 2>/dev/null; break; fi
  done
  wait $putter 2>/dev/null
  rm -f s7/*.pprof.gz
  ! compgen -G 's7/*.pprof.gz.??????' >/dev/null || seen=1
done
expect 'half-written' 1 "$(find s7 -name '*.pprof.gz.*' | wc -l)"
echo mine >s7/notes.ABC123
put s7 15
expect 'half-written, later' 0 "$(find s7 -name '*.pprof.gz.*' | wc -l)"
expect 'what is not ours' mine "$(cat s7/notes.ABC123)"
# The disk has damaged a complete file.
echo nonsense >s7/1600000000000-1600000000000-0.pprof.gz
push s7 2>err; expect 'a damaged one' 1 $?
has 'half-written, told' 'so far 1 half-written' err
has 'a damaged one' 'profile-push: 1 profile sent, 1 half-written (in all runs: 2 half-written)' err
expect 'after half-written ones' 15 "$(arrived a | awk '{ print $NF }')"

# Senders are killed at various moments: at the end each profile has arrived at least once.
mkdir b
kill $server; wait $server 2>/dev/null
serve b
for number in {201..215}; do
  put s8 "$number"
  profile-push --spool s8 --url "$url" 2>/dev/null &
  sender=$!
  sleep "0.0$((number % 10))"
  kill -9 $sender 2>/dev/null
  wait $sender 2>/dev/null
done
push s8 2>err || fail "after all that: $(cat err)"
expect 'after all that' "$(echo {201..215})" "$(arrived b | tr ' ' '\n' | sort -n | uniq | paste -sd' ')"

# The token: it is sent to the server, and appears nowhere else.
secret=s3cret-T0ken
(umask 077; echo $secret >token; echo "12345:$secret" >basic)
mode b hang
put s9 20
before=$(requests b)
begin s9 --token-file token --tenant team-1 --patience 0.1
await "[ \"\$(requests b)\" -gt $before ]" || fail 'no request'
! tr '\0' ' ' <"/proc/$sender/cmdline" | grep -q $secret || fail 'the token is on the command line'
! tr '\0' ' ' <"/proc/$sender/environ" | grep -q $secret || fail 'the token is in the environment'
! grep -aq $secret /proc/[0-9]*/cmdline 2>/dev/null || fail 'the token is on a command line'
expect 'the token' "Bearer $secret"$'\t'team-1 "$(tail -n 1 b/requests | cut -f 5,6)"
kill "$sender"
end
has 'a signal' 'profile-push: 0 profiles sent; 1 profile not sent yet' err
mode b 401
push s9 --token-file token 2>err
hasnt 'a wrong token' $secret err
mode b 200
push s9 --token-file basic 2>err || fail "basic: $(cat err)"
expect 'user and password' "Basic $(printf %s "12345:$secret" | base64)" "$(tail -n 1 b/requests | cut -f 5)"
chmod o+r token
push s9 --token-file token 2>err; expect 'a token for everybody' 1 $?
expect 'a token for everybody' 'profile-push: token: everyone can read or change this token: chmod o= this file' "$(cat err)"
push s9 --token-file nowhere 2>err; expect 'no token' 1 $?

# No other server receives the token.
mode b "302 Location: http://127.0.0.1:$port/elsewhere"
put s9 21
chmod o= token
before=$(requests b)
push s9 --token-file token 2>err
has 'a redirection' "$url/ingest: 302; unsent profiles stay in the spool" err
expect 'a redirection' $((before + 1)) "$(requests b)"
http_proxy=$url HTTP_PROXY=$url all_proxy=$url profile-push --spool s9 --url http://localhost:1 --token-file token 2>err
expect 'a proxy for this machine' $((before + 1)) "$(requests b)"
for address in http://example.com 'http://127.0.0.1.example.com' 'http://[::2]' ftp://localhost 'http://u:p@localhost' "$url?a=b" 'http://' 'file:///etc/passwd'; do
  profile-push --spool s9 --url "$address" 2>err; expect "$address" 2 $?
done
profile-push --url http://me:hunter2@localhost --spool s9 2>err
hasnt 'a password in an address' hunter2 err
profile-push --dry-run --insecure-http --url http://example.com || fail '--insecure-http'

# TLS with a self-signed certificate.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=test \
  -addext 'subjectAltName=IP:127.0.0.1' 2>/dev/null || fail openssl
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout other-key.pem -out other.pem -days 2 -subj /CN=test \
  -addext 'subjectAltName=DNS:example.com' 2>/dev/null
kill $server; wait $server 2>/dev/null
serve c 0 cert.pem key.pem
url=127.0.0.1:$port  # https by default
push s9 --token-file token 2>err; expect 'an unknown certificate' 1 $?
has 'an unknown certificate' "https://127.0.0.1:$port/ingest: SSL" err
push s9 --ca-file other.pem 2>err; expect 'another certificate' 1 $?
expect 'requests without trust' 0 "$(requests c)"
push s9 --ca-file cert.pem --token-file token 2>err || fail "TLS: $(cat err)"
expect 'by TLS' 21 "$(arrived c)"
kill $server; wait $server 2>/dev/null
serve d 0 other.pem other-key.pem
url=https://127.0.0.1:$port
put s9 22
push s9 --ca-file other.pem 2>err; expect 'of another name' 1 $?
expect 'requests to another name' 0 "$(requests d)"
push s9 --ca-file nowhere.pem 2>err; expect 'no certificates' 1 $?
has 'no certificates' 'nowhere.pem: No such file' err
kill $server; wait $server 2>/dev/null
finish
