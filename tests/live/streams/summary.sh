#!/bin/bash
# Each recorder writes a summary for programs (--summary FD), whose figures are those of its closing line.
# The command does not get the descriptor, and a reader that is gone or asleep does not stop the recorder.
. "$(dirname "$0")/../lib.sh"
# summarised TOOL...: runs a recorder; its summary goes to $dir/json, its messages to $dir/err
summarised() { "$1" --summary 7 -o "$dir/out.pe" "${@:2}" 7>"$dir/json" >"$dir/out" 2>"$dir/err"; }
members() { python3 -c 'import json, sys; line = json.load(open(sys.argv[1])); print(*(line.get(name) for name in sys.argv[2:]))' "$dir/json" "$@"; }
# same_as_text LABEL MEMBER TEXT: the closing line has the text, in which @ is the member
same_as_text() {
  grep -qF -e "${3//@/$(members "$2")}" "$dir/err" || fail "$1: no '${3//@/$(members "$2")}' in $(cat "$dir/err")"
  grep -qxF -e "$(members text)" "$dir/err" || fail "$1: no line '$(members text)' in $(cat "$dir/err")"
}

summarised pe-record --engine perf -- "$PE_WORKLOAD" shares 0.6; expect 'pe-record' 0 $?
expect 'one line' 1 "$(wc -l <"$dir/json")"
expect 'what pe-record recorded' 'pe-record recorded perf 1' "$(members tool result engine processes)"
same_as_text samples samples '@ samples in '
same_as_text seconds seconds " in $(python3 -c "import json; print('%.2f' % json.load(open('$dir/json'))['seconds'])") s, "
same_as_text lost lost ' s, @ lost, '
same_as_text stacks complete_percent ', @ % of stacks complete, '
same_as_text cost recorder_percent ", recorder: $(grep -o '"recorder_percent":[0-9.]*' "$dir/json" | cut -d: -f2) % of a CPU"
summarised offcpu --engine perf -- sleep 0.6; expect offcpu 0 $?
expect 'what offcpu recorded' 'offcpu recorded' "$(members tool result)"
same_as_text waits waits "@ wait"
same_as_text time waited_seconds "$(grep -o '"waited_seconds":[0-9.]*' "$dir/json" | cut -d: -f2) s waited, "
summarised malloctrace -- "$PE_HEAP" peak; expect malloctrace 0 $?
expect 'what malloctrace recorded' 'malloctrace recorded 1' "$(members tool result processes)"
for figure in allocations:'@ allocations in ' allocated_bytes:', @ bytes, ' peak_bytes:'peak @ bytes' live_blocks:' in @ block'; do
  same_as_text heap "${figure%%:*}" "${figure#*:}"
done
summarised pe-record -q --engine perf -- "$PE_WORKLOAD" shares 0.1; expect 'a quiet one' 0 $?
expect 'the text of a quiet one' 0 "$(members text | grep -cv '^pe-record: [0-9]* sample')"
expect 'messages of a quiet one' '' "$(cat "$dir/err")"

# Recordings of nothing, and those that fail.
sleep 100 & asleep=$!
summarised pe-record --engine perf -p $asleep -d 0.1; expect 'of nothing' 1 $?
expect 'of nothing' 'empty 0' "$(members result samples)"
same_as_text 'of nothing' samples 'nothing was recorded: '
kill $asleep
summarised pe-record --engine perf -- "$dir/"$'no "such"\n\\'; expect 'no such command' 127 $?
expect 'no such command' 'pe-record failed None' "$(members tool result samples)"
same_as_text 'no such command' tool ': No such file or directory'
summarised offcpu -p 999999999; expect 'no such process' 1 $?
expect 'no such process' 'offcpu failed' "$(members tool result)"
"$PE_TOOLS/pe-record" --engine perf --summary 7 -q -- "$PE_WORKLOAD" shares 0.1 7>"$dir/json" >/dev/full 2>"$dir/err"; expect 'a full disk' 125 $?
expect 'a full disk' failed "$(members result)"
setpriv --reuid=65534 --regid=65534 --clear-groups -- "$PE_TOOLS/offcpu" --summary 7 -a -d 0.1 7>"$dir/json" >/dev/null 2>"$dir/err"
expect 'no privilege' 1 $?
expect 'no privilege' denied "$(members result)"
same_as_text 'no privilege' tool 'perf_event_paranoid is '

# The same word for the same fact, whatever the recorder, its engine and the privilege.
# It says whether the kernel gives no counters, whatever the target is: then an engine without them may record.
while IFS=: read -r denied lacks; do
  # shellcheck disable=SC2086 # these are words
  setpriv --reuid=65534 --regid=65534 --clear-groups -- "$PE_TOOLS"/$denied --summary 7 -d 0.1 7>"$dir/json" >/dev/null 2>"$dir/err"
  expect "as nobody: $denied: $(cat "$dir/err")" "denied $lacks" "$(members result lacks)"
done <<END
pe-record -a:counters
pe-record -e cpu,waits -a:counters
pe-record -e cpu,waits -p 1:None
pe-record -p 1:None
pe-record --engine ptrace -p 1:None
pe-record --engine bpf -a:None
offcpu -p 1:None
offcpu --locks -p 1:None
END

# Descriptors that cannot be written.
for wrong in 7 x -1 4294967296 1e0; do
  pe-record --summary="$wrong" -o "$dir/out.pe" -- touch "$dir/began" 2>"$dir/err"; expect "descriptor '$wrong'" 2 $?
  grep -q -e "--summary: not an open descriptor: '$wrong'" "$dir/err" || fail "descriptor '$wrong': $(cat "$dir/err")"
done
offcpu --summary 7 -o "$dir/out.pe" -- touch "$dir/began" 7</dev/null 2>"$dir/err"; expect 'to read' 2 $?
grep -q 'descriptor 7 is not open for writing' "$dir/err" || fail "to read: $(cat "$dir/err")"
malloctrace --summary 1 -- touch "$dir/began" 2>"$dir/err" | cat; expect 'that of the stream' 2 "${PIPESTATUS[0]}"
[ ! -e "$dir/began" ] || fail 'a wrong command line started the command'

# The command does not inherit it; a standard one is its own.
for tool in 'pe-record --engine perf' 'offcpu --engine perf' malloctrace; do
  # shellcheck disable=SC2016,SC2086 # for the shell that runs it; these are words
  summarised $tool -- sh -c '[ ! -e /proc/self/fd/7 ] && "$0" shares 0.1 && sleep 0.01' "$PE_WORKLOAD"; expect "$tool: what the command inherits" 0 $?
done
"$PE_TOOLS/pe-record" -q --engine perf --summary 2 -o "$dir/out.pe" -- sh -c 'echo mine >&2; for i in 1 2 3 4 5 6; do ls /usr/bin >/dev/null; done' 2>"$dir/json"
expect 'standard error' 0 $?
expect 'on standard error' 'mine 1' "$(head -n 1 "$dir/json") $(grep -c '^{"tool":"pe-record",' "$dir/json")"

# Readers that have gone, or sleep, and a full disk.
cat >"$dir/pipes.py" <<'PY'
import os, subprocess, sys
def run(*command, ignores_pipe):
    reader, writer = os.pipe()
    if ignores_pipe is None:  # full
        os.set_blocking(writer, False)
        try:
            while True: os.write(writer, bytes(512))
        except BlockingIOError:
            os.set_blocking(writer, True)
    else:
        os.close(reader)
    done = subprocess.run(["pe-record", "--engine", "perf", "-o", sys.argv[1], "--summary", str(writer), "--", *command], pass_fds=[writer],
                          restore_signals=not ignores_pipe, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    print(ignores_pipe, done.returncode, b"--summary: not written: its reader does not read" in done.stderr)
for ignores_pipe in (True, False, None):
    run(sys.argv[2], "shares", "0.1", ignores_pipe=ignores_pipe)
    run("/no/such", ignores_pipe=ignores_pipe)
PY
expect 'pipes' 'True 0 False,True 127 False,False 0 False,False 127 False,None 0 True,None 127 True' \
  "$(python3 "$dir/pipes.py" "$dir/out.pe" "$PE_WORKLOAD" | paste -sd,)"
pe-record --engine perf --summary 7 -o "$dir/out.pe" -- "$PE_WORKLOAD" shares 0.1 7>/dev/full 2>"$dir/err"; expect 'a full disk' 0 $?
grep -q -e '--summary: No space left on device' "$dir/err" || fail "a full disk: $(cat "$dir/err")"
finish
