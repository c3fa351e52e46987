# SPDX-License-Identifier: Apache-2.0
#
# What goes wrong in a cell: errors with their calls, and warnings, which come at its end as at R's prompt.

WARNINGS_SHOWN <- 50L
CALLS_SHOWN <- 40L
ERROR_CHARACTERS_MAX <- 1000000L
CELL_CALL <- quote(eval(expression, globalenv())) # as it stands in cells.R

say_error <- function(name, value, traceback) {
	text <- json_strings(substr(as_utf8(c(name, value, traceback)), 1, ERROR_CHARACTERS_MAX))
	say("error", json_object(list(name = text[1], value = text[2], traceback = text[3])))
}

# A condition may have a method for its message, and the method may fail.
message_of <- function(condition) {
	text <- tryCatch(paste(as.character(conditionMessage(condition)), collapse = "\n"), error = function(e) "")
	as_utf8(text)
}

# The call of a condition, or NULL: the kernel's own is nobody's concern.
call_of <- function(condition) {
	call <- conditionCall(condition)
	if (identical(call, CELL_CALL)) NULL else call
}

one_line <- function(call) {
	lines <- tryCatch(deparse(call, nlines = 2L, width.cutoff = 100L), error = function(e) "?")
	if (length(lines) > 1) paste(lines[1], "...") else lines
}

# The calls of the cell: below those of the kernel, above those that R made to tell about the error.
cell_calls <- function(calls) {
	begin <- which(vapply(calls, identical, NA, CELL_CALL))
	calls <- if (length(begin) > 1) calls[-seq_len(begin[2])] else list()
	told <- which(vapply(calls, function(call) identical(call[[1]], quote(.handleSimpleError)) ||
		is.function(call[[1]]), NA))
	if (length(told) > 0) calls <- calls[seq_len(told[1] - 1L)]
	calls
}

say_condition <- function(error, calls) {
	call <- call_of(error)
	where <- if (is.null(call)) "Error" else paste("Error in", one_line(call))
	lines <- sprintf("%d. %s", seq_along(calls), vapply(calls, one_line, ""))
	if (length(lines) > CALLS_SHOWN)
		lines <- c(utils::head(lines, CALLS_SHOWN / 2), "...", utils::tail(lines, CALLS_SHOWN / 2))
	text <- paste0(where, ": ", message_of(error))
	if (length(lines) > 0) text <- paste(c(text, "Traceback:", lines), collapse = "\n")
	say_error(class(error)[1], message_of(error), text)
}

# --- warnings -----------------------------------------------------------------------------------------

warned <- new.env(parent = emptyenv())
warned$list <- list()

warning_text <- function(condition) {
	call <- call_of(condition)
	if (is.null(call)) message_of(condition) else paste0("In ", one_line(call), " : ", message_of(condition))
}

# As options(warn = ) says: nothing, at the end, at once; from 2 on R makes an error of it.
on_warning <- function(condition) {
	level <- getOption("warn")
	if (!is.numeric(level) || level >= 2) return()
	if (level >= 1) cat("Warning: ", warning_text(condition), "\n", sep = "", file = stderr())
	if (level == 0 && length(warned$list) < WARNINGS_SHOWN)
		warned$list <- c(warned$list, list(condition))
	tryInvokeRestart("muffleWarning")
}

show_warnings <- function() {
	texts <- vapply(warned$list, warning_text, "")
	warned$list <- list()
	if (length(texts) == 1) cat("Warning message:", texts, sep = "\n", file = stderr())
	if (length(texts) > 1)
		cat("Warning messages:", paste0(seq_along(texts), ": ", texts), sep = "\n", file = stderr())
}
