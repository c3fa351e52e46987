# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The Bash kernel, second half: the loop. The shell that runs this also runs the cells, so every name here
# begins with __gb_, every builtin that a cell might have replaced by a function is called as a builtin, and
# each function first puts the options aside that a cell may have set (`local -` brings them back).

declare -r __gb_directory
declare +x __gb_directory
# Requests, events, the cell's output, its error, the pipe to the reader, and nothing to read.
declare -r __gb_requests=240 __gb_events=241 __gb_out=242 __gb_err=243 __gb_reader=244 __gb_null=245
# What the reader reads, again and again.
__gb_turn="__gb_next; \\builtin source \"\$__gb_directory/cell.bash\" <&$__gb_null >&$__gb_out 2>&\"\$__gb_trace\"; "
__gb_turn+="__gb_left=\${__gb_left:-\$?}; __gb_put_traps_aside"
declare -r __gb_turn
# Runs where errexit is about to end the shell, and ends the cell instead: `return` leaves one function or
# sourced file, the caller's command has then failed too, and so on up to the reader.
# shellcheck disable=SC2016
declare -r __gb_on_error='__gb_status=$?
if [[ $- == *e* && $BASH_SUBSHELL == 0 ]]; then
	if [[ ${BASH_SOURCE-} ]]; then return "$__gb_status"; else set +e; __gb_errexit=1; fi
fi'
__gb_count=0    # cells with code so far
__gb_first=1    # no cell has been prepared yet
__gb_running='' # a cell has been started and not finished
__gb_last=0     # the status of the last cell
__gb_left=''    # the status of the running cell, once it has come to its end
__gb_exit=''    # the status it gave to `exit`
__gb_code=''    # its code,
__gb_run=''     # and what to evaluate for it
__gb_trace=''   # where the kernel's own lines of `set -x` go: nowhere, if that can be
__gb_why=''     # why it cannot be read as a whole, if so
__gb_undo=()    # how to bring back the variables that were set for it
__gb_errexit='' # errexit was switched off above the cell, and belongs to it
__gb_aside=''   # the traps of the cells are put aside,
__gb_traps=''   # here
__gb_helper=''  # who sends interrupts for `exit`
__gb_status=0

# Moves descriptor $1 to $2, where programs do not inherit it. Bash cannot be asked for close-on-exec; but
# what it puts aside while a redirection lasts has it (at the lowest free number from 10), and so has a copy.
__gb_move() {
	local __gb_aside

	exec {__gb_aside}<&"$1" {__gb_aside}<&-
	eval "{ exec $2<&$__gb_aside; } $1<&-; exec $1<&-"
}

# --- events -------------------------------------------------------------------------------------

__gb_say() {
	local LC_ALL=C

	builtin printf '%s %d\n%s' "$1" "${#2}" "$2" >&"$__gb_events"
}

__gb_is_utf8() {
	local LC_ALL=C __gb_tail=$'[\x80-\xbf]'
	local __gb_two=$'[\xc2-\xdf]N' __gb_three=$'\xe0[\xa0-\xbf]N|[\xe1-\xec\xee\xef]NN|\xed[\x80-\x9f]N'
	local __gb_four=$'\xf0[\x90-\xbf]NN|[\xf1-\xf3]NNN|\xf4[\x80-\x8f]NN'
	local __gb_any=$'^([\x01-\x7f]|'"$__gb_two|$__gb_three|$__gb_four)*\$"

	[[ $1 =~ ${__gb_any//N/$__gb_tail} ]]
}

# The number of a character as JSON escapes it, into __gb_escaped.
__gb_escape() {
	local -i __gb_high="0xd800 + ($1 - 0x10000 >> 10)" __gb_low="0xdc00 + ($1 & 0x3ff)"

	if (($1 > 0xffff)); then
		builtin printf -v __gb_escaped '\\u%04x\\u%04x' "$__gb_high" "$__gb_low"
	else
		builtin printf -v __gb_escaped '\\u%04x' "$1"
	fi
}

# A JSON string in ASCII into __gb_json. Where it is not UTF-8, only its ASCII is shown.
__gb_quote() {
	local LC_ALL=C.UTF-8 __gb_text=$1 __gb_char __gb_escaped
	local -i __gb_at __gb_number

	__gb_is_utf8 "$1" || __gb_text=${__gb_text//[^ -~]/?}
	__gb_json=''
	for ((__gb_at = 0; __gb_at < ${#__gb_text}; __gb_at++)); do
		__gb_char=${__gb_text:__gb_at:1}
		builtin printf -v __gb_number %d "'$__gb_char"
		case $__gb_char in
		[\"\\]) __gb_escaped=\\$__gb_char ;;
		[[:ascii:]]) __gb_escaped=$__gb_char ;;&
		[[:cntrl:]] | [![:ascii:]]) __gb_escape "$__gb_number" ;;
		esac
		__gb_json+=$__gb_escaped
	done
	__gb_json="\"$__gb_json\""
}

# Arguments: name, value, traceback.
__gb_error() {
	local __gb_json __gb_object

	__gb_quote "$1" && __gb_object="{\"name\": $__gb_json"
	__gb_quote "$2" && __gb_object+=", \"value\": $__gb_json"
	__gb_quote "$3" && __gb_object+=", \"traceback\": $__gb_json}"
	__gb_say error "$__gb_object"
}

# --- requests -----------------------------------------------------------------------------------

# The other side has gone. A second time, should `shopt -s checkjobs` ask whether that is meant.
__gb_leave() {
	builtin exit 0
	# shellcheck disable=SC2317
	builtin exit 0
}

# Reads $1 bytes into __gb_bytes. `read` ends at a NUL, which no variable can hold: it is left out, and
# __gb_nul says so.
__gb_read() {
	local LC_ALL=C IFS='' __gb_piece
	local -i __gb_missing=$1

	__gb_bytes=''
	while ((__gb_missing > 0)); do
		builtin read -r -d '' -n "$__gb_missing" -u "$__gb_requests" __gb_piece || __gb_leave
		__gb_bytes+=$__gb_piece
		__gb_missing+=-${#__gb_piece}
		((__gb_missing == 0)) || __gb_nul=1 __gb_missing+=-1
	done
}

# One cell, up to `run`, into the variables of __gb_next.
__gb_receive() {
	local IFS=' ' TMOUT='' __gb_word __gb_length __gb_bytes

	__gb_base=() __gb_env=() __gb_cwd='' __gb_code='' __gb_has_code='' __gb_nul=''
	while builtin read -r -u "$__gb_requests" __gb_word __gb_length; do
		[[ $__gb_length =~ ^[0-9]{1,8}$ ]] || __gb_leave
		__gb_read "$__gb_length"
		case $__gb_word in
		base) __gb_base+=("$__gb_bytes") ;;
		env) __gb_env+=("$__gb_bytes") ;;
		cwd) __gb_cwd=$__gb_bytes ;;
		code) __gb_has_code=1 __gb_code+=$__gb_bytes ;;
		run) return ;;
		*) __gb_leave ;;
		esac
	done
	__gb_leave
}

# --- before a cell ------------------------------------------------------------------------------

# A name that Bash cannot have, or that is ours, is left out; so is a value that Bash refuses (UID=0).
__gb_is_variable() {
	local LC_ALL=C

	[[ $1 =~ ^[A-Za-z_][A-Za-z0-9_]*= && $1 != __gb_* ]]
}

# The old variable is written down with its type and its attributes.
__gb_set_for_cell() {
	local __gb_name=${1%%=*} __gb_old

	__gb_is_variable "$1" || return 0
	__gb_old=$(builtin declare -p "$__gb_name" 2>/dev/null) || __gb_old=''
	__gb_undo=("builtin unset -v $__gb_name; ${__gb_old/#declare /declare -g }" "${__gb_undo[@]}")
	builtin declare -gx "$1"
}

__gb_set_variables() {
	local __gb_pair

	if [[ $__gb_first ]]; then
		for __gb_pair in "${__gb_base[@]}"; do
			! __gb_is_variable "$__gb_pair" || builtin declare -gx "$__gb_pair"
		done
	fi
	for __gb_pair in "${__gb_env[@]}"; do
		__gb_set_for_cell "$__gb_pair"
	done
}

# The code is run as one group, so that an error that throws it back ends all of it, and it begins with the
# last cell's $?. Code that is not one group (it is wrong, or sets an option that changes how its later lines
# are read, or makes an alias that they use) is run command by command, as a script is. Whether it is one is
# seen without running it: as the body of a function.
__gb_wrap() {
	local __gb_body="__gb_body() { :; $__gb_code"$'\n}' __gb_set=''

	__gb_why=''
	[[ ! $__gb_errexit ]] || __gb_set='set -e; '
	__gb_errexit=''
	if [[ $__gb_code != *alias* ]] && builtin eval "$__gb_body"; then
		unset -f __gb_body
		__gb_run="$__gb_set{ { __gb_same && :; } 2>&$__gb_null; $__gb_code"$'\n'"} 2>&$__gb_err; __gb_left=\$?"
		__gb_trace=$__gb_null
		return
	fi
	__gb_why=$(builtin eval "$__gb_body" 2>&1)
	__gb_why=${__gb_why%%$'\n'*}
	__gb_why=${__gb_why:0:1000}
	__gb_run=$__gb_set$__gb_code
	__gb_trace=$__gb_err
}

__gb_same() {
	return "$__gb_last"
}

# Makes a cell ready to run, or says why it cannot; 1 then, and for a cell without code.
__gb_prepare() {
	[[ ! $__gb_has_code ]] || __gb_say count "$((++__gb_count))"
	__gb_set_variables
	if [[ $__gb_first && $__gb_cwd ]] && ! builtin cd -- "$__gb_cwd"; then
		__gb_error ChangeDirectory "cannot go to the directory $__gb_cwd" "cd: $__gb_cwd"
		return 1
	fi
	__gb_first=''
	[[ $__gb_has_code ]] || return 1
	if [[ $__gb_nul ]]; then
		__gb_error NulByte '' 'the code has a NUL byte, which Bash cannot read'
		return 1
	fi
	__gb_wrap
}

# --- after a cell -------------------------------------------------------------------------------

# Whether the code is only space and comments, and so left $? as it was.
__gb_is_blank() {
	local IFS='' __gb_line

	while builtin read -r __gb_line; do
		__gb_line=${__gb_line#"${__gb_line%%[![:space:]]*}"}
		[[ -z $__gb_line || $__gb_line == '#'* ]] || return
	done <<<"$1"
}

# What the cell that ran has to say for itself.
__gb_verdict() {
	local __gb_result=${__gb_exit:-$__gb_left}

	if [[ ! $__gb_result ]]; then
		__gb_last=130
		__gb_error KeyboardInterrupt '' 'the cell was interrupted'
		return
	fi
	if ((__gb_result != 0 && __gb_result == __gb_last)) && __gb_is_blank "$__gb_code"; then
		return
	fi
	__gb_last=$__gb_result
	if ((__gb_result == 2)) && [[ $__gb_why ]]; then
		__gb_error SyntaxError "${__gb_why#*: eval: line *: }" "$__gb_why"
	elif ((__gb_result != 0)); then
		__gb_error ExitStatus "$__gb_result" "the command ended with status $__gb_result"
	fi
}

__gb_end() {
	local __gb_line

	for __gb_line in "${__gb_undo[@]}"; do
		builtin eval "$__gb_line"
	done
	__gb_undo=()
	__gb_say end ''
}

# --- the loop -----------------------------------------------------------------------------------

# Between cells an interrupt is ignored, or a request would be lost half read; what the cells had in its
# place is kept.
__gb_put_traps_aside() {
	local -
	set +eufxvkCT +o posix

	[[ $__gb_exit ]] || __gb_traps=$(builtin trap -p INT ERR)
	builtin trap '' INT
	builtin trap - ERR
	if [[ $__gb_helper ]]; then
		builtin kill -KILL "$__gb_helper"
		builtin wait "$__gb_helper"
	fi
	__gb_helper='' __gb_aside=1
}

# Where the cells have no handler of errors, ours keeps errexit from ending the shell.
__gb_bring_traps_back() {
	__gb_aside=''
	# shellcheck disable=SC2064 # it is the text of the handler, and constant
	[[ $__gb_traps == *' ERR' ]] || builtin trap "$__gb_on_error" ERR
	builtin trap - INT
	builtin eval "$__gb_traps"
}

# A turn begins: ends the cell that ran, and waits for the next. Every turn gives the reader one more line.
# A cell that was thrown back to the reader left before it had put its traps aside; then the line comes first,
# for a second interrupt could throw this turn back too.
__gb_next() {
	local -
	set +eufxvkCT +o posix
	local __gb_base __gb_env __gb_cwd __gb_has_code __gb_nul

	builtin printf '%s\n' "$__gb_turn" >&"$__gb_reader"
	[[ $__gb_aside ]] || __gb_put_traps_aside
	if [[ $__gb_running ]]; then
		__gb_running=''
		__gb_verdict
		__gb_end
	fi
	while __gb_receive && ! __gb_prepare; do
		__gb_end
	done
	__gb_left='' __gb_exit='' __gb_running=1
	__gb_bring_traps_back
}

# An interrupt that a trap handler sends ends only the handler. Where there are handlers, a helper sends
# more of them until the next turn ends it.
__gb_insist() {
	[[ $(builtin trap -p) != "trap -- '$__gb_on_error' ERR" ]] || return 0
	(
		exec 0<> <(:)
		while builtin read -r -t 0.02 || builtin kill -INT 0; do :; done
	) &
	__gb_helper=$!
}

# In a cell, `exit` ends the cell. The way out of any depth of functions and files is an interrupt.
exit() {
	__gb_status=$?
	if ((BASH_SUBSHELL > 0)); then
		builtin exit "${@:-$__gb_status}"
	fi
	(builtin exit "${@:-$__gb_status}") && :
	__gb_exit=$?
	__gb_traps=$(builtin trap -p INT ERR)
	__gb_insist
	builtin trap - INT
	builtin kill -INT "$$"
}

__gb_move 3 "$__gb_requests"
__gb_move 4 "$__gb_events"
__gb_move 5 "$__gb_out"
__gb_move 6 "$__gb_err"
__gb_move 7 "$__gb_reader"
exec 3<>/dev/null
__gb_move 3 "$__gb_null"
unset -f __gb_move
mapfile -t __gb_undo < <(compgen -A function __gb_)
readonly -f "${__gb_undo[@]}"
__gb_undo=()
unset -v MAILCHECK HISTFILE OLDPWD
PS1='' PS2=''
set -E +H +m +o history +o posix
builtin printf '%s\n' "$__gb_turn" "$__gb_turn" >&"$__gb_reader"
__gb_say ready "$$"
