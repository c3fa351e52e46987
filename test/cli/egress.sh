# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# glovebox egress: rule sets as files, and what they allow.

# egress ARGS…: with sets of our own; what is on standard input stays.
egress() {
	capture env HOME="$TAP_TMP/work" XDG_CONFIG_HOME="$TAP_TMP/work/config" GLOVEBOX_EGRESS_SETS="$TAP_TMP/work/sets" \
		"${EGRESS_ENV[@]}" "$GLOVEBOX" egress "$@"
}
EGRESS_ENV=()

# egress_check STATUS WORD ARGS…: the decision, by its word.
egress_check() {
	local want=$1 word=$2

	shift 2
	egress check --json "$@" </dev/null
	is "$STATUS $(json .reason)" "$want $word" "check $*: $word"
}

for egress_value in '' frob set 'set frob' 'set ls x' 'set ls --force' 'set show' 'set show A' 'set show a/b' 'set show ..' \
	'set save x' 'set save x *' 'set save x a.example:0' 'set save X a.example' 'set rm' 'set rm a b' 'check' 'check a' 'check a:0' \
	'check a:65536' 'check 127.1:80' 'check 0x7f000001:80' 'check a:80 b:80' 'check a..b:80' 'check ::1:80' 'check [1.2.3.4]:80' \
	'check a:80 --allow *' 'check a:80 --allow' 'check a:80 --allow-set none' 'check a:80 --frob' 'set ls --allow a' \
	'set ls --config nowhere.toml'; do
	read -r -a egress_words <<<"$egress_value"
	egress "${egress_words[@]}" </dev/null
	is "$STATUS $(wc -l <"$TAP_TMP/err") $OUT" '2 1 ' "refused: egress $egress_value"
done
egress --help </dev/null
like "$STATUS $OUT" '^0 Usage: glovebox egress set ls' 'egress --help'

# --- sets ---

egress set ls </dev/null
is "$STATUS $OUT$ERR" '0 ' 'no directory: no sets'
ok 'nothing was made' test ! -e sets
egress set save mirror Packages.example. '*.cdn.example:443' 'private 10.1.0.0/16' 'deny evil.cdn.example' </dev/null
is "$STATUS $OUT$ERR" '0 ' 'a set is saved'
is "$(stat -c %a sets/mirror.rules) $(ls -A sets)" '644 mirror.rules' '... as one file'
egress set show mirror </dev/null
is "$OUT" $'Packages.example.\n*.cdn.example:443\nprivate 10.1.0.0/16\ndeny evil.cdn.example' '... and shown as it was written'
egress set show mirror --json </dev/null
is "$(json -c .rules)" '["packages.example","*.cdn.example:443","private 10.1.0.0/16","deny evil.cdn.example:*"]' '... and as it is understood'
egress set save mirror other.example </dev/null
like "$STATUS $ERR" '^125 .*--force' 'it is not replaced unless one says so'
is "$(head -n 1 sets/mirror.rules)" Packages.example. '... and is what it was'
egress set save lines - <<<$'# from a file\n\nother.example # one'
is "$STATUS $ERR" '0 ' 'rules from standard input'
egress set ls </dev/null
is "$OUT" $'lines\t1\tno\nmirror\t4\tno' 'they are listed'
egress set ls --json </dev/null
is "$(json -c 'map([.name, .count, .default])')" '[["lines",1,false],["mirror",4,false]]' '... as JSON too'
egress set save lines - --force <<<$'a.example\nnot a rule'
like "$STATUS $ERR" '^2 glovebox: line 2: "not a rule" is not a rule' 'a wrong rule is named'
is "$(head -n 1 sets/lines.rules)" '# from a file' '... and the old set stays'
egress set save lines - --force <<<a.example
is "$STATUS $(cat sets/lines.rules)" '0 a.example' 'replaced when one says so'
egress set save big - < <(head -c 70000 /dev/zero | tr '\0' '#')
like "$STATUS $ERR" '^125 .*cannot read the rules' 'a set that is too large'
egress set rm lines </dev/null
is "$STATUS $(ls -A sets)" '0 mirror.rules' 'a set is removed'
egress set rm lines </dev/null
like "$STATUS $ERR" '^125 .*no rule set lines' 'one that is not there'

# --- what is allowed ---

egress_check 0 allowed packages.example:443 --allow-set mirror
egress_check 0 allowed PACKAGES.example.:80 --allow-set mirror
egress_check 1 port_not_allowed packages.example:22 --allow-set mirror
egress_check 1 not_allowed cdn.example:443 --allow-set mirror
egress_check 0 allowed a.b.cdn.example:443 --allow-set mirror
egress_check 1 denied_by_operator evil.cdn.example:443 --allow-set mirror --allow evil.cdn.example
egress_check 1 not_allowed xcdn.example:443 --allow-set mirror
egress_check 1 not_allowed packages.example:443
egress_check 1 not_allowed packages.example:443 --allow other.example
egress_check 0 allowed 10.1.2.3:443 --allow-set mirror --allow 10.0.0.0/8
egress_check 1 private_address 10.2.2.3:443 --allow-set mirror --allow 10.0.0.0/8
egress_check 1 address_not_allowed 8.8.8.8:443 --allow-set mirror
egress_check 0 allowed '[2606:4700::1]:443' --allow 2606:4700::/32
egress_check 1 private_address '[::ffff:127.0.0.1]:443' --allow 0.0.0.0/0
egress check packages.example:443 --allow-set mirror </dev/null
like "$STATUS $OUT" '^0 allowed: ' 'the answer in words'

# --- settings ---

EGRESS_ENV=(GLOVEBOX_EGRESS_DEFAULT=mirror GLOVEBOX_EGRESS_DENY='other.example:443 192.0.2.0/24')
egress_check 0 allowed packages.example:443
egress_check 1 denied_by_operator other.example:443 --allow other.example
egress_check 0 allowed other.example:80 --allow other.example
egress set ls </dev/null
is "$OUT" $'mirror\t4\tyes' 'the default sets are marked'
egress set rm mirror </dev/null
like "$STATUS $ERR" '^125 .*egress.default names mirror' 'a default set is not removed'
EGRESS_ENV=(GLOVEBOX_EGRESS_INTERNET=all)
egress_check 0 allowed anything.example:22
egress_check 1 not_allowed anything.example:22 --allow other.example
egress_check 1 private_address 10.0.0.1:22
EGRESS_ENV=(GLOVEBOX_EGRESS_DEFAULT=nothing)
egress set ls </dev/null
like "$STATUS $ERR" '^125 .*egress.default: there is no rule set nothing' 'a default set that is not there'
EGRESS_ENV=()

# --- files that people write ---

printf 'good.example\nbad rule\n' >sets/hand.rules
egress set ls </dev/null
like "$STATUS $ERR" '^125 .*sets/hand.rules: line 2: "bad rule" is not a rule' 'a file with a mistake: where it is'
printf '[other]\ngood.example\n' >sets/hand.rules
egress set ls </dev/null
like "$STATUS $ERR" '^125 .*hand.rules: line 1: ' 'a file is one set'
rm sets/hand.rules
touch 'sets/Bad Name.rules'
egress set ls </dev/null
like "$STATUS $ERR" "^125 .*Bad Name.rules: a set's name" 'a file whose name cannot be'
rm 'sets/Bad Name.rules'
touch sets/README sets/.hidden.rules
egress set ls </dev/null
is "$STATUS $OUT" $'0 mirror\t4\tno' 'other files are left alone'
chmod 666 sets/mirror.rules
egress set ls </dev/null
like "$STATUS $ERR" '^125 .*can be written by everybody' 'a file that everybody can write'
rm -f sets/mirror.rules
mkfifo sets/fifo.rules
capture timeout 30 env GLOVEBOX_EGRESS_SETS="$TAP_TMP/work/sets" "$GLOVEBOX" egress set ls </dev/null
like "$STATUS $ERR" '^125 .*not a regular file' 'a FIFO, without waiting'
unset egress_value egress_words
