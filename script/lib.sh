# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the programs in script/ and tools/ share. Source it; it changes nothing but variables.

# shellcheck disable=SC2034  # read by the scripts that source this

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

# Where the builds go: $BUILD, $BUILD-asan, $BUILD-breakable, $BUILD-fuzz and $BUILD-tsan. Set it to build
# elsewhere, e.g. when the checkout belongs to somebody else.
BUILD=${BUILD:-$ROOT/build}

RED='' GREEN='' YELLOW='' DIM='' BOLD='' PLAIN=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' DIM=$'\e[2m' BOLD=$'\e[1m' PLAIN=$'\e[0m'
fi

say() {
	printf '%s\n' "$*"
}

warn() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	warn "$@"
	exit 1
}

# Wrong use of a script: one line, exit 2.
usage_error() {
	warn "$@"
	exit 2
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# Every file of the project, relative to its root, NUL-separated: what git tracks or would add, or
# without git (a release tarball, somebody else's checkout) everything but the builds.
project_files() {
	if git -C "$ROOT" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		# A file deleted but not yet committed is still listed: leave it out.
		git -C "$ROOT" ls-files -z --cached --others --exclude-standard --deduplicate |
			while IFS= read -r -d '' file; do
				[ ! -f "$ROOT/$file" ] || [ -L "$ROOT/$file" ] || printf '%s\0' "$file"
			done
	else
		(cd "$ROOT" && find . \( -name .git -o -name 'build*' -prune -o -name .cache \) -prune -o \
			-type f -printf '%P\0')
	fi
}

# The C files, without X-macro tables. With an argument: only below that directory.
c_files() {
	project_files | grep -zE "^${1:-(src|test|bench|tools)}/.*\.[ch]$" | LC_ALL=C sort -z
}

# Shell programs: by name, or by the first line.
shell_files() {
	local file first

	project_files | while IFS= read -r -d '' file; do
		case $file in
		*.sh | *.bash) printf '%s\0' "$file" ;;
		*.*/* | *.md | *.c | *.h | *.json) [[ $file == .ci/* ]] || continue ;;&
		*)
			first=''
			IFS= read -r -n 64 first <"$ROOT/$file" 2>/dev/null || true
			case $first in
			'#!'*bash* | '#!'*/sh | '#!'*' sh') printf '%s\0' "$file" ;;
			esac
			;;
		esac
	done
}

# Configures a build directory, once for the same options (ninja reconfigures it by itself when meson.build changes),
# and brings it up to date. Arguments: directory, meson options; behind -- the targets, when it is not everything.
build_in() {
	local dir=$1 options=() option

	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	if [ ! -f "$dir/build.ninja" ]; then
		meson setup "$dir" "$ROOT" "${options[@]}" || return
	fi
	for option in "${options[@]#-D}"; do
		grep -qxF -- "${option%%=*} = ${option#*=}" "$dir/meson-private/cmd_line.txt" ||
			meson configure "$dir" "-D$option" || return
	done
	ninja -C "$dir" "$@"
}

# What went wrong, of the log of a build.
build_errors() {
	grep -E -A 3 'error:|ERROR:|FAILED:|undefined reference' "$1" | head -n 60
}
