# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The Bash kernel (kernels/PROTOCOL.md), first half: starts the shell that cells run in and becomes it.
#
# That shell is interactive, though it has no terminal, because only an interactive Bash comes back to its
# reader when something goes wrong: after an interrupt (also of a loop that runs no program), an unset
# variable under `set -u`, a failed ${name:?}. Its reader is the loop of the kernel: descriptor 0 of the
# shell is a pipe to itself, into which every turn writes the line that makes the next one (shell.bash).
#
# For shell.bash: 3 and 4 as they came, 5 and 6 the cell's output and error, 7 the pipe. The shell's own
# output and error go nowhere: prompts and notices about jobs belong to no cell.

set +o posix
exec 5>&1 6>&2 7<> <(:)
wait "$!"
# The path goes through the environment, which shell.bash cleans: it may have any characters.
export __gb_directory="${BASH_SOURCE[0]%/*}"
# shellcheck disable=SC2016
printf '%s\n' 'source "$__gb_directory/shell.bash"' >&7
exec "$BASH" --noprofile --norc --noediting -i <&7 >/dev/null 2>&1
