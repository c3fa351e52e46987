\builtin eval "${__gb_run-}"
# SPDX-License-Identifier: Apache-2.0
#
# Runs one cell. A file of its own, sourced, so that `return` ends the cell and `declare` makes variables
# that stay, which in a function they would not. In its first line, so that those of the cell count from 1.
