#!/bin/bash
# The methods of a Java program that was started without any flag have names, between the native functions that
# call them and that they call: compiled, inlined and interpreted ones; in shares, recursion, callbacks from a
# sort, lambdas and threads, and where a method pushes words for a while.  No method has a caller that it cannot have.
. "$(dirname "$0")/../lib.sh"
for program in java javac; do command -v $program >/dev/null || skip "no $program"; done
version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
case $version in 1[7-9] | 2[0-7]) ;; *) skip "frames of Java $version are not known" ;; esac
cat >"$dir/Work.java" <<'END'
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;

public class Work {
  static volatile long sink;
  static long step(long x) { return x * 6364136223846793005L + 1442695040888963407L; }
  static void spin(int percent) {
    long x = percent;
    for (int i = 0; i < percent * 8000; ++i) x = step(x) ^ x >> 7;
    sink = x;
  }
  static void fifty() { spin(50); }
  static void thirty() { spin(30); }
  static void twenty() { spin(20); }
  static void shares() { fifty(); thirty(); twenty(); }

  static void deep(int n) { if (n > 0) deep(n - 1); else bottom(); }
  static void bottom() { spin(10); }
  static void recursion() { deep(200); }

  static int byValue(Integer a, Integer b) { return Integer.compare(key(a), key(b)); }
  static int key(int a) { for (int i = 0; i < 20; ++i) a = a * 17 + i; return a & 4095; }
  static void sorts() {
    Integer[] numbers = new Integer[500];
    for (int i = 0; i < numbers.length; ++i) numbers[i] = i * 7919 % 1009;
    Arrays.sort(numbers, Work::byValue);
    sink = numbers[3];
  }
  static final byte[] in = new byte[100000], out = new byte[100000];
  static void compresses() {
    Deflater deflater = new Deflater();
    deflater.setInput(in);
    deflater.finish();
    sink = deflater.deflate(out);
    deflater.end();
  }
  static final String[] keys = new String[100];
  static String wanted = "needle";
  static void compares() {  // the code for it pushes words in the midst of a method
    int less = 0;
    for (int i = 0; i < 10000; ++i) if (keys[i % 100].compareTo(keys[i % 99]) < 0) ++less;
    sink = less;
  }
  static void searches() {
    int found = 0;
    for (int i = 0; i < 10000; ++i) found += keys[i % 100].indexOf(wanted);
    sink = found;
  }
  static void fails(int n) { if (n > 0) fails(n - 1); else throw new IllegalStateException(); }
  static void catches() { for (int i = 0; i < 20; ++i) try { fails(i); } catch (IllegalStateException e) { ++sink; } }

  static void all() { shares(); recursion(); sorts(); compresses(); compares(); searches(); catches(); }
  static void worker() { while (true) all(); }
  public static void main(String[] args) throws Exception {
    for (int i = 0; i < in.length; ++i) in[i] = (byte) (i * i >> 3);
    for (int i = 0; i < keys.length; ++i) keys[i] = "a/common/prefix/of/all/of/the/keys/" + i;
    Thread thread = new Thread(Work::worker);
    thread.setDaemon(true);
    thread.start();
    for (int i = 0; ; ++i) {
      all();
      if (i == 20) Files.createFile(Path.of(args[0]));
    }
  }
}
END
javac -d "$dir" "$dir/Work.java" || fail 'javac'
# Prints each pair of a method of Work and its next outer one that the program does not have.
cat >"$dir/pairs.awk" <<'END'
BEGIN {
  split("fifty<shares thirty<shares twenty<shares shares<all deep<recursion deep<deep bottom<deep recursion<all " \
        "byValue<sorts key<byValue sorts<all compresses<all compares<all searches<all fails<catches fails<fails catches<all all<main all<worker " \
        "spin<fifty spin<thirty spin<twenty spin<bottom step<spin main< worker<", pairs, " ")
  for (i in pairs) legal[pairs[i]] = 1
}
/^# / { next }
{
  frames = split($0, frame, ";")
  caller = ""
  for (i = 1; i <= frames; ++i) if (frame[i] ~ /^Work\.[a-zA-Z]+_\[/) {
    method = substr(frame[i], 6); sub(/_\[.*/, "", method)
    if (caller == "" && method != "main" && method != "worker") break  # its outer frames are missing
    if (!((method "<" caller) in legal)) print method "<" caller
    caller = method
  }
}
END
mark='_\[[sji]\];'  # the end of a method's name
# of METHOD PATTERN: the percentage of matching stacks among those with a method
of() { grep -E ";Work\.$1$mark" "$dir/folded" >"$dir/part"; share "$2" "$dir/part"; }
start() {  # JAVA-OPTION...
  rm -f "$dir/ready"
  java "$@" -cp "$dir" Work "$dir/ready" & target=$!
  await "$dir/ready"
}
record() {  # LABEL ENGINE
  until_used 2500 $target pe-record -v --engine "$2" -F 997 -p $target -o "$dir/java.pe" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  grep -Eq '[0-9]+ frames of Java, [0-9]+ unreadable' "$dir/err" || fail "$1: details: $(cat "$dir/err")"
  pe-symbolize -q "$dir/java.pe" | stackfold --annotate >"$dir/folded"
  expect "$1: pairs of caller and method" '' "$(awk -f "$dir/pairs.awk" "$dir/folded" | sort | uniq -c)"
  grep -E ';(Work\.|java\.util\.)' "$dir/folded" >"$dir/java"
  at_least "$1: stacks with the first method, %" 97 "$(share "(JavaCalls::call_helper|StubRoutines).*;Work\.(main|worker)$mark" "$dir/java")"
}
start
engines='ptrace'
for engine in perf bpf; do
  if pe-record -q --engine $engine -o "$dir/try.pe" -- true 2>/dev/null; then engines="$engines $engine"; fi
done
for engine in $engines; do
  record "$engine" "$engine"
  within "$engine: fifty" 50 "$(of shares ';Work.fifty_')" 5
  within "$engine: thirty" 30 "$(of shares ';Work.thirty_')" 5
  within "$engine: twenty" 20 "$(of shares ';Work.twenty_')" 5
  at_least "$engine: compiled, %" 90 "$(of shares ";Work.spin_\[[ji]\]")"
  at_least "$engine: whole recursion, %" 90 "$(of recursion "Work.recursion$mark(Work.deep$mark){201}Work.bottom_")"
  at_least "$engine: native callees, %" 70 "$(of compresses 'Deflater_deflateBytesBytes_\[l\];.*deflate')"
  for part in compares searches; do
    grep -E ";Work\.${part}_\[[sji]\]" "$dir/folded" >"$dir/part"
    expect "$engine: whether $part was met" 1 "$(grep -c -m1 . "$dir/part")"
    at_least "$engine: $part with the first method, %" 97 "$(share "(JavaCalls::call_helper|StubRoutines).*;Work\.(main|worker)$mark" "$dir/part")"
  done
  at_least "$engine: callbacks, %" 5 "$(of sorts "java.util.(Arrays|TimSort|ComparableTimSort)\..*;Work.byValue_")"
  expect "$engine: methods that perf reads" 1 "$(perf script -i "$dir/java.pe" 2>/dev/null | grep -c -m1 '\[java-jit\] Work\.[a-z]* Work.java:')"
  expect "$engine: current lines" 1 "$(pe-symbolize -q --lines "$dir/java.pe" | stackfold --lines | grep -c -m1 ';Work.shares:Work.java:16;Work.fifty:Work.java:13;Work.spin:Work.java:\(9\|10\)')"
done
kill $target
start -Xint
record interpreter "${engines##* }"
at_least "interpreted, %" 90 "$(of shares ";Work.spin_\[s\]")"
kill $target
# Virtual threads: most of their callers are in the heap.  The stack still leads to the thread that runs them.
if [ "$version" -ge 21 ]; then
  cat >"$dir/Virtual.java" <<'END'
public class Virtual {
  static volatile long sink;
  static void spin() { long x = 1; for (int i = 0; i < 100000; ++i) x = x * 6364136223846793005L + 1; sink = x; }
  static void sleeps() throws Exception { spin(); Thread.sleep(1); spin(); }
  static void repeats() throws Exception { while (true) sleeps(); }
  static void run() { try { repeats(); } catch (Exception e) { } }
  public static void main(String[] args) throws Exception {
    for (int i = 0; i < 20; ++i) Thread.ofVirtual().start(Virtual::run);
    Thread.sleep(1000000);
  }
}
END
  javac -d "$dir" "$dir/Virtual.java" || fail 'javac: virtual threads'
  java -cp "$dir" Virtual & target=$!
  until_used 3000 $target pe-record -q --engine "${engines##* }" -F 997 -p $target -o "$dir/java.pe" || fail 'virtual threads'
  pe-symbolize -q "$dir/java.pe" | stackfold >"$dir/folded"
  grep ';Virtual\.spin' "$dir/folded" >"$dir/part"
  at_least 'virtual threads: run by a thread, %' 95 \
    "$(share 'JavaCalls::call_helper.*;jdk.internal.vm.Continuation.(run|enter);([^;]*;)*\[java: callers in the heap\];(Virtual.repeats;)?Virtual.sleeps;Virtual.spin|Continuation.enter1?;.*Virtual.run;Virtual.repeats;Virtual.sleeps;Virtual.spin' "$dir/part")"
  kill $target
fi
finish
