# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Boxes that stay open while the host, or a second box, looks on. For the rows; names are the row's own.
#
#	box_open NAME [OPTION…] -- CMD…   starts a box in the background
#	box_wait NAME TEXT                waits until it has printed a line that contains TEXT
#	box_say NAME TEXT                 gives it a line of standard input
#	box_end NAME                      waits for its end; sets $OUT, $ERR, $STATUS
#	box_pids NAME                     prints the host's numbers of every process in it, the agent first
#
# Whatever is open when the row ends is ended with it.
# shellcheck disable=SC2034  # OUT, ERR and STATUS are read by the rows

declare -A BOX_PID=() BOX_IN=()

boxes_end() {
	local name

	for name in "${!BOX_PID[@]}"; do
		kill "${BOX_PID[$name]}" 2>/dev/null || true
		wait "${BOX_PID[$name]}" 2>/dev/null || true
	done
}

box_open() {
	local name=$1 fd

	shift
	trap boxes_end EXIT
	mkfifo "$ROW_TMP/$name.in"
	exec {fd}<>"$ROW_TMP/$name.in"
	BOX_IN[$name]=$fd
	"$GLOVEBOX" run --timeout 60s --stdin "$ROW_TMP/$name.in" "$@" \
		>"$ROW_TMP/$name.out" 2>"$ROW_TMP/$name.err" </dev/null {fd}>&- &
	BOX_PID[$name]=$!
}

box_wait() {
	local i

	for ((i = 0; i < 2400; i++)); do
		if grep -qsaF -- "$2" "$ROW_TMP/$1.out"; then return 0; fi
		kill -0 "${BOX_PID[$1]}" 2>/dev/null || break
		sleep 0.025
	done
	if grep -qsaF -- "$2" "$ROW_TMP/$1.out"; then return 0; fi
	cat "$ROW_TMP/$1.out" "$ROW_TMP/$1.err"
	breach "box $1 did not get as far as '$2'"
}

box_say() {
	printf '%s\n' "$2" >&"${BOX_IN[$1]}"
}

box_end() {
	local fd=${BOX_IN[$1]}

	exec {fd}>&-
	STATUS=0
	wait "${BOX_PID[$1]}" || STATUS=$?
	unset "BOX_PID[$1]"
	OUT=$(tr -d '\0' <"$ROW_TMP/$1.out") ERR=$(tr -d '\0' <"$ROW_TMP/$1.err")
}

# Below one process, by the parents that the host's /proc names.
descendants() {
	local parents=$2 pid

	while read -r pid; do
		printf '%s\n' "$pid"
		descendants "$pid" "$parents"
	done < <(awk -v parent="$1" '$2 == parent { print $1 }' <<<"$parents")
}

box_pids() {
	local parents

	parents=$({ grep -H '^PPid:' /proc/[0-9]*/status 2>/dev/null || true; } |
		sed -E 's|^/proc/([0-9]+)/status:PPid:[[:space:]]*|\1 |')
	descendants "${BOX_PID[$1]}" "$parents"
}
