#!/bin/bash
# Programs of another user that try to aim root's probes at other programs.  A bystander calls a function of its
# own and one of a library all the time, and must never get a wrong result or see its code change.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'probes need root'
[ -e /sys/bus/event_source/devices/uprobe/type ] || skip 'this kernel has no uprobes (CONFIG_UPROBE_EVENTS)'
! ischroot || skip 'in a chroot, paths of other roots begin outside of it'
nobody() { exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$@"; }

source=$(dirname "$0")/../../data/src/aims_probes.c
host=$dir/host; jail=$dir/jail; mkdir "$host" "$jail"
compile() { cc -O1 "$@" "$source" || fail "$source does not compile"; }
library() { compile -DLIBRARY -shared -nostdlib "$@"; }
library -DBYSTANDER -o "$host/libhost.so"
compile -DBYSTANDER -o "$host/bystander"
compile -o "$jail/attacker"
compile -static -o "$jail/static" 2>/dev/null
place() { nm "$1" | awk '$3 == "victim" { print $1 }'; }
# attack: makes the attacker's files anew
attack() {
  library -o "$jail/libfoo.so"; rm -f "$jail/link"; ln -s "$host/libhost.so" "$jail/link"
  chown -R 65534 "$jail"; chmod 755 "$dir" "$jail"
}
attack
[ $((0x$(place "$jail/libfoo.so"))) = $((0x$(place "$host/libhost.so") + 2)) ] || fail 'the libraries differ otherwise'
[ $((0x$(place "$jail/attacker"))) = $((0x$(place "$host/bystander") + 2)) ] || fail 'the programs differ otherwise'

"$host/bystander" bystander "$host/libhost.so" >"$dir/noticed" & bystander=$!
await_program $bystander bystander

# ready MODE ARGUMENT...: starts the attacker, which waits until somebody opens its file
ready() {
  rm -f "$dir/said"
  nobody "$jail/attacker" "$@" >"$dir/said" & target=$!
  await_text ready "$dir/said"
}
# record OPTION...: records the target for a moment
record() { pe-record -d 0.3 -p $target -o "$dir/p.pe" "$@" 2>"$dir/err"; }
# recorded OPTION...: does so, also if the target passes no probe any more
recorded() { record "$@" || grep -q 'nothing was recorded' "$dir/err"; }
# unharmed LABEL: the bystander has noticed nothing
unharmed() {
  kill $target; wait $target 2>/dev/null
  [ ! -s "$dir/noticed" ] || fail "$1: $(sort "$dir/noticed" | uniq -c | tr '\n' ' ')"
  : >"$dir/noticed"
}

for option in '--event=uprobe:libfoo.so:victim' '--event=uretprobe:libfoo.so:victim' '--span=libfoo.so:victim'; do
  attack; ready swaps "$jail/libfoo.so" "$jail/link"
  recorded "$option" || fail "a swapped library, $option: $(cat "$dir/err")"
  unharmed "a swapped library, $option"
done
for option in '--event=uprobe:victim' '--span=victim'; do
  attack; ready executes "$host/bystander" "$host/libhost.so"
  recorded "$option" || fail "another program, $option: $(cat "$dir/err")"
  unharmed "another program, $option"
done

# Inside of its root, an absolute link does not lead to a file of the host.
attack; mkdir "$jail/lib"; ln -s "$host/libhost.so" "$jail/lib/libfoo.so"
chroot "$jail" /static waits for & target=$!
for option in '--event=uprobe:/lib/libfoo.so:victim' '--span=/lib/libfoo.so:victim'; do
  record "$option" && fail "an absolute link, $option: recorded"
  grep -q '/lib/libfoo.so: no such file' "$dir/err" || fail "an absolute link, $option: $(cat "$dir/err")"
done
unharmed 'an absolute link'

# A file that somebody writes to meanwhile may have other code by now.
for option in '--event=uprobe:libfoo.so:victim' '--span=libfoo.so:victim'; do
  attack; ready writes "$jail/libfoo.so"
  record "$option" && fail "a file that changes, $option: recorded"
  grep -q 'libfoo.so changed while probes were placed in it' "$dir/err" || fail "a file that changes: $(cat "$dir/err")"
  unharmed 'a file that changes'
done
kill $bystander
finish
