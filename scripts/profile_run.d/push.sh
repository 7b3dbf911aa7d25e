#!/bin/bash
# Sending what watch records to a server that keeps profiles: profile-push sends from a folder, beside the recording,
# which never waits for it.
# shellcheck disable=SC2154 # names of other parts of the script

push=()  # profile-push that puts a profile into the spool; none: nothing is sent
sender=()  # and the one that sends
pusher=  # a pipe to that; it ends when the pipe does, also when this script is killed
pusher_pid=
unspooled=0

# What both sides of profile-push are called with is checked before anything is recorded.
start_push() {  # FOLDER
  if [ -z "$push_url" ]; then
    [ -z "$push_name${push_labels[*]}$push_tenant$token_file$ca_file$spool_size$insecure_http" ] ||
      usage_error 'watch: says how to send profiles, but not where: --push is missing'
    return
  fi
  need profile-push --push
  local status=0 spool=(--spool="$1/spool" ${spool_size:+--spool-size="$spool_size"})
  push=(profile-push "${spool[@]}" --name="${push_name:-$(push_name_of)}" --rate="$rate" "${push_labels[@]/#/--label=}")
  sender=(profile-push "${spool[@]}" --url="$push_url" --follow ${token_file:+--token-file="$token_file"}
    ${ca_file:+--ca-file="$ca_file"} ${push_tenant:+--tenant="$push_tenant"} ${insecure_http:+--insecure-http})
  "${push[@]}" --dry-run && "${sender[@]}" --dry-run || status=$?
  [ "$status" -eq 0 ] || exit "$status"
  start_sender
}

# What Pyroscope calls the application, if the user does not say: the process's name.
push_name_of() {
  local name=''
  [ -z "$pid" ] || read -r name 2>/dev/null <"/proc/$pid/comm"
  name=${name//[^A-Za-z0-9_.\/-]/_}
  printf '%s' "${name:-stackpipe}"
}

# Ctrl-C is for the recorder; the sender goes on until the last profile is there.  It must not keep the folder.
start_sender() {
  [ -z "$pusher" ] || exec {pusher}>&-
  exec {pusher}> >(trap '' INT TERM HUP; exec {lock}<&- "${sender[@]}" >/dev/null)
  pusher_pid=$!
}

# Puts a chunk's profile into the spool, from where it is sent.
push_chunk() {  # NAMED-STREAM FROM UNTIL SAID
  [ ${#push[@]} -gt 0 ] || return 0
  stackfold --to pprof -- "$1" 2>/dev/null | "${push[@]}" --from "$2" --until "$3" 2>"$4"
  if [ "${PIPESTATUS[1]}" -ne 0 ]; then unspooled=$((unspooled + 1)); fi
  pass_messages "$4"
  kill -0 "$pusher_pid" 2>/dev/null || start_sender
}

# The sender tells what it has sent, and what not.
end_push() {
  [ -n "$pusher" ] || return 0
  exec {pusher}>&-
  pusher=
  local status=0
  wait "$pusher_pid" || status=$?
  [ "$status" -eq 0 ] || say "--push: not everything was sent (profile-push: exit status $status)"
  [ "$unspooled" -eq 0 ] || say "--push: $unspooled of the profiles could not be put into the spool"
}
