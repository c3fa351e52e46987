# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bash completion for glovebox(1). Needs nothing of the bash-completion package but its loader.

_glovebox_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "${2:--f}" -- "$1")
}

_glovebox_words() {
	mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_glovebox_run() {
	local cur=$1 prev=$2 program=$3 i

	# Behind -- stands a command of the box, which has its own files.
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -- ]] || return 0
	done
	case $prev in
	-l | --language)
		_glovebox_words "$cur" "$("$program" languages --no-versions 2>/dev/null |
			awk 'NR > 1 { print $1 }')"
		;;
	-t | --template)
		_glovebox_files "$cur" -d
		if [[ base == "$cur"* ]]; then
			COMPREPLY+=(base)
		fi
		;;
	--stdin | --in) _glovebox_files "$cur" ;;
	--out) _glovebox_files "$cur" -d ;;
	--timeout) _glovebox_words "$cur" '1s 5s 30s 5m' ;;
	--cpu-time) _glovebox_words "$cur" '1s 10s 60s' ;;
	--cpus) _glovebox_words "$cur" '0.5 1 2' ;;
	--memory | --disk) _glovebox_words "$cur" '64M 256M 1G' ;;
	--output) _glovebox_words "$cur" '64K 1M 16M' ;;
	--files) _glovebox_words "$cur" '1000 65536' ;;
	--pids) _glovebox_words "$cur" '16 64 256' ;;
	--net) _glovebox_words "$cur" 'none learn' ;;
	--learn-to) _glovebox_files "$cur" ;;
	--allow-set) _glovebox_words "$cur" "$("$program" egress set ls 2>/dev/null | cut -f1)" ;;
	-c | --code | --env | --allow | --allow-private) ;;
	*)
		if [[ $cur == -* ]]; then
			_glovebox_words "$cur" '-l --language -c --code -t --template --stdin --in --out --env --service --local --no-zygote
				--allow --allow-set --allow-private --net --learn-to
				--timeout --cpu-time --cpus --memory --disk --files --pids --output
				--json --raw -v --verbose -h --help --'
		else
			_glovebox_files "$cur"
		fi
		;;
	esac
}

_glovebox_repl() {
	local cur=$1 prev=$2

	case $prev in
	--pictures) _glovebox_files "$cur" -d ;;
	-l | --language | -t | --template | --in | --timeout | --cpu-time | --cpus | --memory | --disk | --output | --files | \
		--pids | --env) _glovebox_run "$@" ;;
	*)
		_glovebox_words "$cur" '-l --language -t --template --in --env --pictures --service --local
			--timeout --cpu-time --cpus --memory --disk --files --pids --output
			--json --raw -v --verbose -h --help'
		;;
	esac
}

_glovebox_sandboxes() {
	_glovebox_words "$2" "$("$1" ls -q 2>/dev/null)"
}

_glovebox_serve() {
	case $2 in
	--config | --tls-cert | --tls-key) _glovebox_files "$1" ;;
	--state) _glovebox_files "$1" -d ;;
	--sandbox-root | --webhooks-private-addresses) _glovebox_words "$1" 'true false' ;;
	--*) ;;
	*) _glovebox_words "$1" "--config -h --help $("$3" serve --help 2>/dev/null | grep -oE '^ +--[a-z-]+')" ;;
	esac
}

# The keys that 'glovebox key ls' shows, by id and by name.
_glovebox_keys() {
	_glovebox_words "$2" "$("$1" key ls 2>/dev/null | awk 'NR > 1 { print $1; if ($2 != "-") print $2 }')"
}

_glovebox_key() {
	local cur=$1 prev=$2 program=$3

	case $prev in
	--scope) _glovebox_words "$cur" 'sandboxes read admin' ;;
	--expires) _glovebox_words "$cur" '12h 30d 90d 365d' ;;
	--state) _glovebox_files "$cur" -d ;;
	--config) _glovebox_files "$cur" ;;
	-o | --output) _glovebox_words "$cur" 'json table' ;;
	--name) ;;
	key) [[ $cur == -* ]] || _glovebox_words "$cur" 'create ls revoke rotate' ;;
	revoke | rotate) [[ $cur == -* ]] || _glovebox_keys "$program" "$cur" ;;
	esac
	[[ $cur != -* || ${#COMPREPLY[@]} -gt 0 ]] ||
		_glovebox_words "$cur" '--name --expires --scope --all -o --output --state --config -h --help'
}

_glovebox_egress() {
	local cur=$1 prev=$2 program=$3

	case $prev in
	egress) [[ $cur == -* ]] || _glovebox_words "$cur" 'set check' ;;
	set) [[ $cur == -* ]] || _glovebox_words "$cur" 'ls show save rm' ;;
	show | rm | save | --allow-set)
		[[ $cur == -* ]] || _glovebox_words "$cur" "$("$program" egress set ls 2>/dev/null | cut -f1)"
		;;
	--config) _glovebox_files "$cur" ;;
	--allow) ;;
	esac
	[[ $cur != -* || ${#COMPREPLY[@]} -gt 0 ]] ||
		_glovebox_words "$cur" '--allow --allow-set --force --json --config -h --help'
}

_glovebox_secret() {
	local cur=$1 prev=$2 program=$3

	case $prev in
	--from-file) _glovebox_files "$cur" ;;
	-o | --output) _glovebox_words "$cur" 'json table' ;;
	secret) [[ $cur == -* ]] || _glovebox_words "$cur" 'set ls rm' ;;
	set | rm) [[ $cur == -* ]] || _glovebox_words "$cur" "$("$program" secret ls -q 2>/dev/null)" ;;
	esac
	[[ $cur != -* || ${#COMPREPLY[@]} -gt 0 ]] ||
		_glovebox_words "$cur" '--from-file -q --quiet -o --output -h --help'
}

_glovebox_cert() {
	case $2 in
	--out) _glovebox_files "$1" -d ;;
	*) _glovebox_words "$1" '--out -h --help' ;;
	esac
}

_glovebox_config() {
	case $2 in
	check | --config) _glovebox_files "$1" ;;
	-o | --output) _glovebox_words "$1" 'json table' ;;
	*)
		if [[ $2 == config && $1 != -* ]]; then
			_glovebox_words "$1" 'check show example'
		else
			_glovebox_words "$1" '--config -o --output -h --help'
		fi
		;;
	esac
}

# Verbs that take sandboxes. Arguments: cur, prev, program, the options of the verb.
_glovebox_sandbox_verb() {
	local i

	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -- ]] || return 0
	done
	case $2 in
	-o | --output) _glovebox_words "$1" 'json table' ;;
	--timeout) _glovebox_words "$1" '5m 1h 24h' ;;
	--state) _glovebox_words "$1" 'running paused' ;;
	-u | --user) _glovebox_words "$1" 'user root' ;;
	--env | --metadata | --name | -w | --cwd | --allow | --allow-set | --deny) ;;
	*)
		if [[ $1 == -* ]]; then
			_glovebox_words "$1" "$4 -h --help"
		elif [ "${COMP_WORDS[1]}" = create ]; then
			_glovebox_words "$1" 'base code-interpreter-v1'
		elif [ "${COMP_WORDS[1]}" != ls ]; then
			_glovebox_sandboxes "$3" "$1"
		fi
		;;
	esac
}

_glovebox() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]/#\~/$HOME}

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_glovebox_words "$cur" 'run repl languages egress serve key cert config secret create ls exec shell cp logs inspect network stats
			pause resume snapshot kill doctor version help'
		return
	fi
	case ${COMP_WORDS[1]} in
	run) _glovebox_run "$cur" "$prev" "$program" ;;
	repl) _glovebox_repl "$cur" "$prev" "$program" ;;
	languages) _glovebox_words "$cur" '--no-versions --json -h --help' ;;
	doctor) _glovebox_words "$cur" '--fix --json -h --help' ;;
	egress) _glovebox_egress "$cur" "$prev" "$program" ;;
	secret) _glovebox_secret "$cur" "$prev" "$program" ;;
	serve) _glovebox_serve "$cur" "$prev" "$program" ;;
	key) _glovebox_key "$cur" "$prev" "$program" ;;
	cert) _glovebox_cert "$cur" "$prev" ;;
	config) _glovebox_config "$cur" "$prev" ;;
	create)
		_glovebox_sandbox_verb "$cur" "$prev" "$program" '--timeout --pause --env --metadata --allow --allow-set
			--deny --no-network -o --output'
		;;
	ls) _glovebox_sandbox_verb "$cur" "$prev" "$program" '--state -q --quiet -o --output' ;;
	exec)
		_glovebox_sandbox_verb "$cur" "$prev" "$program" '-i --stdin -u --user -w --cwd --env --raw --'
		;;
	shell) _glovebox_sandbox_verb "$cur" "$prev" "$program" '-u --user' ;;
	cp)
		_glovebox_sandbox_verb "$cur" "$prev" "$program" '-u --user'
		if [[ $cur != -* && $prev != -* ]]; then
			compopt -o filenames -o nospace 2>/dev/null
			COMPREPLY=("${COMPREPLY[@]/%/:}")
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	logs) _glovebox_sandbox_verb "$cur" "$prev" "$program" '-f --follow --network -o --output' ;;
	inspect) _glovebox_sandbox_verb "$cur" "$prev" "$program" '-o --output' ;;
	network)
		_glovebox_sandbox_verb "$cur" "$prev" "$program" '--allow --allow-set --deny --none --default -o --output'
		;;
	stats) _glovebox_sandbox_verb "$cur" "$prev" "$program" '-a --all -o --output' ;;
	pause) _glovebox_sandbox_verb "$cur" "$prev" "$program" '--files-only' ;;
	resume) _glovebox_sandbox_verb "$cur" "$prev" "$program" '--timeout' ;;
	snapshot) _glovebox_sandbox_verb "$cur" "$prev" "$program" '--name -o --output' ;;
	kill) _glovebox_sandbox_verb "$cur" "$prev" "$program" '' ;;
	esac
}

complete -F _glovebox glovebox
