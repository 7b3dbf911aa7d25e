#!/bin/bash
# The reader of the stream stops reading.  The recording still ends at the right time, and its data are
# written when the reader continues.  A user who does not want to wait can cut the output off.
. "$(dirname "$0")/../lib.sh"
offcpu -q --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>/dev/null && engines='perf bpf' || engines=perf
over='the recording is over; waiting for the reader of the stream (another signal cuts it off)'

mkfifo "$dir/idle"  # nobody writes

# Makes a pipe that is full, except for ROOM bytes.
stall() {  # ROOM
  rm -f "$dir/pipe"
  mkfifo "$dir/pipe"
  : >"$dir/err"  # emptied before it is read: a command in the background may not have opened it yet
  exec 9<>"$dir/pipe"
  head -c $((65536 - $1)) /dev/zero >&9
}

# Starts a recorder; $recorder is its process.  Its target runs and waits, and executes another program on
# SIGUSR1.
begin() {  # COMMAND...
  # pe-record --engine bpf records no samples before it has written the list of running processes.
  case $1 in pe-record) room=16384 ;; *) room=4096 ;; esac
  stall $room
  # The command has no <(...), because a bash that gets a signal at that point may report that its trap is not
  # a command, and go on.
  bash -c 'trap "exec sleep 100" USR1; while :; do for i in {1..2000}; do :; done; read -t 0.001; done' <>"$dir/idle" 9<&- & target=$!
  env --default-signal=INT "$@" -p $target >"$dir/pipe" 2>"$dir/err" 9<&- & recorder=$!
}

# Waits until the recorder has written the first bytes of its stream: it records then.
begun() {
  python3 - $((65536 - room)) <<'PY'
import fcntl, struct, sys, termios, time
for _ in range(600):
    if struct.unpack("i", fcntl.ioctl(9, termios.FIONREAD, b"1234"))[0] > int(sys.argv[1]):
        sys.exit(0)
    time.sleep(0.1)
sys.exit("no first byte of the stream")
PY
}

# told TEXT: waits until the recorder has printed the text
told() {
  for _ in {1..300}; do
    ! grep -qF "$1" "$dir/err" || return 0
    kill -0 $recorder 2>/dev/null || break
    sleep 0.1
  done
  fail "$label: no '$1': $(cat "$dir/err")"
  return 1
}

# The reader continues.  The bytes that filled the pipe are not part of the stream.
take_the_rest() {
  exec 8<"$dir/pipe" 9<&-
  cat <&8 >"$dir/taken"
  exec 8<&-
  python3 - "$dir/taken" "$dir/whole.pe" <<'PY'
import sys
taken = open(sys.argv[1], "rb").read()
open(sys.argv[2], "wb").write(taken[max(0, taken.find(b"PERFILE2")):])
PY
  wait $recorder
}

check() {  # COMMAND...
  local label="$*"
  begin "$@" -d 0.7
  told "$over"
  kill -0 $recorder 2>/dev/null || fail "$label: does not wait for the reader"
  # The recording is over: nothing more is recorded.
  kill -USR1 $target
  await_program $target sleep
  sleep 0.3
  take_the_rest; expect "$label: status after all" 0 $?
  pe-symbolize "$dir/whole.pe" 2>"$dir/symbolized" | stackfold >"$dir/folded" 2>/dev/null
  grep -q 'cut off\|truncated' "$dir/symbolized" && fail "$label: $(cat "$dir/symbolized")"
  at_least "$label: recorded" 1 "$(grep -c '^bash;' "$dir/folded")"
  [ "$failed" = 0 ] || cat "$dir/err" "$dir/symbolized" "$dir/folded"
  expect "$label: recorded after the end" 0 "$(grep -c '^sleep' "$dir/folded")"
  kill $target

  begin "$@"
  begun || fail "$label: did not begin: $(cat "$dir/err")"
  sleep 1
  kill -TERM $recorder
  told "$over"
  kill -INT $recorder
  wait $recorder; expect "$label: status of a second signal" 1 $?
  grep -q ': the output was cut off before its reader had read it all: ' "$dir/err" || fail "$label: $(cat "$dir/err")"
  exec 9<&-
  kill $target
}

for engine in $engines; do
  check offcpu --engine "$engine" --preempted
  check pe-record --engine "$engine" -e cpu-clock -F 4999
done

# With a command, this is the recorder's own failure.
stall 16384
pe-record -F 4999 -e cpu-clock -d 0.5 -- "$PE_WORKLOAD" shares 60 >"$dir/pipe" 2>"$dir/err" 9<&- & recorder=$!
label='a command'
told "$over"
kill -TERM $recorder
wait $recorder; expect 'a command, cut off: status' 125 $?
finish
