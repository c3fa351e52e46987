# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# The Java kernel (kernels/PROTOCOL.md): sh kernel.sh JAVA-OPTION...
#
# kernel.jar is made when glovebox is built; where there was no Java compiler, the one in the box does it, which
# a JDK has and JShell needs anyway.
here=$(dirname -- "$0")
classes=$here/kernel.jar
if ! [ -e "$classes" ]; then
	classes=$(mktemp -d "${TMPDIR:-/tmp}/kernel.XXXXXX") || exit
	javac -d "$classes" "$here"/glovebox/*.java 2>"$classes/log" || {
		cat "$classes/log" >&2
		exit 1
	}
fi
exec java "$@" -cp "$classes" glovebox.Kernel
