# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# glovebox languages, with the language files of the tree and with some that only exist here.

: "${GLOVEBOX:?set GLOVEBOX to the glovebox program}"

languages_json() {
	jq -r "$@" <<<"$OUT"
}

for languages_bad in extra --jason '' --json=1; do
	capture "$GLOVEBOX" languages "$languages_bad"
	is "$STATUS" 2 "languages refuses '$languages_bad'"
	is "$(wc -l <"$TAP_TMP/err")$OUT" 1 '... with one line and nothing else'
done
capture "$GLOVEBOX" languages --help
is "$STATUS" 0 'languages --help'

# --- the real ones ---

capture "$GLOVEBOX" languages --json --no-versions
is "$(languages_json '["python", "javascript", "typescript", "bash", "c", "cpp", "go", "rust", "java", "ruby", "php",
	"perl", "lua", "r"] - [.[].name] | join(" ")')" '' 'every language of the box is listed'
is "$(languages_json '[.[] | select(.name == ("c", "go", "java")) | .compiled] + [.[] | select(.name == "bash") | .compiled] | tostring')" \
	'[true,true,true,false]' '... with whether it compiles'
is "$(languages_json '[.[] | select(.name == ("bash", "c", "python")) | .stateful] | tostring')" '[true,false,true]' \
	'... and which of them keep state'
is "$(languages_json 'map(.version) | unique | tostring')" '[null]' '... and no versions when none were asked for'
capture "$GLOVEBOX" languages --json
is "$STATUS" 0 'with versions'
like "$(languages_json '.[] | select(.name == "bash") | .version')" '^GNU bash, version [0-9]' '... as a box sees them'
is "$(languages_json '[.[] | select(.present and (.version == null or .version == "")) | .name] | join(" ")')" '' \
	'every language that is installed tells its version'

# --- invented ones ---

LANGUAGES=$TAP_TMP/languages
mkdir -p "$LANGUAGES"
languages_file() {
	printf 'name = %s\ntitle = The %s\nextensions = %sx %sy\nfile = main\nrun = %s\nversion = %s\n' \
		"$1" "$1" "$1" "$1" "$2" "$3" >"$LANGUAGES/$1.lang"
}
languages_file aa 'sh {file}' 'printf \n\n\033[31mred\033[0m\nsecond\n'
languages_file bb 'sh {file}' 'bash -xc true'
languages_file cc 'no-such-program {file}' 'no-such-program --version'
languages_file dd 'sh {file}' 'sh -c false'
languages_file ee 'sh {file}' 'true'
languages_file ff 'sh {file}' 'printenv WORD'
printf 'env.WORD = from-the-file\n' >>"$LANGUAGES/ff.lang"

capture env GLOVEBOX_LANGUAGES="$LANGUAGES" "$GLOVEBOX" languages --json
is "$STATUS" 0 'languages of a directory of our own'
is "$(languages_json '.[] | select(.name == "aa") | .version')" '?[31mred?[0m' \
	'the version is the first line with text, and cannot drive a terminal'
like "$(languages_json '.[] | select(.name == "bb") | .version')" '^\+ true' '... or that of standard error'
is "$(languages_json -c '.[] | select(.name == "cc") | [.present, .version]')" '[false,null]' \
	'a program that is not there is not asked'
like "$(languages_json '.[] | select(.name == "dd") | .problem')" 'no version: error' 'one that fails is told'
like "$(languages_json '.[] | select(.name == "ee") | .problem')" 'said nothing' 'one that says nothing too'
is "$(languages_json '.[] | select(.name == "ff") | .version')" 'from-the-file' "the file's environment is set"
is "$(languages_json -c '.[] | select(.name == "aa") | .extensions')" '["aax","aay"]' 'endings of file names are listed'

capture env GLOVEBOX_LANGUAGES="$LANGUAGES" "$GLOVEBOX" languages
is "$STATUS$ERR" 0 'as a table, without progress when standard error is no terminal'
unlike "$OUT" $'\033' '... and nothing that drives a terminal'
like "$OUT" 'cc +The cc +no +no +\.ccx \.ccy +not installed' '... with what is not installed'
capture env GLOVEBOX_LANGUAGES="$LANGUAGES" "$GLOVEBOX" languages --no-versions
like "$OUT" 'aa +The aa +no +no +\.aax \.aay +installed' '... and without versions'

capture env GLOVEBOX_LANGUAGES="$TAP_TMP/nowhere" "$GLOVEBOX" languages
is "$STATUS" 125 'a directory that is not there'
is "$(wc -l <"$TAP_TMP/err")$OUT" 1 '... is told in one line'
rm -rf "$LANGUAGES"
