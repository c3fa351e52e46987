# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# glovebox config: files that are right and wrong, and where settings come from.

# config ARGS…: without any settings of the machine's own.
config() {
	capture env HOME="$TAP_TMP/work" XDG_CONFIG_HOME="$TAP_TMP/work/none" "$GLOVEBOX" config "$@" </dev/null
}

# config_wrong REGEX TEXT: a file that is not right.
config_wrong() {
	printf '%b' "$2" >wrong.toml
	config check wrong.toml
	is "$STATUS $(wc -l <"$TAP_TMP/err") $OUT" '1 1 ' "wrong: ${2:0:50}"
	like "$ERR" "^glovebox: wrong.toml$1" '... and says where and why'
}

for config_value in '' explode '--frob' 'show more' 'show --frob' 'show -o xml' 'show --config' 'example x' 'check a b' \
	'check --config x'; do
	read -r -a config_words <<<"$config_value"
	config "${config_words[@]}"
	is "$STATUS $(wc -l <"$TAP_TMP/err") $OUT" '2 1 ' "refused: config $config_value"
done
config --help
like "$STATUS $OUT" '^0 Usage: glovebox config check' 'config --help'

# --- check ---

config_wrong ':2: there is no setting server.port' '[server]\nport = 1\n'
config_wrong ':1: there is no section serve' '[serve]\n'
config_wrong ':3: a second time: pool.size' '[pool]\nsize = 1\nsize = 2\n'
config_wrong ':2: pool.size must be a number, from 0 to 256' '[pool]\nsize = 1000\n'
config_wrong ':2: .*double quotes' '[server]\nlisten = 127.0.0.1:80\n'
config_wrong ': .*address and a port in numbers' '[server]\nlisten = "localhost:80"\n'
config_wrong ': .*go together' '[server]\ntls_cert = "/x"\n'
config_wrong ': .*sandbox.memory is more than limits.memory' '[sandbox]\nmemory = "1T"\n'
config_wrong ': .*egress.internet must be listed or all' '[egress]\ninternet = "some"\n'
config_wrong ': .*egress.deny: "a..b" is not a rule' '[egress]\ndeny = "good.example a..b"\n'
config_wrong ': .*egress.private: .*needs an address' '[egress]\nprivate = "10.0.0.0/8 corp.example"\n'
config_wrong ': .*egress.default: .A. cannot be' '[egress]\ndefault = "A"\n'
config_wrong ': .*egress.resolver: .localhost. is not' '[egress]\nresolver = "192.0.2.1 localhost"\n'
config_wrong ': .*egress.proxy must be' '[egress]\nproxy = "https://proxy.example"\n'
config_wrong ': not plain text' '[server]\r\n'
config check nowhere.toml
like "$STATUS $ERR" '^1 glovebox: nowhere.toml: No such file' 'a file that is not there'
mkdir dir
config check dir
is "$STATUS" 1 'a directory'
mkfifo fifo
capture timeout 30 "$GLOVEBOX" config check fifo
like "$STATUS $ERR" '^1 glovebox: fifo is not a regular file' 'a FIFO, without waiting'
echo '[pool]' >public.toml
chmod 666 public.toml
config check public.toml
like "$STATUS $ERR" '^1 .*can be written by everybody' 'a file that everybody can write'
printf '[server]\nlisten = "[::1]:7070"\n[sandbox]\nroot = false\nmemory = "1G"\n' >right.toml
config check right.toml
is "$STATUS $OUT$ERR" '0 right.toml: no mistakes' 'a file that is right'

# --- show ---

config show -o json
is "$(json '[.[].source] | unique | tostring')" '["default"]' 'show: all defaults'
is "$(json '."server.listen".value')" 127.0.0.1:7070 '... by name'
config show --config right.toml -o json
is "$(json '[."server.listen", ."sandbox.memory", ."sandbox.cpus"] | map(.value, .source) | join(" ")')" \
	'[::1]:7070 file 1G file 2 default' '... from a file'
GLOVEBOX_SANDBOX_MEMORY=2G config show --config right.toml -o json
is "$(json '."sandbox.memory" | [.value, .source] | join(" ")')" '2G environment' '... where a variable comes first'
GLOVEBOX_SANDBOX_MEMRY=2G config show
like "$STATUS $ERR" '^1 .*GLOVEBOX_SANDBOX_MEMRY' '... and a misspelt one is noticed'
GLOVEBOX_LANGUAGES=/nonexistent config show
is "$STATUS" 0 '... but not those of other things'
config show --config wrong.toml
is "$STATUS $OUT" '1 ' '... and nothing from a wrong file'
config show --config right.toml
like "$OUT" '^SETTING +VALUE +FROM' 'show: a table'
like "$OUT" $'\nsandbox.root +false +file' '... with every setting'
mkdir -p none/glovebox
cp right.toml none/glovebox/glovebox.toml
if [ "$(id -u)" -ne 0 ]; then
	config show -o json
	is "$(json '."sandbox.memory".source')" file "... from a user's own file"
fi

# --- example: the file with every setting ---

config example
is "$STATUS" 0 'example'
config_count=$(grep -cE '^#[a-z_]+ = ' <<<"$OUT")
sed -E 's/^#([a-z_]+ = )/\1/' <<<"$OUT" >example.toml
config check example.toml
is "$STATUS" 0 '... is right when everything in it is set'
config show --config example.toml -o json
is "$(json '[.[] | select(.source == "file")] | length')" "$config_count" '... which sets something'
is "$(json length)" "$config_count" '... namely all there is'
is "$(json 'map_values(.value) | tostring')" "$(env HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent "$GLOVEBOX" \
	config show -o json | jq -r 'map_values(.value) | tostring')" '... to its default'

# The manual has each of them, with the default.
config_man=$HERE/../../docs/glovebox.toml.5
while read -r config_name config_value; do
	is "$(sed -n "/^\.Ss Section ${config_name%.*}$/,/^\.S[sh] /p" "$config_man" |
		sed -n "/^\.It Cm ${config_name#*.} /,/^\.It\|^\.El/p" |
		awk '/^Default:$/ { getline; sub(/^\.Cm /, ""); sub(/ \.$/, ""); print } /Default: empty/ { print "empty" }')" \
		"${config_value:-empty}" "the manual's default of $config_name"
done < <(json 'to_entries[] | .key + " " + .value.value')
