#!/bin/sh
# --version of each tool and script prints the version and the commit.  Checks where source trees get the
# commit from.
# Usage: version.sh BUILD_FOLDER SOURCE_FOLDER VERSION NAME...
set -u
build=$1 source=$2 version=$3 failed=0
shift 3
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*"; failed=1; }

# The commit itself is not checked, because the tree may have changed since the build.
commit='( \([0-9a-f]{12}(-dirty)?\))?'
[ ! -e "$source/.git" ] || commit=${commit%\?}
PATH=$build/tools:$PATH
for name; do
  tool=$source/scripts/$name
  [ -e "$tool" ] || tool=$build/tools/$name
  said=$("$tool" --version) || fail "$name: exit $?"
  printf '%s\n' "$said" | grep -qE "^$name $version$commit\$" || fail "$name: $said"
done

# Trees that hold the script: a repository, its archive unpacked outside, and its archive unpacked inside
# another repository.
git() { command git -c user.name=x -c user.email=x@example.org -c init.defaultBranch=main "$@"; }
expect() {  # WHAT TREE COMMIT
  said=$("$2/scripts/dev/source-commit") || fail "$1: exit $?"
  [ "$said" = "$3" ] || fail "$1: '$said', not '$3'"
}
tree=$dir/tree
mkdir -p "$tree/scripts/dev" "$dir/unpacked"
# Our own tree may be an unpacked archive, which has the commit in the script.
# shellcheck disable=SC2016 # git-archive(1) finds it
sed "s/^archived=.*/archived='\$Format:%H\$'/" "$source/scripts/dev/source-commit" >"$tree/scripts/dev/source-commit"
chmod +x "$tree/scripts/dev/source-commit"
cp "$source/.gitattributes" "$tree/"
git init -q "$tree"
git -C "$tree" add .
git -C "$tree" commit -qm one
git -C "$tree" tag v1
head=$(git -C "$tree" rev-parse HEAD | cut -c 1-12)
expect 'a clone' "$tree" "$head"
git -C "$tree" archive HEAD | tar -x -C "$dir/unpacked"
expect 'an archive' "$dir/unpacked" "$head"
mkdir "$tree/within"
cp -r "$tree/scripts" "$tree/within/"
expect 'within another repository' "$tree/within" ''
expect 'files that were added' "$tree" "$head"
echo >>"$tree/.gitattributes"
expect 'a changed file' "$tree" "$head-dirty"
rm -r "$tree/.git"
expect 'no repository' "$tree" ''
exit $failed
