#!/bin/bash
# What all scripts need: messages that are safe to print, and files that are whole.

# Lines for people: control characters, which steer terminals, those that change the direction of text (U+061C, U+200E,
# U+200F, U+202A to U+202E, U+2066 to U+2069), line separators, and what is no UTF-8 are not shown.
shown_lines() {
  iconv -f UTF-8 -t UTF-8 -c 2>/dev/null | LC_ALL=C tr '\001-\011\013-\037\177' '?' |
    LC_ALL=C sed 's/\xc2[\x80-\x9f]/?/g; s/\xd8\x9c/?/g; s/\xe2\x80[\x8e\x8f\xa8-\xae]/?/g; s/\xe2\x81[\xa6-\xa9]/?/g'
}

# A text in one line.
shown() { printf '%s\n' "${1//$'\n'/?}" | shown_lines; }

# The only way in which scripts create files outside of folders of their own: the command's output is FILE, whole or not
# at all.  As in base/io/new_file.h, it starts with a random name in the folder of FILE and is then renamed: a symbolic link
# to a file is replaced, not followed.  Devices, pipes and open descriptors are written as they are.
write_file() (  # FILE COMMAND [ARGUMENT]...
  file=$1
  shift
  in_place=
  if [ -e "$file" ] && [ ! -f "$file" ]; then in_place=yes; fi
  case $file in /dev/stdout | /dev/stderr | /dev/fd/* | /proc/self/fd/*) in_place=yes ;; esac
  is_usable "$file" || exit
  if [ -n "$in_place" ]; then
    new=$(mktemp)
  else
    new=$(mktemp -- "$(dirname -- "$file")/.new-XXXXXX")
  fi || exit
  trap 'rm -f -- "$new"' EXIT
  "$@" >"$new" || exit
  if [ -n "$in_place" ]; then
    cat -- "$new" >"$file"
  else
    chmod -- =rw "$new" && mv -fT -- "$new" "$file"
  fi
)

# Anybody may have put a pipe there, to hold us up or to read what is not theirs.
is_usable() {  # FILE
  if [ -d "$1" ]; then printf '%s: Is a directory\n' "$(shown "$1")" >&2; return 1; fi
  if [ -p "$1" ] && [ ! -O "$1" ] && [ "$(stat -Lc %u -- "$1")" != 0 ]; then
    printf "%s: is another user's pipe\n" "$(shown "$1")" >&2
    return 1
  fi
}

# Can FILE be written, as far as is known before there is anything to write?
can_be_written() {  # FILE
  local new
  is_usable "$1" || return
  if [ ! -e "$1" ] || [ -f "$1" ]; then
    case $1 in /dev/stdout | /dev/stderr | /dev/fd/* | /proc/self/fd/*) return ;; esac
    new=$(mktemp -- "$(dirname -- "$1")/.new-XXXXXX") && rm -f -- "$new"
  fi
}

# Did every stage of a pipeline succeed whose last one draws?  2 if there was nothing to draw, as flamesvg returns it.
were_drawn() {  # STATUS...
  local stage
  for stage in "${@:1:$#-1}"; do [ "$stage" -eq 0 ] || return 1; done
  case ${*: -1} in 0 | 2) return "${*: -1}" ;; esac
  return 1
}

# Why nothing more can be written into a folder, such as ": No space left on device"; nothing if something can.
why_not_written() {  # FOLDER
  local problem file
  problem=$({ file=$(mktemp -- "$1/.new-XXXXXX") && { head -c 4096 /dev/zero >"$file"; }; status=$?; rm -f -- "$file"; exit "$status"; } 2>&1) ||
    printf ': %s: %s' "$1" "${problem##*: }"
}
