# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# glovebox key: what it prints, what it keeps, who may read it, and what it refuses.

key_state=$TAP_TMP/work/state
key_form='^e2b_[0-9a-f]{40}$'

# key ACTION ARGS…: on this part's state.
key() {
	capture "$GLOVEBOX" key "$@" --state "$key_state" </dev/null
}

# key_refused STATUS REGEX ARGS…: one line, no output, nothing made.
key_refused() {
	local want_status=$1 want=$2

	shift 2
	capture "$GLOVEBOX" key "$@" </dev/null
	is "$STATUS $(wc -l <"$TAP_TMP/err") $OUT" "$want_status 1 " "refused: key $*"
	like "$ERR" "^glovebox: .*$want" '... and says why'
}

# mode, owner (by number) and name of everything in the state directory
key_files() {
	(cd "$key_state" && find . -printf '%m %U %p\n' | LC_ALL=C sort -k 3)
}

# --- what makes no sense ---

key_refused 2 'create, ls, revoke or rotate'
key_refused 2 "does not know 'explode'" explode
key_refused 2 'unknown option --frob' create --frob --state "$key_state"
key_refused 2 'unknown option -x' ls -x --state "$key_state"
key_refused 2 'needs a value' create --state
key_refused 2 "does not take 'more'" create more --state "$key_state"
key_refused 2 'which key' revoke --state "$key_state"
key_refused 2 'which key' rotate --state "$key_state"
key_refused 2 "does not take 'b'" revoke a b --state "$key_state"
key_refused 2 '-o takes' ls -o xml --state "$key_state"
key_refused 2 '--scope everything' create --scope everything --state "$key_state"
key_refused 2 '--scope' create --scope read, --state "$key_state"
key_refused 2 '--state' create --state ''
for key_value in 30 0d -1d 1w 2020-01-01 2027-02-30 tomorrow '' 40000d 99999999999999999999d; do
	key_refused 2 '--expires' create --expires "$key_value" --state "$key_state"
done
ok '... and none of them made anything' test ! -e "$key_state"
for key_value in 'a b' -x key_1 'a/b' "$(head -c 64 /dev/zero | tr '\0' n)"; do
	key_refused 2 'name' create "--name=$key_value" --state "$TAP_TMP/work/names"
done
for key_value in --help -h; do
	capture "$GLOVEBOX" key "$key_value"
	like "$STATUS $OUT" '^0 Usage: glovebox key create' "key $key_value"
done
capture "$GLOVEBOX" key create --help
like "$STATUS $OUT" '^0 Usage: glovebox key create' 'key create --help'

# --- states that are none ---

key_refused 1 'there is no state in' ls --state "$TAP_TMP/work/nowhere"
ok '... and looking makes nothing' test ! -e "$TAP_TMP/work/nowhere"
echo x >file
key_refused 1 'Not a directory|File exists' create --state "$TAP_TMP/work/file"
key_refused 1 'Not a directory|cannot open' ls --state "$TAP_TMP/work/file"
mkdir -m 777 open
chmod 777 open
key_refused 1 'can be written by others' create --state "$TAP_TMP/work/open"
is "$(ls -A open)" '' '... and nothing was put there'
if [ "$(id -u)" -eq 0 ]; then
	mkdir -m 755 other
	chown 65534 other
	key_refused 1 'belongs to another user' create --state "$TAP_TMP/work/other"
	# Nor does anybody else get at root's.
	mkdir -m 711 closed
	install -m 755 "$(dirname -- "$GLOVEBOX")/../client/glovebox-client" .
	capture setpriv --reuid 65534 --regid 65534 --clear-groups ./glovebox-client key create \
		--state "$TAP_TMP/work/closed"
	like "$STATUS $ERR" '^1 glovebox: .*(belongs to another user|Permission denied)' "another user on root's state"
else
	skip "other people's directories" 'needs root to be somebody else'
fi

# --- a key ---

umask_before=$(umask)
umask 000
key create --name first
umask "$umask_before"
key_first=$OUT
like "$STATUS $OUT" "^0 ${key_form#^}" 'create prints a key'
is "$(wc -l <"$TAP_TMP/out") $ERR" '1 ' '... alone, on one line'
key_owner=$(stat -c %u "$key_state/db")
is "$(key_files)" "711 $(id -u) .
700 $key_owner ./db
600 $key_owner ./db/glovebox.db" '... and everything it made is private, whatever the umask'
if [ "$(id -u)" -eq 0 ]; then
	isnt "$key_owner" 0 "... and the database is not root's"
else
	is "$key_owner" "$(id -u)" '... and our own'
fi
unlike "$(grep -rlF "${key_first#e2b_}" "$key_state" || true)" . 'the key is nowhere in the files'

key create --expires 30d --scope read,admin
isnt "$OUT" "$key_first" 'another key is another key'
key_second=$OUT
key create --name first
is "$STATUS $OUT" '1 ' 'a name is given once'
like "$ERR" "name 'first' already" '... and says so'

key ls
is "$STATUS $(wc -l <"$TAP_TMP/out")" '0 3' 'ls shows both'
like "$OUT" '^ID +NAME +SCOPES +STATE' '... in a table'
unlike "$(cat "$TAP_TMP/out" "$TAP_TMP/err")" 'e2b_|[0-9a-f]{40}' '... and neither key'
key ls -o json
is "$(json 'map(.name) | tostring')" '["first",""]' '... as JSON'
is "$(json '.[1] | [.scopes, .state, .revoked, .lastUsed] | tostring')" '[["read","admin"],"good",null,null]' \
	'... with what each is good for'
like "$(json '.[1].expires')" '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T' '... and until when'
unlike "$OUT" 'e2b_' '... and without the key'
key_id=$(json '.[1].id')

key rotate first
like "$STATUS $OUT" "^0 ${key_form#^}" 'rotate prints a key'
isnt "$OUT" "$key_first" '... which is new'
key rotate nobody
is "$STATUS $OUT" '1 ' 'rotate of no key'
key revoke "$key_id"
is "$STATUS $OUT$ERR" '0 ' 'revoke by id'
key revoke "$key_id"
is "$STATUS" 1 '... once'
key ls -o json
is "$(json length)" 1 'a revoked key is not listed'
key ls --all -o json
is "$(json '.[1].state')" revoked '... but with --all'
unlike "$(grep -rlF "${key_second#e2b_}" "$key_state" || true)" . '... and is nowhere in the files either'

# --- other ways to the state ---

printf '[server]\nstate = "%s"\n' "$key_state" >settings.toml
capture "$GLOVEBOX" key ls --config settings.toml -o json
is "$STATUS $(json length)" '0 1' 'the settings know the state'
capture env GLOVEBOX_SERVER_STATE="$key_state" "$GLOVEBOX" key ls -o json
is "$STATUS $(json length)" '0 1' '... and the environment'
capture "$GLOVEBOX" key ls --config nowhere.toml
like "$STATUS $ERR" '^1 glovebox: nowhere.toml: No such file' '... and a file that is not there is an error'
if [ "$(id -u)" -ne 0 ]; then
	capture env -u XDG_DATA_HOME HOME="$TAP_TMP/work/home" "$GLOVEBOX" key create
	is "$STATUS $(stat -c %a home/.local/share/glovebox/db)" '0 700' "a user's state is at home"
fi

# --- many at once ---

key_pids=()
for key_value in 1 2 3 4 5 6 7 8; do
	"$GLOVEBOX" key create --name "many$key_value" --state "$key_state" >"out$key_value" 2>&1 &
	key_pids+=($!)
done
wait "${key_pids[@]}"
is "$(cat out? | grep -cE "$key_form")" 8 'eight at once'
key ls -o json
is "$(json length)" 9 '... are all kept'
for key_value in {1..40}; do # ten times four
	"$GLOVEBOX" key create --state "$TAP_TMP/work/born-$(((key_value - 1) / 4))" >"born$key_value" 2>&1 &
	[ $((key_value % 4)) -ne 0 ] || wait
done
wait
is "$(cat born[1-9] born[1-9][0-9] | grep -cE "$key_form")" 40 'four at once where there was nothing, ten times'

# A service has the database open: root leaves nothing there that its user could not use.
if [ "$(id -u)" -eq 0 ] && command -v sqlite3 >/dev/null; then
	mkfifo commands
	setpriv --reuid "$key_owner" --regid "$key_owner" --clear-groups sqlite3 "$key_state/db/glovebox.db" <commands \
		>/dev/null 2>&1 &
	key_pid=$!
	chmod 711 "$key_state"
	exec 9>commands
	echo 'select count(*) from keys;' >&9
	soon test -e "$key_state/db/glovebox.db-shm" || true
	key create --name beside
	is "$STATUS" 0 'beside a process that has the database open'
	is "$(key_files | grep db/ | cut -d ' ' -f 1,2 | sort -u)" "600 $key_owner" '... every file stays its own'
	exec 9>&-
	wait "$key_pid" || true
else
	skip 'beside a process that has the database open' 'needs root and sqlite3'
fi

# --- the first key ---

key_state=$TAP_TMP/work/new
key bootstrap
is "$STATUS $OUT" '0 ' 'bootstrap prints nothing'
like "$ERR" "kept in $key_state/local.key" '... but where the key is'
unlike "$ERR" 'e2b_' '... and not the key, to what may be a log'
like "$(cat new/local.key)" "$key_form" '... which is there'
is "$(stat -c '%a %U' new/local.key)" "600 $(id -un)" '... for its owner'
key_first=$(cat new/local.key)
key bootstrap
is "$STATUS$ERR $(cat new/local.key)" "0 $key_first" '... and only once'
key ls -o json
is "$(json 'map(.name) | tostring')" '["local"]' "... with the name 'local'"
key rotate local
is "$OUT" "$(cat new/local.key)" 'rotate of the local key changes its file'
isnt "$OUT" "$key_first" '... indeed'
key create --name other
key rotate other
isnt "$OUT" "$(cat new/local.key)" '... and of another does not'
key revoke local
is "$STATUS $(stat -c %s new/local.key)" '0 0' 'revoke of the local key empties it'
key revoke other
key bootstrap
like "$STATUS $(cat new/local.key)" "^0 ${key_form#^}" '... and when there is no key left, there is a first one again'
is "$(find new -name '*-new*')" '' '... and nothing half-done'
if command -v script >/dev/null; then
	key_state=$TAP_TMP/work/terminal
	capture script -qec "$GLOVEBOX key bootstrap --state $key_state" /dev/null
	like "$OUT" "$(cat terminal/local.key)" 'a terminal is shown the first key'
else
	skip 'a terminal is shown the first key' 'no script(1) here'
fi
if [ "$(id -u)" -eq 0 ]; then
	key_state=$TAP_TMP/work/sudo
	SUDO_UID=65534 SUDO_GID=65533 key bootstrap
	is "$(stat -c '%a %u %g' sudo/local.key)" '600 65534 65533' 'behind sudo it is for the person who called'
	capture setpriv --reuid 65534 --regid 65533 --clear-groups cat "$key_state/local.key"
	like "$OUT" "$key_form" '... who can read it'
	capture setpriv --reuid 65532 --regid 65532 --clear-groups cat "$key_state/local.key"
	is "$STATUS$OUT" 1 '... and nobody else'
else
	skip 'behind sudo' 'needs root'
fi

# --- who else sees it ---

if command -v strace >/dev/null && strace -qq -o /dev/null true 2>/dev/null; then
	key_state=$TAP_TMP/work/traced
	capture strace -f -qq -s 400 -e trace=execve -o trace "$GLOVEBOX" key bootstrap --state "$key_state"
	ok 'bootstrap was traced' grep -q glovebox-client trace
	is "$(grep -c "$(cat traced/local.key)" trace)" 0 'no program is given the key'
else
	skip 'no program is given the key' 'no strace here'
fi

# --- damage ---

key_state=$TAP_TMP/work/new
head -c 5000 /dev/urandom >noise
cat noise >new/db/glovebox.db
for key_value in 'ls' 'create' 'bootstrap'; do
	key "$key_value"
	is "$STATUS $OUT" '1 ' "a damaged database: $key_value"
	like "$ERR" 'damaged or not ours' '... says so'
done
ok '... and it is left as it is' cmp noise new/db/glovebox.db
