# SPDX-License-Identifier: Apache-2.0
#
# The R kernel (kernels/PROTOCOL.md). Rscript --vanilla kernel.R [CHANNEL.so]
#
# Everything of the kernel lives in an environment of its own above the base package, so that cells neither
# see it nor change what it calls; they are evaluated in the global environment, which begins empty.
# Interrupts are held back except while a cell runs.

local({
	arguments <- commandArgs(FALSE)
	directory <- dirname(sub("^--file=", "", grep("^--file=", arguments, value = TRUE)[1]))
	library_file <- c(commandArgs(TRUE), file.path(directory, "channel.so"))[1]
	for (part in c("channel.R", "json.R", "tables.R", "plots.R", "errors.R", "cells.R")) {
		sys.source(file.path(directory, part), envir = environment())
	}
	channel_open(library_file)
	if (!l10n_info()[["UTF-8"]]) Sys.setlocale("LC_CTYPE", "C.UTF-8")
	suspendInterrupts(serve())
}, envir = new.env(parent = baseenv()))
