# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# What goes in and comes out as bytes: standard input, standard output, standard error, the environment.

# --- output ---

box -- sh -c 'echo to-out; echo to-err >&2'
is "$OUT|$ERR" 'to-out|to-err' 'standard output and standard error stay apart'
"$GLOVEBOX" run -- printf 'a\000b\377\376\033[31m\r\n' >out </dev/null
is "$(od -An -tx1 <out | tr -d ' \n')" 610062fffe1b5b33316d0d0a 'into a pipe or file every byte goes as it is'
"$GLOVEBOX" run -- sh -c 'printf "a\000\377" >&2' 2>out </dev/null
is "$(od -An -tx1 <out | tr -d ' \n')" 6100ff '... also on standard error'

# A million bytes without a pattern; both streams, in writes of every size.
head -c 900000 /dev/urandom >data
"$GLOVEBOX" run --in data -- cat data >out </dev/null
ok '900,000 bytes arrive as they were sent' cmp data out
"$GLOVEBOX" run --in data -- sh -c 'cat data >&2' 2>out </dev/null
ok '... also on standard error' cmp data out
head -c 400000 data >half
"$GLOVEBOX" run --in half -- sh -c 'cat half & cat half >&2; wait' >out 2>err </dev/null
ok 'two streams at once: standard output' cmp half out
ok 'two streams at once: standard error' cmp half err
head -c 3000 data >small
"$GLOVEBOX" run --in small -- dd if=small bs=1 status=none >out </dev/null
ok '3,000 writes of one byte' cmp small out
box_json --in data -- cat data
json .stdout_base64 | base64 -d >out
ok 'the result has every byte as well' cmp data out
"$GLOVEBOX" run --output 2M --in data -- sh -c 'cat data; sleep 0.1; cat data' >out </dev/null
is "$(sha256sum <out)" "$(cat data data | sha256sum)" 'more than a default with --output'
(sleep 0.5; cat) < <("$GLOVEBOX" run --in data -- cat data </dev/null) >out
ok 'a slow reader loses nothing' cmp data out
"$GLOVEBOX" run --output 1000 --in data -- cat data >out 2>/dev/null </dev/null || streams_rc=$?
is "$streams_rc $(stat -c %s out)" '137 1000' 'the limit is exact'
ok '... and what came is the beginning' cmp -n 1000 data out
box -- sh -c 'echo before; (sleep 0.2; echo from a grandchild) & exec >&- 2>&-; wait'
is "$OUT" $'before\nfrom a grandchild' 'output of a grandchild while the command lives'
box -- true
is "$OUT$ERR" '' 'no output at all'

# --- descriptors that are closed on our side ---

"$GLOVEBOX" run -- echo hi >&- </dev/null 2>err && streams_rc=0 || streams_rc=$?
like "$streams_rc" '^(0|125)$' 'without a standard output nothing breaks'
is "$("$GLOVEBOX" run -- echo hi <&-)" hi '... nor without a standard input'
"$GLOVEBOX" run -- sh -c 'echo e >&2; echo o' >out 2>&- </dev/null || :
is "$(cat out)" o '... nor without a standard error'

# --- input ---

echo given >input
box -- cat
is "$OUT" '' 'standard input is empty by default'
is "$(echo ours | "$GLOVEBOX" run -- cat)" '' '... even when ours is not'
box --stdin input -- cat
is "$OUT" given '--stdin FILE'
is "$(echo ours | "$GLOVEBOX" run --stdin - -- cat)" ours '--stdin - is our own'
head -c 5000000 /dev/urandom >data
is "$("$GLOVEBOX" run --stdin data -- sha256sum)" "$(sha256sum <data)" '5 MB from a file'
is "$("$GLOVEBOX" run --stdin - -- sha256sum < <(cat data))" "$(sha256sum <data)" '5 MB through a pipe'
is "$( (printf a; sleep 0.3; printf b) | "$GLOVEBOX" run --stdin - -- cat)" ab 'input that comes slowly'
box --stdin data -- sh -c 'head -c 10 | wc -c'
is "$STATUS $OUT" '0 10' 'input that is not read is no error'
box --stdin data --timeout 500ms -- sleep 60
is "$STATUS" 124 '... nor does it keep the clock from being looked at'
is "$( (sleep 30 & echo x) | timeout 20 "$GLOVEBOX" run --stdin - -- head -n 1)" x \
	'a program that has enough ends, though our input stays open'
box --stdin /dev/null -- cat
is "$STATUS$OUT" 0 '--stdin /dev/null'

# --- the environment ---

HOST_SECRET=1 LD_LIBRARY_PATH=/nowhere PYTHONPATH=/nowhere capture "$GLOVEBOX" run -- /usr/bin/env </dev/null
is "$(cut -d= -f1 <"$TAP_TMP/out" | LC_ALL=C sort | tr '\n' ' ')" \
	'GOMAXPROCS HOME LANG LOGNAME OMP_NUM_THREADS PATH SHELL TMPDIR USER ' 'nothing of our environment gets in'
is "$(grep -E '^(HOME|USER)=' <<<"$OUT" | sort | tr '\n' ' ')" 'HOME=/home/user USER=user ' '... but its own'
box --env A=1 --env 'B=two words=x' --env C= --env HOME=/tmp --env A=2 -- \
	sh -c 'printf "%s|" "$A" "$B" "${C-unset}" "$HOME"'
is "$OUT" '2|two words=x||/tmp|' '--env sets, replaces, and the last one counts'
box --env $'N=new\nline' -- sh -c 'printf %s "$N"'
is "$OUT" $'new\nline' '... any value'
box --env LD_PRELOAD=/no/such/library.so -- /bin/echo hi
is "$STATUS $OUT" '0 hi' 'LD_PRELOAD reaches the program'
like "$ERR" 'library.so.*cannot be preloaded' '... its own loader says so'
is "$(grep -c . <<<"$ERR")" 1 '... and nobody else of ours does'

# --- where it runs ---

box -- sh -c 'pwd; id -un; id -u; hostname; ls -A; umask; ulimit -c'
like "$OUT" $'^/home/user\nuser\n1000\n[a-z]+\n(out\n)?0022\n(0|1)$' 'as the user of the box, at home, with nothing there'
isnt "$("$GLOVEBOX" run -- hostname)" "$(hostname)" '... under a name of its own'
box -- sh -c 'ls /proc/self/fd | wc -l'
is "$OUT" 4 'three descriptors (and the one that lists them)'
