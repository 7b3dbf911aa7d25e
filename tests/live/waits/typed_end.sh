#!/bin/bash
# Ctrl-C at a terminal ends the recorder and its command at the same moment.  The recording has the wait of each
# process that sleeps then, whether the process or the recording ends first.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip 'python3 is not installed'

# Processes that sleep until a signal ends them; then creates the file.
cat >"$dir/sleepers.py" <<'PY'
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
def sleep_for_good(ready):
    os.write(ready, b".")
    while True: signal.pause()
def state(pid): return open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0]
reading, ready = os.pipe()
pids = [os.fork() or sleep_for_good(ready) for _ in range(60)]
for _ in pids: os.read(reading, 1)
while any(state(pid) != "S" for pid in pids): time.sleep(0.01)
os.close(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY))
os.wait()
PY
# typed MARK COMMAND...: runs the command on a terminal of its own, and types Ctrl-C when the file is there
cat >"$dir/typed.py" <<'PY'
import os, pty, select, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
is_typed = False
while True:
    try:
        if select.select([terminal], [], [], 0.02)[0] and not os.read(terminal, 4096): break
    except OSError: break
    if not is_typed and os.path.exists(sys.argv[1]):
        is_typed = bool(os.write(terminal, b"\x03"))
os.waitpid(pid, 0)
PY
typed() { rm -f "$dir/mark"; timeout 60 python3 "$dir/typed.py" "$dir/mark" "$@" -- python3 "$dir/sleepers.py" "$dir/mark"; }
# sleepers FOLDED: prints how many processes wait in pause(2)
sleepers() { grep -E '_sys_pause[;_ ]' "$1" | cut -d';' -f1 | sort -u | wc -l; }

offcpu -q --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>/dev/null && engines='perf bpf' || engines=perf
for engine in $engines; do
  typed offcpu --engine "$engine" -o "$dir/typed.pe"
  fold "$dir/typed.pe" --pid >"$dir/folded"
  expect "$engine: processes whose wait Ctrl-C ended" 60 "$(sleepers "$dir/folded")"
done
finish
