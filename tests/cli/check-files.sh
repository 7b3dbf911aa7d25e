#!/bin/bash
# scripts/dev/check-files reports each way to create a file outside our own code, and accepts harmless lines.
# Usage: check-files.sh CHECK_FILES
check=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
mkdir -p "$dir/libcommon/base/io" "$dir/tools/x" "$dir/share/stackpipe/python/stackpipe" "$dir/scripts"
# check STATUS FILE LINE
check() {
  printf '%s\n' "$3" >"$dir/$2"
  "$check" "$dir" >"$dir/out"
  [ $? = "$1" ] || { echo "FAILED: $2: $3: not $1: $(cat "$dir/out")"; failed=1; }
  rm "$dir/$2"
}
for line in '::open(path, O_WRONLY | O_CREAT, 0666);' 'std::ofstream out(path);' 'auto* f = fopen(path, "w");' '::symlink(a, b);' \
  '#include <fstream>' '::open(".", O_TMPFILE);' '::syscall(SYS_openat, AT_FDCWD, path, flags);' 'fs::copy_file(a, b);'; do
  check 1 tools/x/x.cpp "$line"
done
check 0 tools/x/x.cpp '::open(path, O_RDONLY);  // without O_CREAT'
check 0 tools/x/x.cpp 'Link link(program);'
check 0 libcommon/base/io/new_file.cpp '::open(name, O_CREAT | O_EXCL);'
# shellcheck disable=SC2016 # lines of other scripts
for line in 'echo a >"$result"' 'cat <b >>$summary' 'a | tee "$picture"' 'a 2>/tmp/log' 'mkfifo "$output/pipe"'; do
  check 1 scripts/setup "#!/bin/bash
$line"
done
# shellcheck disable=SC2016
check 0 scripts/setup '#!/bin/bash
draw >"$work/a" 2>&1; a 2>/dev/null; awk "n > 1"; mkfifo "$work/b"'
for line in 'open(path, "w")' 'open(path, mode)' 'open(path, mode="ab")' 'gzip.open(path, "wb")' 'os.open(path, os.O_WRONLY | os.O_CREAT)' \
  'pathlib.Path(path).write_text(text)' 'tempfile.mkstemp()' 'os.mkfifo(path)' 'shutil.copyfile(a, b)' 'os.system(a)' \
  'subprocess.run(a, shell=True)'; do
  check 1 share/stackpipe/python/stackpipe/x.py "$line"
done
check 0 share/stackpipe/python/stackpipe/x.py 'open(path); open(path, "rb"); os.open(path, os.O_RDONLY); gzip.open(path)  # "w"'
check 0 share/stackpipe/python/stackpipe/files.py 'os.open(path, os.O_CREAT | os.O_EXCL)'
exit $failed
