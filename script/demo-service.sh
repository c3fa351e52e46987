# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# The second half of script/demo, which sources it: a service, a sandbox, notebook cells, and what a sandbox may reach.
# The service has a free port, a state directory of its own and, as root, a network of its own without a way out,
# where a web server of ours stands for the rest of the world.
# shellcheck disable=SC2154 # what the first half has

ALLOWED=192.0.2.7 # reserved for documents: nobody has them
FORBIDDEN=192.0.2.8
START_TRIES=200 # of 50 ms
HELPER=$ROOT/script/demo-service.py
INSIDE=()       # what runs a command in that network
NET_PID='' SERVICE_PID=''

# Runs in the sandbox: the first line of what an address answers, through the proxy that the environment names.
FETCH='import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=5)
except urllib.error.HTTPError as error:
    answer = error
print(answer.read().decode().splitlines()[0])'

# wait_for_line TEXT FILE PID: until a process that still runs has written it.
wait_for_line() {
	local i

	for ((i = 0; i < START_TRIES; i++)); do
		! grep -qs -- "$1" "$2" || return 0
		kill -0 "$3" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# Without one (only root can make it), nothing can be shown to be reached, but much to be refused.
start_network() {
	[ "$(id -u)" -eq 0 ] || return 0
	unshare --net -- "$PYTHON" -I "$HELPER" web "$ALLOWED" >"$TMP/web.log" 2>&1 &
	NET_PID=$!
	if wait_for_line ready "$TMP/web.log" "$NET_PID"; then
		INSIDE=(nsenter -t "$NET_PID" -n --)
	else
		end_service
	fi
}

start_service() {
	local port start

	port=$("${INSIDE[@]}" "$PYTHON" -I -c \
		'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	start=$(now_ms)
	"${INSIDE[@]}" "$GLOVEBOX" serve --state "$TMP/state" --listen "127.0.0.1:$port" \
		--egress-private "$ALLOWED/24" >"$TMP/serve.log" 2>&1 &
	SERVICE_PID=$!
	wait_for_line 'serving at' "$TMP/serve.log" "$SERVICE_PID" || return
	MS=$(($(now_ms) - start))
	E2B_API_URL=http://127.0.0.1:$port
	E2B_API_KEY=$(cat "$TMP/state/local.key")
	export E2B_API_URL E2B_API_KEY
	unset E2B_SANDBOX_URL E2B_DOMAIN # those of somebody else's service
}

# Also when the demo is broken off.
end_service() {
	local pid

	for pid in $SERVICE_PID $NET_PID; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	SERVICE_PID='' NET_PID='' INSIDE=()
}

# client VERB…: talks to the service; sets OUT, ERR, STATUS and MS.
client() {
	local start

	start=$(now_ms)
	STATUS=0
	"${INSIDE[@]}" "$GLOVEBOX" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null || STATUS=$?
	MS=$(($(now_ms) - start))
	OUT=$(cat "$TMP/out") ERR=$(cat "$TMP/err")
}

answered() {
	local line

	while IFS= read -r line; do
		printf '%s  %s(%s ms)%s\n' "$line" "$DIM" "$MS" "$PLAIN"
	done <<<"$OUT"
}

a_sandbox() {
	typed "id=\$(glovebox create --allow $ALLOWED)"
	client create --allow "$ALLOWED"
	ID=$OUT
	answered
	[[ $STATUS:$ID =~ ^0:[a-z0-9]+$ ]] || misbehaved "status $STATUS, $ERR"
	typed "glovebox exec \$id -- sh -c 'echo \$(id -un) on \$(uname -n)'"
	# shellcheck disable=SC2016 # the sandbox's shell expands it
	client exec "$ID" -- sh -c 'echo $(id -un) on $(uname -n)'
	answered
	[[ $OUT == 'user on '* ]] || misbehaved "status $STATUS, $ERR"
}

# What one cell defines, the next one knows, also after one that failed.
cells() {
	local notebook=('rain = {"Bergen": 2495, "Lima": 6, "Lagos": 1626}' 'max(rain, key=rain.get)' 'rain["Oslo"]'
		'f"{sum(rain.values())} mm"') shown

	typed 'glovebox repl --service'
	"$PYTHON" -I "$HELPER" ask "${notebook[@]}" >"$TMP/cells"
	"${INSIDE[@]}" "$GLOVEBOX" repl --service --json <"$TMP/cells" >"$TMP/out" 2>"$TMP/err" || true
	shown=$("$PYTHON" -I "$HELPER" show "$DIM" "$PLAIN" "${notebook[@]}" <"$TMP/out") || true
	printf '%s\n' "$shown"
	[[ $shown == *$'\n      Bergen\n'*'KeyError:'*$'\n      4127 mm' ]] || misbehaved "$(cat "$TMP/err")"
}

# fetch ADDRESS WANTED: what the sandbox gets from there, which must match.
fetch() {
	client exec "$ID" -- python3 -c "$FETCH" "http://$1/"
	if [[ $OUT =~ $2 ]]; then
		printf '  %-28s %s→%s %s %s(%s ms)%s\n' "http://$1/" "$GREEN" "$PLAIN" "$OUT" "$DIM" "$MS" "$PLAIN"
	else
		printf '  %-28s %s→%s %s\n' "http://$1/" "$RED" "$PLAIN" "$OUT$ERR"
		misbehaved "status $STATUS; the answer should match /$2/"
	fi
}

reach() {
	printf "%s# what that sandbox reaches%s\n" "$DIM" "$PLAIN"
	if [ -n "$NET_PID" ]; then
		fetch "$ALLOWED" '^hello from outside$'
	fi
	fetch "$FORBIDDEN" 'no rule allows'
	fetch elsewhere.example 'no rule allows'
}

service() {
	title "A service, for E2B's SDKs and this command line"
	start_network
	typed 'glovebox serve &'
	if ! start_service; then
		misbehaved "the service did not start: $(cat "$TMP/serve.log")"
		end_service
		return
	fi
	OUT="serving at $E2B_API_URL"
	answered
	a_sandbox
	cells
	reach
	typed "glovebox kill \$id"
	client kill "$ID"
	[ "$STATUS" -eq 0 ] || misbehaved "status $STATUS, $ERR"
	typed 'kill %1'
	kill "$SERVICE_PID"
	STATUS=0
	wait "$SERVICE_PID" || STATUS=$?
	[ "$STATUS" -eq 0 ] || misbehaved "the service ended with status $STATUS: $(tail -n 5 "$TMP/serve.log")"
	SERVICE_PID=''
	end_service
}
