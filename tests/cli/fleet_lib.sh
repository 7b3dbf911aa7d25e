# The tests of merge_fleet source this file after tests/live/lib.sh.  It makes up the files of a fleet, and starts
# workers on this machine: hosts that sshd serves, and a Dask cluster.  The benchmark starts the same workers.
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh, or the benchmark, sets dir; tests use what is set

# make_fleet: changes to a folder with the files, which "${names[@]}" lists; want has their sum
make_fleet() {
  export LC_ALL=C TMPDIR=$dir/temp
  tool=$PE_SCRIPTS/merge_fleet
  mkdir "$dir/temp" "$dir/hosts" "$dir/bin"
  cd "$dir/hosts" || exit 1
  # One file is empty, others are compressed, or have names that are difficult for a shell.
  local n name odd
  # shellcheck disable=SC2016 # no shell is to expand it
  odd=('two words' $'new\nline' '-n' '-' '--' '*' "q'u\"ote" 'a&b\1' '$(touch pwned)' 'ünï' [15]='{}' [16]='{#}')
  for ((n = 0; n < 29; n++)); do
    name=${odd[n]:-host-$n}
    if [ "$n" -ne 7 ]; then host "$n" >>"$dir/all"; host "$n" | stackfold >"./$name"; else : >"./$name"; fi
    case $((n % 5)) in 2) gzip -- "./$name" && name=$name.gz ;; 4) zstd -q --rm -- "./$name" && name=$name.zst ;; esac
    names+=("$name")
  done
  stackfold --strip-names "$dir/all" >"$dir/want" || fail 'nothing to compare with'
  [ "$(wc -l <"$dir/want")" -gt 200 ] || fail 'few stacks are made up'
}

# merge ARGUMENT...: sets $status; the output goes to out and err beside the hosts
merge() { "$tool" "$@" >"$dir/out" 2>"$dir/err" </dev/null; status=$?; }
# same LABEL: requires the complete result, no messages, and no remaining files
same() {
  expect "$1: status" 0 "$status"
  cmp -s "$dir/want" "$dir/out" || fail "$1: $(diff -a "$dir/want" "$dir/out" | head -n 5)"
  [ ! -s "$dir/err" ] || fail "$1: says $(cat "$dir/err")"
  left "$1"
}
left() { [ -z "$(ls -A "$dir/temp")" ] || { fail "$1: leaves $(ls -A "$dir/temp")"; rm -rf "${dir:?}"/temp/*; }; }
# refused LABEL TEXT: requires a failure with this message
refused() {
  expect "$1: status" 1 "$status"
  grep -aqF -e "$2" "$dir/err" || fail "$1: no '$2' in: $(cat "$dir/err")"
  left "$1"
}
empty() { [ ! -s "$dir/out" ] || fail "$1: writes all the same"; }

# Writes the folded text of a made-up host, unsorted.  Some stacks are common to all hosts, some to a few,
# some its own.  Three counts are too large for a double.  Names have blanks, and are UTF-8 or not.  One stack
# is the start of another.
host() {  # NUMBER
  printf '%s\n' 'all;of;them 1' 'a (x);b 2' 'a;b 3' "a $1" 'a;;b 1' 'größe;ключ;名前 2' $'bad\xff\xfe;x 1' \
    "std::vector<int, std::allocator<int> >::push_back;operator new(unsigned long) $1" \
    "java;L\$\$Lambda\$$1.run 3" "java;L\$\$Lambda;x 2" "main;f.cold.$(($1 % 3));g 1" \
    "worker-$1/17;run 12345678.25" "worker-$1/18;run 1.5" "[unknown];it's \"\\\$(quoted)\" 7"
  [ $(($1 % 10)) -ne 3 ] || echo 'huge 4611686018427387905'
  for ((i = 0; i < 60; i++)); do echo "main;f$((i * $1 % 97));g$((i % 7)) $((i * 1000003))"; done
}

# free_ports NUMBER: prints ports of 127.0.0.1 that no process listens on
free_ports() {
  /usr/bin/python3 -c 'import socket, sys
every = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(each.getsockname()[1] for each in every))' "$1"
}

# start_hosts FOLDER NUMBER: starts hosts h1, h2, ... of FOLDER/config, whose processes are in hosts and workers.  A host looks for programs in FOLDER/h1 and so on,
# then in PATH.
start_hosts() {
  local folder=$1 ports port n=0
  mkdir -p "$folder"
  [ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$folder/user"
  read -ra ports <<<"$(free_ports "$2")"
  for port in "${ports[@]}"; do
    n=$((n + 1))
    mkdir "$folder/h$n"
    ssh-keygen -q -t ed25519 -N '' -f "$folder/key$n"
    printf '%s\n' "ListenAddress 127.0.0.1:$port" "HostKey $folder/key$n" "AuthorizedKeysFile $folder/user.pub" 'StrictModes no' \
      'UsePAM no' 'PermitRootLogin yes' 'PidFile none' 'PasswordAuthentication no' "SetEnv PATH=$folder/h$n:$PATH" >"$folder/sshd$n"
    printf '%s\n' "Host h$n" "  HostName 127.0.0.1" "  Port $port" "  IdentityFile $folder/user" '  IdentitiesOnly yes' \
      '  StrictHostKeyChecking accept-new' "  UserKnownHostsFile $folder/known" '  LogLevel ERROR' >>"$folder/config"
    /usr/sbin/sshd -D -e -f "$folder/sshd$n" 2>"$folder/log$n" &
    hosts[n]=$!
    workers+=($!)
  done
  for ((n = 1; n <= $2; n++)); do
    for _ in $(seq 200); do ssh -F "$folder/config" "h$n" true 2>"$folder/said" </dev/null && continue 2; sleep 0.05; done
    fail "h$n does not answer: $(cat "$folder/said" "$folder/log$n")"
  done
}

has_dask() {
  /usr/bin/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("distributed") is None)'
}

# start_cluster FOLDER NUMBER: starts a Dask scheduler and its workers, and sets $cluster, the scheduler's address
start_cluster() {
  local folder=$1 n
  mkdir -p "$folder"
  local -x DASK_CONFIG=$folder/none TMPDIR=$folder  # no state in HOME
  # A worker whose scheduler has ended may ignore SIGTERM.
  setpriv --pdeathsig KILL /usr/bin/python3 -m distributed.cli.dask_scheduler --host 127.0.0.1 --port 0 --no-dashboard \
    --scheduler-file "$folder/scheduler" >"$folder/log" 2>&1 &
  workers+=($!)
  for _ in $(seq 1200); do [ -s "$folder/scheduler" ] && break; sleep 0.05; done
  for ((n = 1; n <= $2; n++)); do
    setpriv --pdeathsig KILL /usr/bin/python3 -m distributed.cli.dask_worker --scheduler-file "$folder/scheduler" --nthreads 1 \
      --no-nanny --no-dashboard --local-directory "$folder/worker$n" >"$folder/log$n" 2>&1 &
    workers+=($!)
  done
  cluster=$(sed -n 's/.*"address": *"\(tcp:[^"]*\)".*/\1/p' "$folder/scheduler" | head -n 1)
  for ((n = 1; n <= $2; n++)); do
    for _ in $(seq 1200); do grep -q 'Registered to' "$folder/log$n" 2>/dev/null && continue 2; sleep 0.05; done
    fail "a Dask worker does not start: $(tail -n 3 "$folder/log$n")"
  done
}

# block_first FILE [TEXT]: writes a stackfold.  The first merge by it, of files without TEXT in their names, writes a
# part of its output, prints its process ID into the pipe $begun, and waits.
block_first() {
  begun=$(mktemp -u "$dir/begun.XXXX")  # a process of an earlier test may still have the earlier one
  mkfifo "$begun"
  cat >"$1" <<END
#!/bin/bash
if [ "\$1" = --merge-sorted ] && [[ "\$*" != *'${2:-no text}'* ]] && mkdir '$begun.once' 2>/dev/null; then
  '$PE_TOOLS/stackfold' "\$@" | head -n 20
  echo \$\$ >'$begun'
  exec sleep 1000
fi
exec '$PE_TOOLS/stackfold' "\$@"
END
  chmod +x "$1"
}

# parent_of PID: prints the ID of the process's parent
parent_of() { awk '{ sub(/.*\) /, ""); print $2 }' "/proc/$1/stat"; }
# await_end LABEL PID: requires that the process ends
await_end() {
  for _ in $(seq 1200); do kill -0 "$2" 2>/dev/null || return; sleep 0.05; done
  fail "$1: $(cat "/proc/$2/comm") runs on"
}
