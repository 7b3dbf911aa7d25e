#!/bin/bash
# A library loaded while recording has its names, and counts as a library.
. "$(dirname "$0")/lib.sh"
"$PE_WORKLOAD" "plugin=$PE_PLUGIN" 1 &
pe-record -F 997 -p $! -o "$dir/p.pe" 2>/dev/null
fold "$dir/p.pe" --annotate >"$dir/p.folded"
at_least 'in the plugin, %' 80 "$(share 'plugin_spin_\[l\]' "$dir/p.folded")"
finish
