# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# Network of local runs: none unless asked for, and then what was asked for. The runs are in a laboratory
# (test/net/lab.py): a network namespace without a way out, with servers of our own.

# --- what is typed --------------------------------------------------------------------------------

box_json -- env
is "$(json '[.network, .isolation.network] | tostring')" '[null,"none"]' 'without an option there is no network'
unlike "$(json .stdout)" '_proxy|_PROXY' '... and no variable speaks of a proxy'

# refused WANT ARGS…: a request that makes no sense is one line and status 2.
net_refused() {
	local want=$1

	shift
	box "$@" -- /bin/true
	is "$STATUS" 2 "$*: refused"
	like "$ERR" "^glovebox: [^
]*$want" '... and says why'
}

net_refused "--allow 'exa mple'|--allow exa mple" --allow 'exa mple'
net_refused '--allow http://web.example' --allow 'http://web.example'
net_refused 'web.example:99999' --allow web.example:99999
net_refused '--allow ' --allow ''
net_refused 'no rule set .nosuch' --allow-set nosuch
net_refused 'not the name of a rule set' --allow-set ../etc
net_refused 'give none, or learn' --net all
net_refused 'contradict' --net none --allow web.example
net_refused 'leave out --allow' --net learn --allow web.example
net_refused 'for --net learn' --learn-to rules
net_refused 'cannot write --learn-to' --net learn --learn-to /nonexistent/rules
net_refused 'give one' --allow-private 10.0.0.0/8
net_refused '--allow-private web.example' --allow-private web.example --allow web.example
GLOVEBOX_EGRESS_ENABLED=false net_refused 'egress.enabled is off' --allow web.example

printf -- '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n' >key.pem
GLOVEBOX_EGRESS_CA_BUNDLE=$PWD/key.pem net_refused 'line 1 is not part of a certificate' --allow web.example
GLOVEBOX_EGRESS_CA_BUNDLE=$PWD/none.pem net_refused 'cannot read .*none.pem' --allow web.example
box --service --local --allow web.example --net none -- /bin/true
is "$STATUS" 2 'nothing is run when the options contradict'

# --- the laboratory ---------------------------------------------------------------------------------

# It lasts as long as somebody can write to its standard input: until net_lab_stop, or until we die.
net_lab_start() {
	mkfifo lab
	exec {NET_LAB}> >(exec /usr/bin/python3 "$HERE/../net/lab.py" \
		sh -c 'printf "%s %s %s %s\n" "$$" "$LAB_CA" "$LAB_DNS" "$LAB_CONTROL" >lab; exec cat >/dev/null' >lab.out 2>&1)
	NET_LAB_PID=$!
	read -r -t 60 LAB_PID LAB_CA LAB_DNS LAB_CONTROL <>lab || return 1
	[ -n "$LAB_CONTROL" ]
}

net_lab_stop() {
	exec {NET_LAB}>&-
	soon test ! -d "/proc/$NET_LAB_PID" || true
}

# net ARGS…: glovebox run there.
net() {
	capture nsenter --net="/proc/$LAB_PID/ns/net" env GLOVEBOX_EGRESS_RESOLVER="$LAB_DNS" GLOVEBOX_EGRESS_SETS="$PWD/sets" \
		GLOVEBOX_EGRESS_CA_BUNDLE="$LAB_CA" "$GLOVEBOX" run --local "$@" </dev/null {NET_LAB}>&-
}

net_json() {
	net --json "$@"
}

# lab_record NAME ADDRESS: a name of the laboratory's DNS.
lab_record() {
	/usr/bin/python3 - "$LAB_CONTROL" "$1" "$2" <<-'EOF'
		import json, socket, sys
		control = socket.socket(socket.AF_UNIX)
		control.connect(sys.argv[1])
		control.sendall(json.dumps({"do": "records", "records": {sys.argv[2]: {"A": [sys.argv[3]]}}}).encode() + b"\n")
		answer = json.loads(control.makefile().readline())
		sys.exit("error" in answer)
	EOF
}

if [ "$(id -u)" -ne 0 ]; then
	skip 'network of local runs' 'needs root, for network namespaces of its own'
	return 0
fi
mkdir sets
if ! net_lab_start; then
	fail 'the laboratory starts' "$(cat lab.out)"
	net_lab_stop
	return 0
fi

# --- what is allowed, and nothing else ----------------------------------------------------------------

net --allow web.example -- curl -sS http://web.example/hello
is "$OUT" 'hello from web.example' 'an allowed host, in the clear'
is "$ERR" '' '... and nothing is said about it'
net --allow web.example -- curl -sS https://web.example/hello
is "$OUT" 'hello from web.example' '... with TLS'
net --allow '*.wild.example' -- curl -sS https://some.wild.example/hello
is "$OUT" 'hello from some.wild.example' 'everything below a name'
net --allow web.example:8080 -- curl -sS http://web.example:8080/hello
is "$OUT" 'hello from web.example:8080' 'another port'
net --allow 45.67.90.10 -- curl -sS http://45.67.90.10/hello
is "$OUT" 'hello from 45.67.90.10' 'an address'

net_json --allow web.example -- curl -sS http://web.example/hello
is "$(json '[.network | .allowed, .refused, .failed, .missed, (.bytes_down > 20), .catches | tostring] | join(" ")')" \
	'1 0 0 0 true true' 'the result counts it'
# Its end may be seen before that of the connection, which then ends with it.
is "$(json -c '[.network.connections[] | select(.how != "dns") | [.name, .address, .port, .how, .verdict,
	(.reason | IN("allowed", "sandbox_ended")), .open]]')" \
	'[["web.example","45.67.90.10",80,"http","allowed",true,false]]' '... and names it'
is "$(json .isolation.network)" listed '... and the isolation says so'

net --allow web.example -- curl -fsS --max-time 10 http://other.example/hello
isnt "$STATUS" 0 'another host is refused'
like "$ERR" 'glovebox: the network refused [^
]*other.example[^
]*no rule allows it[^
]*--allow other.example' '... with a hint how to allow it'
net -v --allow web.example -- sh -c 'curl -fsS --max-time 10 http://other.example/hello; curl -sS http://web.example/hello'
is "$STATUS" 0 'a program that goes on'
like "$ERR" 'glovebox: refused: other.example:80, no rule allows it; to allow it: --allow other.example' \
	'... with -v, is told of as it happens'
unlike "$ERR" 'the network refused' '... and there is no hint when it succeeded'
like "$ERR" 'network: 1 allowed, 1 refused, 0 failed' '... with the sums at the end'
net_json --allow web.example -- curl -fsS --max-time 10 https://other.example/hello
is "$(json '[.network.refused > 0, (.network.connections | map(select(.verdict == "refused"))[0] | .name, .port, .reason)] | tostring')" \
	'[true,"other.example",443,"not_allowed"]' 'refusals are in the result'
is "$ERR" '' '... and not on standard error'
net_json --allow web.example -- curl -fsS --max-time 10 http://web.example:8080/hello
is "$(json '.network.connections | map(select(.verdict == "refused"))[0].reason')" port_not_allowed 'another port is refused'

net --allow web.example -- env -i /usr/bin/curl -fsS --max-time 10 http://other.example/hello
like "$ERR" 'the last other.example: no rule allows it; to allow it: --allow other.example$' 'a name that is not looked up'

# Programs that know of no proxy, and protocols that it does not speak.
net --allow web.example -- env -i PATH=/usr/bin:/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt curl -sS https://web.example/hello
is "$OUT" 'hello from web.example' 'a program that knows of no proxy'
net --allow web.example:5432 -- python3 -c '
import socket
s = socket.create_connection(("web.example", 5432), 10)
s.sendall(b"ping\n"); print(s.recv(4).decode())'
is "$OUT" ping 'a protocol that is neither HTTP nor TLS'

# --- variables, certificates --------------------------------------------------------------------------

net --allow web.example -- sh -c 'echo $http_proxy $HTTPS_PROXY $ALL_PROXY $NO_PROXY'
is "$OUT" 'http://127.0.0.1:3128 http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1' 'the proxy variables'
net --allow web.example --env HTTPS_PROXY=http://mine:1 -- sh -c 'echo $HTTPS_PROXY ${https_proxy-unset}'
is "$OUT" 'http://mine:1 unset' '... but one that is given wins, in both spellings'

net_certificates() {
	local name=$1

	shift
	if ! command -v "$1" >/dev/null; then
		skip "$name trusts the machine's certificates" "no $1 here"
		return
	fi
	net --memory 1G --pids 256 --allow web.example --allow git.example -- "$@"
	is "$STATUS:$OUT" '0:hello from web.example' "$name trusts the machine's certificates"
	[ "$STATUS" -eq 0 ] || diag "$ERR"
}

net_certificates Python python3 -c 'import urllib.request as u; print(u.urlopen("https://web.example/hello").read().decode().strip())'
net_certificates Node node -e '
require("https").get({ host: "web.example", path: "/hello" }, r => r.on("data", d => console.log(String(d).trim())))'
if /usr/bin/python3 -c 'import requests' 2>/dev/null; then
	net_certificates 'Python requests' /usr/bin/python3 -c 'import requests; print(requests.get("https://web.example/hello").text.strip())'
fi
cat >Get.java <<'EOF'
public class Get {
	public static void main(String[] a) throws Exception {
		System.out.print(new String(new java.net.URL("https://web.example/hello").openStream().readAllBytes()));
	}
}
EOF
if command -v java keytool >/dev/null; then
	net --memory 1G --pids 256 --timeout 60s --cpu-time 60s --allow web.example --in Get.java -- java Get.java
	is "$STATUS:$OUT" '0:hello from web.example' "Java trusts the machine's certificates"
	[ "$STATUS" -eq 0 ] || diag "$ERR"
else
	skip "Java trusts the machine's certificates" 'no java and keytool here'
fi
net --allow git.example -- git clone -q https://git.example/git/thing.git copy
is "$STATUS" 0 'git too'
[ "$STATUS" -eq 0 ] || diag "$ERR"
LAB_CA='' net --allow web.example -- curl -sS https://web.example/hello
isnt "$STATUS" 0 'without the bundle nobody trusts them'

# --- private addresses ------------------------------------------------------------------------------------

lab_record inner.example 10.1.2.3
net --allow inner.example -- curl -fsS --max-time 10 http://inner.example/hello
isnt "$STATUS" 0 'an allowed name at a private address'
like "$ERR" 'inner.example.*private, local or reserved' '... is refused, and says why'
net --allow inner.example --allow-private 10.1.0.0/16 -- curl -sS http://inner.example/hello
is "$OUT" 'hello from inner.example' '... unless the range is opened'
GLOVEBOX_EGRESS_PRIVATE=10.1.2.3 net --allow inner.example -- curl -sS http://inner.example/hello
is "$OUT" 'hello from inner.example' '... or the settings do'
GLOVEBOX_EGRESS_DENY=inner.example net --allow inner.example --allow-private 10.0.0.0/8 -- \
	curl -fsS --max-time 10 http://inner.example/hello
isnt "$STATUS" 0 'what the settings deny stays denied'

# --- learning ---------------------------------------------------------------------------------------------

net_json --net learn -- sh -c 'curl -sS https://web.example/hello http://other.example:8080/hello http://inner.example/hello'
is "$(json '.stdout | split("\n") | length')" 4 'learning lets everything through'
is "$(json -c .learned)" \
	'{"rules":["inner.example:80","other.example:8080","web.example:443"],"private":["10.1.2.3/32"],"complete":true}' \
	'... and tells the rules'
is "$(json .isolation.network)" all '... and the isolation says so'
net --net learn --learn-to learned -- sh -c 'curl -sS https://web.example/hello http://inner.example/hello'
is "$(cat learned)" $'inner.example:80\nweb.example:443\nprivate 10.1.2.3/32' '... also into a file'
is "$ERR" '' '... and then not on standard error'
net --net learn -- curl -sS https://web.example/hello
like "$ERR" 'web.example:443.*glovebox egress set save NAME web.example:443' 'the command that keeps it is shown'
net --net learn -- /bin/true
like "$ERR" 'nothing was learned' 'nothing to learn'

capture env GLOVEBOX_EGRESS_SETS="$PWD/sets" "$GLOVEBOX" egress set save mine - <learned
is "$STATUS" 0 'what was learned can be kept'
[ "$STATUS" -eq 0 ] || diag "$ERR"
net --allow-set mine -- sh -c 'curl -sS https://web.example/hello http://inner.example/hello'
is "$OUT" $'hello from web.example\nhello from inner.example' '... and allows what was learned'
net --allow-set mine -- curl -fsS --max-time 10 http://other.example/hello
isnt "$STATUS" 0 '... and nothing else'

# --- an ordinary user ---------------------------------------------------------------------------------------

net_egress=$(dirname -- "$GLOVEBOX")/../egress/glovebox-egress
if [ ! -x "$net_egress" ]; then
	skip 'an ordinary user' 'glovebox is not in a build tree'
elif ! setpriv --reuid 65534 --clear-groups unshare --user true 2>/dev/null; then
	skip 'an ordinary user' 'users may not make user namespaces here'
else
	mkdir -p user/egress user/home
	install_glovebox user/cli
	install -m 755 "$net_egress" user/egress/
	install -m 644 "$LAB_CA" user/ca.pem
	chown 54321:54321 user/home
	# net_user ARGS…: as somebody who has nothing but his own id.
	net_user() {
		capture nsenter --net="/proc/$LAB_PID/ns/net" setpriv --reuid 54321 --regid 54321 --clear-groups \
			env -i PATH=/usr/bin:/bin HOME="$PWD/user/home" GLOVEBOX_EGRESS_RESOLVER="$LAB_DNS" \
			GLOVEBOX_EGRESS_CA_BUNDLE="$PWD/user/ca.pem" "$PWD/user/cli/glovebox" run --local "$@" </dev/null {NET_LAB}>&-
	}
	net_user --allow web.example -- curl -sS https://web.example/hello
	is "$OUT" 'hello from web.example' 'an ordinary user has network too'
	[ "$STATUS" -eq 0 ] || diag "$ERR"
	net_user --allow web.example -- curl -fsS --max-time 10 http://other.example/hello
	isnt "$STATUS" 0 '... what he allowed, and nothing else'
	net_user --json --net learn -- env -i /usr/bin/curl -sS http://web.example/hello
	is "$(json -c .learned.rules)" '["web.example:80"]' '... and can learn'
fi

# --- the end ----------------------------------------------------------------------------------------------

# egress_of PID: the egress that this glovebox started.
egress_of() {
	ps -o pid= -o comm= --ppid "$1" | awk '$2 ~ /^glovebox-egres/ { print $1 }'
}

# start_run COMMAND…: one in the background that has said "up"; sets RUN_PID and EGRESS_PID.
start_run() {
	rm -f run.out # the "up" of the one before
	nsenter --net="/proc/$LAB_PID/ns/net" env GLOVEBOX_EGRESS_RESOLVER="$LAB_DNS" "$GLOVEBOX" run --allow web.example \
		--timeout 60s "$@" >run.out 2>run.err </dev/null {NET_LAB}>&- &
	RUN_PID=$!
	soon grep -qx up run.out || true
	EGRESS_PID=$(egress_of "$RUN_PID")
}

start_run -- sh -c 'echo up; sleep 50'
isnt "$EGRESS_PID" '' 'egress runs beside'
kill -KILL "$RUN_PID" || true
wait "$RUN_PID" 2>/dev/null || true
soon test ! -d "/proc/$EGRESS_PID" || true
not_ok '... and is gone when the run is killed' test -d "/proc/$EGRESS_PID"

start_run -- sh -c 'echo up; sleep 10; curl -fsS --max-time 5 http://web.example/hello && echo reached'
kill -KILL "${EGRESS_PID:-$RUN_PID}" || true
wait "$RUN_PID" || true
unlike "$(cat run.out)" reached 'without egress nothing gets out'
like "$(cat run.err)" 'glovebox-egress died' '... and it is said'

net_lab_stop
