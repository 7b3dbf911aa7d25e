#!/bin/bash
# A library that is loaded during the recording has its symbols, and is marked as a library.
. "$(dirname "$0")/../lib.sh"
load_while "$dir/p.pe" pe-record -F 997 2>/dev/null
fold "$dir/p.pe" --annotate >"$dir/p.folded"
at_least 'in the plugin, %' 80 "$(share 'plugin_spin_\[l\]' "$dir/p.folded")"
finish
