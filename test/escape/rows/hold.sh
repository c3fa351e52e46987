# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For rows that look at a box from outside at a moment the attack chooses, and rows that run glovebox on a
# host whose own mounts are hostile. On top of watch.sh.
#
#	need_root              skips the row without root
#	hold_box ROW [OPTION…] starts attack ROW in the background and waits until it says "ready"; sets what
#	                       watch_box sets. It goes on when let_go lets it, or when the row ends.
#	let_go                 lets it go on, waits for its end, fails unless it exited with 0
#	on_mounts TEXT         from now on this row runs glovebox in a mount namespace of its own, after the
#	                       shell commands TEXT
#	template DIR           makes an empty root directory: all that a static program needs
#	listing DIR…           all names, modes, owners and sizes below, to compare

need_root() {
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
}

hold_box() {
	local row=$1 group=${1%%-*} i

	shift
	mkfifo "$ROW_TMP/.hold"
	"$GLOVEBOX" run "$@" --stdin - --in "$ATTACKS/attack-$group:attack" -- ./attack "$row" \
		<"$ROW_TMP/.hold" >"$ROW_TMP/.out" 2>"$ROW_TMP/.err" &
	BG=$!
	exec {HOLD}>"$ROW_TMP/.hold"
	watch_box
	for ((i = 0; i < 1200; i++)); do
		if grep -qs '^ready' "$ROW_TMP/.out"; then
			return 0
		fi
		kill -0 "$BG" 2>/dev/null || break
		sleep 0.05
	done
	cat "$ROW_TMP/.out" "$ROW_TMP/.err"
	breach "attack $row did not get ready"
}

let_go() {
	exec {HOLD}>&-
	watch_end
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "the attack ended with status $STATUS"
}

on_mounts() {
	need_root
	cat >"$ROW_TMP/.glovebox" <<-END
		#!/usr/bin/env bash
		set -e
		if [ -z "\${ON_MOUNTS:-}" ]; then
			ON_MOUNTS=1 exec unshare --mount ${2:-} -- "\$0" "\$@"
		fi
		$1
		unset ON_MOUNTS
		exec "$GLOVEBOX" "\$@"
	END
	chmod 755 "$ROW_TMP/.glovebox"
	GLOVEBOX=$ROW_TMP/.glovebox
}

template() {
	mkdir -p -- "$1"
	chmod 755 -- "$1"
}

listing() {
	find "$@" -printf '%p %y %m %U:%G %s %l\n' | sort
}
