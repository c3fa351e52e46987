# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# DV-07: what a program prints cannot drive the terminal it is shown on. script(1) is the terminal.

if ! command -v script >/dev/null; then
	skip 'terminals' 'no script(1)'
	return 0
fi

# on_terminal COMMAND: what the terminal received, in $OUT; its status in $STATUS.
on_terminal() {
	capture script -qec "$1" /dev/null </dev/null
}

on_terminal "'$GLOVEBOX' run -- printf 'x\033]0;owned\007y\033[2Jz\033P1;1q\033\134\n'"
unlike "$OUT" $'[\033\007]' 'a title, a clearing of the screen and a device string arrive defused'
like "$OUT" 'x.*y.*z' '... and the text around them arrives'
on_terminal "'$GLOVEBOX' run -- sh -c 'printf \"x\\033]0;owned\\007y\\n\" >&2'"
unlike "$OUT" $'[\033\007]' '... also on standard error'
on_terminal "'$GLOVEBOX' run -- printf '\302\233'2Jx; echo" # CSI as one character
unlike "$(od -An -tx1 <"$TAP_TMP/out")" 'c2 9b' 'control characters of the second half too'
on_terminal "'$GLOVEBOX' run -- printf 'a\tb\n\303\251\n'"
is "${OUT//$'\r'/}" $'a\tb\n\303\251' 'tabs, lines and letters are left alone'
on_terminal "'$GLOVEBOX' run -- sh -c 'i=0; while [ \$i -lt 40 ]; do printf \"\\033\"; sleep 0.005; printf \"[2\"; printf \"J\"; i=\$((i+1)); done'"
unlike "$OUT" $'\033' 'a sequence that comes in pieces is still one'
on_terminal "'$GLOVEBOX' run -- printf 'x\033[31my'"
like "$OUT" $'x\033\\[31my.*\033\\[0m' 'colours are harmless and pass, and end with the program'
on_terminal "'$GLOVEBOX' run --raw -- printf 'x\033]0;title\007y\n'"
like "$OUT" $'x\033]0;title\007y' '--raw passes everything on'
is "$("$GLOVEBOX" run -- printf 'x\033[31my' </dev/null | od -An -tx1 | tr -d ' \n')" 781b5b33316d79 \
	'into a pipe it goes as it is'
on_terminal "'$GLOVEBOX' run --json -- printf 'x\033[31my'"
unlike "$OUT" $'\033' '--json escapes'
on_terminal "'$GLOVEBOX' run --out o1 -- sh -c 'mkdir out; ln -s x \"out/\$(printf \"a\\033]0;t\\007b\")\"'"
unlike "$OUT" $'[\033\007]' 'names of files that were refused are defused'
on_terminal "'$GLOVEBOX' run -- sh -c 'exit 7'"
is "$STATUS" 7 'the exit status is the same on a terminal'
on_terminal "'$GLOVEBOX' run -- sh -c 'test -t 0 || test -t 1 || test -t 2 || sh -c \": </dev/tty\" 2>/dev/null || echo none'"
is "${OUT//$'\r'/}" none 'the terminal itself is not in the box'
