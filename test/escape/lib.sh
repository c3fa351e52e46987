# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the rows of the escape suite share. A row of the catalogue is a function named after its id
# (FS-01 is FS_01) in rows/GROUP.sh. It attacks from inside a box, looks from outside, and returns 0 when
# the outcome was safe. Its output is shown when it fails. Each row runs in a subshell of its own with
# `set -e`; $ROW_TMP is its scratch directory.
#
#	attack ROW [OPTION…]      runs attack/GROUP.c's attack ROW in a box (glovebox run OPTION…) and fails
#	                          unless it exits 0; what it prints is in $OUT
#	box [OPTION…] -- CMD…     glovebox run; sets $OUT, $ERR, $STATUS
#	box_json [OPTION…] -- …   the same with --json; $JSON is the object, `json .status` reads it
#	breach TEXT               the outcome was not safe: fail with the reason
#	cannot TEXT               this machine cannot show it: skip with the reason
#	host_unchanged FILE…      fails if a file changed since `host_remember FILE…`

: "${GLOVEBOX:?set GLOVEBOX to the glovebox program}"
: "${ATTACKS:?set ATTACKS to the directory of the attack programs}"

breach() {
	printf 'BREACH: %s\n' "$*"
	exit 1
}

cannot() {
	printf '%s\n' "$*" >"$ROW_TMP/.skip"
	exit 77
}

box() {
	STATUS=0
	"$GLOVEBOX" run "$@" >"$ROW_TMP/.out" 2>"$ROW_TMP/.err" </dev/null || STATUS=$?
	OUT=$(tr -d '\0' <"$ROW_TMP/.out")
	ERR=$(tr -d '\0' <"$ROW_TMP/.err")
}

box_json() {
	box --json "$@"
	JSON=$OUT
}

json() {
	jq -r "$@" <<<"$JSON"
}

# The attack programs are one per group, static, and print what they saw. Exit 0: safe; 1: breach.
attack() {
	local row=$1 group=${1%%-*}

	shift
	box "$@" --in "$ATTACKS/attack-$group:attack" -- ./attack "$row"
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "attack $row ended with status $STATUS"
}

host_remember() {
	sha256sum -- "$@" >"$ROW_TMP/.sums"
}

host_unchanged() {
	sha256sum --quiet -c "$ROW_TMP/.sums" || breach "a file of the host changed"
}
