#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/embed: what it takes, and when its key changes.
set -euo pipefail
HERE=$(cd -- "$(dirname -- "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$HERE/../tap.sh"
EMBED=$HERE/../../tools/embed

# embed NAME=PATH…: the key, or what it said.
embed() {
	if "$EMBED" out.c out.d "$@" 2>err; then
		sed -n 's/^const uint64_t embedded_key = UINT64_C(0x\(.*\));$/\1/p' out.c
	else
		cat err
	fi
}

# names: those in the table.
names() {
	sed -n 's/^\t{ "\([^"]*\)", \(0[0-7]*\), .*/\1 \2/p' out.c
}

plan_later
cd "$TAP_TMP"
mkdir -p k/sub k/.hidden k/__pycache__
echo one >k/a.py
echo two >k/sub/b.mjs
touch k/README.md k/c.py~ k/.d.py k/.hidden/e.py k/__pycache__/a.cpython-311.pyc
FIRST=$(embed "opt/k=$PWD/k")
like "$FIRST" '^[0-9a-f]{16}$' 'a key'
is "$(names)" $'opt/k/a.py 0644\nopt/k/sub/b.mjs 0644' 'the programs of a directory, and nothing else that lies there'
like "$(cat out.d)" "out.c: .*/k .*/k/a.py .*/k/sub .*/k/sub/b.mjs" 'the build knows what was read, directories too'
is "$(embed "opt/k=$PWD/k")" "$FIRST" 'the same again'
echo three >k/a.py
SECOND=$(embed "opt/k=$PWD/k")
isnt "$SECOND" "$FIRST" 'other bytes, another key'
chmod +x k/a.py
THIRD=$(embed "opt/k=$PWD/k")
isnt "$THIRD" "$SECOND" 'another mode, another key'
like "$(names)" '^opt/k/a.py 0755' '... and it is executable'
isnt "$(embed "opt/l=$PWD/k")" "$THIRD" 'another name, another key'
like "$(embed)" '^[0-9a-f]{16}$' 'nothing to carry is fine'
printf 'a\0b"' >odd.bin
embed "opt/odd=$PWD/odd.bin" >key
"${CC:-cc}" -D_GNU_SOURCE -I "$HERE/../../src" -c -o out.o out.c
pass 'it compiles'
for bad in "x=$PWD/k/a.py" "../x/y=$PWD/k/a.py" "a/../b=$PWD/k/a.py" "/a/b=$PWD/k/a.py" 'a/b=/nonexistent' 'a/b'; do
	like "$(embed "$bad")" '^tools/embed: ' "refused: ${bad%%=*}"
done
finish
