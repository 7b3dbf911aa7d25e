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
  said=$("$2/scripts/dev/source-commit" 2>&1) || fail "$1: exit $?"
  [ "$said" = "$3" ] || fail "$1: '$said', not '$3'"
}
expect_package() {  # WHAT TREE VERSION: of packages for version 1.2
  said=$("$2/scripts/dev/source-commit" --package 1.2) || fail "$1: exit $?"
  [ "$said" = "$head 1767323045 $3" ] || fail "packages of $1: '$said', not '$head 1767323045 $3'"
}
tree=$dir/tree
mkdir -p "$tree/scripts/dev" "$dir/unpacked"
# Our own tree may be an unpacked archive, which has the commit in the script.
# shellcheck disable=SC2016 # git-archive(1) finds it
sed "s/^archived=.*/archived='\$Format:%H %ct %(describe:match=v[0-9]*)\$'/" "$source/scripts/dev/source-commit" >"$tree/scripts/dev/source-commit"
chmod +x "$tree/scripts/dev/source-commit"
cp "$source/.gitattributes" "$tree/"
git init -q "$tree"
git -C "$tree" add .
GIT_COMMITTER_DATE=2026-01-02T03:04:05Z git -C "$tree" commit -qm one
head=$(git -C "$tree" rev-parse HEAD | cut -c 1-12)
expect 'a clone' "$tree" "$head"
git -C "$tree" archive HEAD | tar -x -C "$dir/unpacked"
expect 'an archive' "$dir/unpacked" "$head"
between=1.2~git20260102030405.$head
for unpacked in "$tree" "$dir/unpacked"; do expect_package "$unpacked" "$unpacked" "$between"; done
git -C "$tree" tag -m x v1.2
mkdir "$dir/released"
git -C "$tree" archive HEAD | tar -x -C "$dir/released"
for unpacked in "$tree" "$dir/released"; do expect_package "$unpacked with a tag" "$unpacked" 1.2; done
# git refuses repositories of other users.  Root builds them in containers.
GIT_TEST_ASSUME_DIFFERENT_OWNER=1 expect "another user's clone" "$tree" "$head"
mkdir "$tree/within"
cp -r "$tree/scripts" "$tree/within/"
expect 'within another repository' "$tree/within" ''
expect 'files that were added' "$tree" "$head"
echo >>"$tree/.gitattributes"
expect 'a changed file' "$tree" "$head-dirty"
rm -r "$tree/.git"
expect 'no repository' "$tree" ''
exit $failed
