#!/bin/bash
# Other users have put links, pipes and files at the names of the results.  No tool changes a file through a
# link or waits for a pipe; the result is a new file of ours.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
run() { timeout -k 5 60 "$@" >out 2>err; status=$?; }
pe-record -q -F 997 -o r.pe -- "$PE_WORKLOAD" shares 0.2 2>err || fail "$(cat err)"
fold r.pe >n.folded
for _ in 1 2; do "$PE_SCRIPTS/profile_run" capture --output runs -- "$PE_WORKLOAD" shares 0.1 >/dev/null 2>err || fail "$(cat err)"; done

# check RESULT COMMAND...: RESULT is first a link to a precious file, then a file of another user
check() {
  local result=$1 label="${*:2}"
  shift
  echo precious >precious
  rm -f "$result"
  ln -s "$PWD/precious" "$result"
  run "$@"
  expect "$label: status, '$(cat err)'" 0 $status
  expect "$label: through a link" precious "$(cat precious)"
  { [ -f "$result" ] && [ ! -L "$result" ]; } || fail "$label: the link is still there"
  [ "$(id -u)" = 0 ] || return
  rm -f "$result"
  echo '<svg class="flamegraph">planted' >"$result"
  chown 12345:12345 "$result"
  run "$@"
  expect "$label: owner" 0 "$(stat -c %u "$result")"
  [ "$result" = summary ] || ! grep -q planted "$result" || fail "$label: the planted file is still there"
}
check a.pe pe-record -q -e cpu-clock -o a.pe -- "$PE_WORKLOAD" shares 0.05
check heap malloctrace -q -o heap -- true
check diff.svg flamediff --period 1 -o diff.svg n.folded n.folded
check flat.svg flamesvg -q -o flat.svg n.folded
check flame.svg "$PE_SCRIPTS/flamegraph" flame.svg -- "$PE_WORKLOAD" shares 0.1
check again.svg "$PE_SCRIPTS/profile_run" flamegraph --output runs --svg again.svg
check trend.svg "$PE_SCRIPTS/profile_run" trend --output runs --svg trend.svg work
check summary "$PE_SCRIPTS/profile_run" ci --shares --output runs --baseline previous --fail-over 100% --summary summary
if offcpu -q -o w.pe -- true 2>err; then
  check w.pe offcpu -q -o w.pe -- sleep 0.05
  mkdir kept
  check hot.svg "$PE_SCRIPTS/hotcold" hot.svg -- "$PE_WORKLOAD" shares 0.1
  for name in waits.pe stacks.folded; do
    check kept/$name "$PE_SCRIPTS/hotcold" --keep kept hot.svg -- "$PE_WORKLOAD" shares 0.1
  done
  expect 'what hotcold keeps' 'stacks.folded waits.pe' "$(cd kept && echo *)"
  expect 'hotcold: hidden files' '' "$(find kept -name '.*')"
fi

# Snapshots, also with the name that incomplete ones had in earlier versions.
echo precious >precious
ln -s "$PWD/precious" shot.1.part
ln -s "$PWD/precious" shot.1
mkfifo shot.2.part shot.2
malloctrace -q -o shot -- sleep 600 2>err & tracer=$!
await shot
for name in shot.1 shot.2; do
  kill -USR1 $tracer
  for _ in $(seq 1200); do { [ -f $name ] && [ ! -L $name ] && break; } || sleep 0.05; done
done
pkill -P $tracer sleep
wait $tracer
expect 'snapshots: through a link' precious "$(cat precious)"
for name in shot.1 shot.2; do
  { [ -f $name ] && [ ! -L $name ]; } || fail "$name is not a file of ours: $(ls -l $name)"
  pe-symbolize -q $name >/dev/null || fail "$name is not whole"
done
expect 'snapshots: unfinished ones' '' "$(find . -regex '.*/shot\.[0-9]*\.[A-Za-z0-9]*' ! -name '*.part')"

# A pipe of another user is refused; our own is written to.
mkfifo pipe
cat pipe >through & pe-record -q -e cpu-clock -F 499 -o pipe -- "$PE_WORKLOAD" shares 0.1 2>err || fail "a pipe: $(cat err)"
wait $!
[ -s through ] || fail 'a pipe of ours: nothing came'
if [ "$(id -u)" = 0 ]; then
  chown 12345 pipe
  for command in 'pe-record -q -o pipe -- true' 'flamediff --period 1 -o pipe n.folded n.folded' "$PE_SCRIPTS/flamegraph pipe -- true" \
    "$PE_SCRIPTS/profile_run flamegraph --output runs --svg pipe"; do
    # shellcheck disable=SC2086 # words
    run $command
    case $status in 1 | 125) ;; *) fail "$command: status $status" ;; esac
    grep -q "pipe: is another user's pipe" err || fail "$command: $(cat err)"
  done
fi
finish
