#!/bin/bash
# Scripts that build, test and measure do nothing if the command line is wrong, and have --help.
# Argument: the folder of the sources.
set -u
failed=0
for name in setup demo test bench dev/soak dev/check-kernels dev/check-releases dev/in-debian dev/check-tidy dev/make-deb; do
  said=$("$1/scripts/$name" --no-such-option 2>&1 >/dev/null </dev/null); status=$?
  [ $status = 2 ] || { echo "FAILED: $name --no-such-option: status $status: $said"; failed=1; }
  [[ $said == *--no-such-option* ]] || { echo "FAILED: $name --no-such-option: $said"; failed=1; }
  told=$("$1/scripts/$name" --help 2>&1 </dev/null) || { echo "FAILED: $name --help: status $?"; failed=1; }
  [[ ${told,,} == *usage:* ]] || { echo "FAILED: $name --help: $told"; failed=1; }
done
exit $failed
