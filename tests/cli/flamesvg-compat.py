#!/usr/bin/env python3
"""flamesvg --compat draws the frames that flamegraph.pl draws: same place, size, colour and tooltip.

usage: flamesvg-compat.py FLAMESVG DATA_FOLDER
       flamesvg-compat.py --update FLAMEGRAPH_PL DATA_FOLDER   (writes what the script draws)

DATA_FOLDER/cases lists the cases, one a line: name, input, options.
"""
import pathlib
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def frames(svg):
    """Returns the picture's size, and then a line for each frame."""
    root = ET.fromstring(svg)
    lines = [f"image {float(root.get('width')):.1f} {float(root.get('height')):.1f}"]
    for group in root.iter():
        title, rect = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        if title is None or rect is None or group.tag == f"{SVG}svg":
            continue
        place = " ".join(f"{float(rect.get(key)):.1f}" for key in ("x", "y", "width", "height"))
        lines.append(f"{place} {rect.get('fill').replace(' ', '')} {title.text}")
    return lines[:1] + sorted(lines[1:])


def draw(command, options, file):
    done = subprocess.run([*command, *options, file], capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} {options} {file}: status {done.returncode}: {done.stderr.decode()}")
    # The script prints characters that XML does not allow; ours does not.
    return frames(re.sub(rb"[\x00-\x08\x0b-\x1f]", b"", done.stdout))


def main():
    update = sys.argv[1] == "--update"
    tool, folder = sys.argv[-2], pathlib.Path(sys.argv[-1])
    failed = compared = 0
    for line in (folder / "cases").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, file, *options = shlex.split(line)
        drawn = draw([tool] if update else [tool, "--compat"], options, folder / file)
        expected = folder / f"{name}.frames"
        if update:
            expected.write_text("\n".join(drawn) + "\n")
            continue
        compared += 1
        wanted = expected.read_text().splitlines()
        if drawn != wanted:
            failed += 1
            print(f"{name}: {len(set(wanted) - set(drawn))} frames missing, {len(set(drawn) - set(wanted))} too many")
            for frame in sorted(set(wanted) - set(drawn))[:3]:
                print("  missing", frame)
            for frame in sorted(set(drawn) - set(wanted))[:3]:
                print("  too many", frame)
    print(f"{compared} compared")
    sys.exit(failed > 0 or (compared == 0 and not update))


main()
