#!/bin/sh
# In a bare Debian with our packages in /packages: installs them, uses what was installed, and removes it.
# scripts/check-deb runs it there.
set -u
failed=0
fail() { echo "FAILED: $*"; failed=1; }
dir=$(mktemp -d)
cd "$dir" || exit 1

apt-get install -y -qq --no-install-recommends /packages/*.deb >"$dir/log" 2>&1 || { cat "$dir/log"; fail 'installation'; exit 1; }
dpkg -V stackpipe libstackpipe-sigprof0 libstackpipe-sigprof-dev || fail 'not as it was packed'

# All that is called has a manual page, and completions for each shell.  Its libraries are found.
names=$(dpkg -L stackpipe | sed -n 's|^/usr/bin/||p')
[ "$(echo "$names" | wc -l)" -ge 11 ] || fail "tools: $names"
for name in $names; do
  version=$("$name" --version) || fail "$name --version: exit $?"
  echo "$version" | grep -qE "^$name [0-9.]+ \([0-9a-f]{12}\)\$" || fail "$version"
  "$name" --help >/dev/null || fail "$name --help: exit $?"
  [ -s "/usr/share/man/man1/$name.1.gz" ] || fail "$name: no manual page"
  bash -c ". '/usr/share/bash-completion/completions/$name' && complete -p '$name'" >/dev/null || fail "$name: no completions for bash"
  grep -q "^#compdef $name\$" "/usr/share/zsh/vendor-completions/_$name" || fail "$name: no completions for zsh"
  grep -q "^complete -c $name " "/usr/share/fish/vendor_completions.d/$name.fish" || fail "$name: no completions for fish"
done
for page in man3/sp_sigprof.3 man3/sp_sigprof_start.3 man5/pe-stream.5 man5/folded.5 man7/stackpipe.7; do
  [ -s "/usr/share/man/$page.gz" ] || fail "no $page"
done

pe-record --check || fail "pe-record --check: exit $?"
# shellcheck disable=SC2016 # of that script
echo 'i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done' >busy
pe-record -F 499 -- sh busy | pe-symbolize | stackfold --annotate >busy.folded || fail "the pipeline: exit $?"
grep -q '^sh;' busy.folded || fail "stacks of sh: $(cat busy.folded)"
flamesvg --colors kind busy.folded >busy.svg || fail "flamesvg: exit $?"
flamegraph line.svg -- sh busy || fail "flamegraph: exit $?"
echo 'a;memcpy 3' | stacktop --hints | grep -q memcpy || fail 'stacktop --hints'
malloctrace -- sh -c : | stackfold --event alloc-count | grep -q '^sh' || fail 'malloctrace'
pe-record --engine signal -F 199 -- sh busy | pe-symbolize | stackfold | grep -q '^sh' || fail 'pe-record --engine signal'
profile_run capture -- sh busy || fail "profile_run: exit $?"
PATH=/usr/libexec/stackpipe/compat:$PATH flamegraph.pl busy.folded >compat.svg || fail "flamegraph.pl: exit $?"
for picture in busy.svg line.svg profiles/*/flame.svg compat.svg; do
  grep -q '</svg>' "$picture" || fail "$picture: no picture"
done

dpkg --purge stackpipe libstackpipe-sigprof-dev libstackpipe-sigprof0 >"$dir/log" 2>&1 || { cat "$dir/log"; fail 'removal'; }
left=$(find / -xdev -ipath '*stackpipe*' ! -path '/proc/*' ! -path '/packages/*' ! -path '/var/lib/apt/*' ! -path '/var/cache/*' ! -path '/source/*')
[ -z "$left" ] || fail "left behind: $left"
exit $failed
