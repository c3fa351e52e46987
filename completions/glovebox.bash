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
	-c | --code | --env) ;;
	*)
		if [[ $cur == -* ]]; then
			_glovebox_words "$cur" '-l --language -c --code -t --template --stdin --in --out --env
				--timeout --cpu-time --cpus --memory --disk --files --pids --output
				--json --raw -v --verbose -h --help --'
		else
			_glovebox_files "$cur"
		fi
		;;
	esac
}

_glovebox() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]/#\~/$HOME}

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_glovebox_words "$cur" 'run languages doctor version help'
		return
	fi
	case ${COMP_WORDS[1]} in
	run) _glovebox_run "$cur" "$prev" "$program" ;;
	languages) _glovebox_words "$cur" '--no-versions --json -h --help' ;;
	doctor) _glovebox_words "$cur" '--fix --json -h --help' ;;
	esac
}

complete -F _glovebox glovebox
