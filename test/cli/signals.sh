# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# Signals to glovebox end the box first, then glovebox, and nothing is left.

# Is a process with this in its arguments still there? (The box's processes are the host's too.)
signals_alive() {
	pgrep -f "$1" >/dev/null
}

signals_gone() {
	! signals_alive "$1"
}

# A sleep that nobody else sleeps.
signals_n=0

for signals_name in INT TERM HUP; do
	signals_n=$((signals_n + 1))
	signals_mark="sleep 3$$.$signals_n"
	rm -f up # the last one's
	# A background job of a script ignores SIGINT; env gives it back its meaning.
	# shellcheck disable=SC2086 # two words
	env --default-signal=INT "$GLOVEBOX" run -- sh -c "echo up; trap '' INT TERM HUP; $signals_mark & $signals_mark; :" \
		>up 2>err </dev/null &
	signals_pid=$!
	soon test -s up || :
	ok "SIG$signals_name: the box runs" signals_alive "$signals_mark"
	kill "-$signals_name" "$signals_pid"
	signals_rc=0
	wait "$signals_pid" || signals_rc=$?
	is "$signals_rc" "$((128 + $(kill -l "$signals_name")))" "SIG$signals_name: exit status 128+N"
	not_ok "SIG$signals_name: nothing runs on" signals_alive "$signals_mark"
done

# With --json the result still comes.
"$GLOVEBOX" run --json -- sleep "60.$$" >out 2>err </dev/null &
signals_pid=$!
soon pgrep -fx "sleep 60.$$" || : # in the box: glovebox is not called so
kill -TERM "$signals_pid"
signals_rc=0
wait "$signals_pid" || signals_rc=$?
is "$signals_rc $(jq -r .status out)" '143 signal' 'a signal and --json: the result comes all the same'

# An early end of the reader: as for any program in a pipe.
signals_rc=$(
	set +e
	timeout 20 "$GLOVEBOX" run --output 1G -- yes 2>/dev/null </dev/null | head -c 1 >first
	echo "${PIPESTATUS[0]}"
)
is "$signals_rc $(cat first)" '141 y' 'nobody reads any more: the end, as by SIGPIPE'
signals_rc=$(
	set +e
	{ timeout 20 "$GLOVEBOX" run --output 1G -- sh -c 'yes >&2' 2>&1 >/dev/null </dev/null; echo $? >rc; } | head -c 1 >first
	cat rc
)
is "$signals_rc" 141 '... also on standard error'

# glovebox dies without a word: the box dies with it, and the next start cleans up.
signals_mark="sleep 4$$"
"$GLOVEBOX" run -- sh -c "echo up; $signals_mark" >up 2>err </dev/null &
signals_pid=$!
soon test -s up || :
kill -KILL "$signals_pid"
wait "$signals_pid" 2>/dev/null || :
soon signals_gone "$signals_mark" || :
not_ok 'kill -9: the box dies too' signals_alive "$signals_mark"
box -- true
is "$STATUS" 0 '... and the next run works'

# Many at once do not get into each other's way.
for ((signals_i = 0; signals_i < 12; signals_i++)); do
	"$GLOVEBOX" run -- sh -c "echo $signals_i >f; sleep 0.2; cat f" >"many-$signals_i" 2>&1 </dev/null &
done
wait
is "$(cat many-{0..11} | tr '\n' ' ')" '0 1 2 3 4 5 6 7 8 9 10 11 ' 'twelve at once'
