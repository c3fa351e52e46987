# SPDX-License-Identifier: Apache-2.0
#
# One cell after the other.

# --- receiving ----------------------------------------------------------------------------------------

# SIGINT is held back until here. What came before the first byte of a request was meant for the last cell.
forget_interrupt <- function() tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL)

as_text <- function(bytes) {
	text <- rawToChar(bytes)
	Encoding(text) <- "UTF-8"
	text
}

# list(base, env, cwd, code): bytes; code is a list of pieces.
receive_cell <- function() {
	cell <- list(base = list(), env = list(), cwd = NULL, code = list())
	first <- TRUE
	repeat {
		request <- read_request()
		if (first) forget_interrupt()
		first <- FALSE
		switch(request$word,
			base = , env = , code = {
				cell[[request$word]] <- c(cell[[request$word]], list(request$bytes))
			},
			cwd = { cell$cwd <- request$bytes },
			run = return(cell),
			channel_closed())
	}
}

# --- before and after ---------------------------------------------------------------------------------

set_variable <- function(name, value) do.call(Sys.setenv, structure(list(value), names = name))

# Sets the variables, NAME=VALUE in bytes, and returns the old values, NA where there was none.
set_variables <- function(pairs) {
	old <- list()
	for (pair in pairs) {
		equals <- which(pair == charToRaw("="))[1]
		if (is.na(equals) || equals == 1 || any(pair == 0)) next
		name <- as_text(pair[seq_len(equals - 1L)])
		if (!(name %in% names(old))) old[[name]] <- Sys.getenv(name, unset = NA)
		set_variable(name, as_text(pair[-seq_len(equals)]))
	}
	old
}

bring_back <- function(old) {
	for (name in names(old)) {
		if (is.na(old[[name]])) Sys.unsetenv(name)
		else set_variable(name, old[[name]])
	}
}

# --- running ------------------------------------------------------------------------------------------

parse_cell <- function(text) {
	tryCatch(parse(text = text, keep.source = TRUE, srcfile = srcfilecopy("cell", text), encoding = "UTF-8"),
		error = function(e) {
			why <- sub("^cell:", "", message_of(e))
			say_error("SyntaxError", why, paste0("Error: ", why))
			NULL
		})
}

# R compiles functions as it goes, also ours, which would make the first cells slow: only cells are compiled.
# Returns the level that was set before.
set_compiling <- function(level) .Internal(enableJIT(level))

# Evaluates the expressions. What is visible is printed, the last one is the result. The name of the variable
# and the call of eval are what cell_calls() looks for.
evaluate <- function(expressions) {
	last <- length(expressions)
	for (i in seq_len(last)) {
		expression <- expressions[[i]]
		set_compiling(state$compiling)
		outcome <- withVisible(eval(expression, globalenv()))
		state$compiling <- set_compiling(0L)
		state$attached$.Last.value <- outcome$value
		send_finished()
		if (!outcome$visible) next
		if (i < last) print_value(outcome$value)
		else show_main(outcome$value)
	}
}

# What prints nothing (a plot that draws itself when it is printed) has no text to show.
show_main <- function(value) {
	fields <- value_fields(value)
	finish_plots()
	if (fields$text != "\"\"" || length(fields) > 1) say_result(fields, TRUE)
}

run_code <- function(text) {
	expressions <- parse_cell(text)
	if (is.null(expressions)) return()
	calls <- list()
	problem <- tryCatch({
		withCallingHandlers(allowInterrupts(evaluate(expressions)), warning = on_warning,
			error = function(e) calls <<- cell_calls(sys.calls()))
		NULL
	}, error = identity, interrupt = identity, gb_quit = identity)
	set_compiling(0L)
	finish_plots()
	show_warnings()
	if (inherits(problem, "gb_quit")) say_quit(problem$status)
	else if (inherits(problem, "interrupt")) say_error("KeyboardInterrupt", "", "the cell was interrupted")
	else if (inherits(problem, "error")) say_condition(problem, calls)
}

say_quit <- function(status) {
	if (status != 0) say_error("ExitStatus", status, paste("the cell ended with status", status))
}

# In a cell, quit() ends the cell.
quit_cell <- function(save = "default", status = 0, runLast = TRUE) {
	stop(structure(class = c("gb_quit", "condition"), list(message = "quit", call = NULL,
		status = as.integer(status))))
}

# One cell. Variables and directory come first, and a cell without code is only they.
run_cell <- function(cell) {
	if (length(cell$code) > 0) {
		state$count <- state$count + 1L
		say("count", as.character(state$count))
	}
	if (state$first) set_variables(cell$base)
	old <- set_variables(cell$env)
	on.exit(bring_back(old))
	if (state$first && !is.null(cell$cwd) && !go_to(as_text(cell$cwd))) return()
	state$first <- FALSE
	code <- unlist(cell$code)
	if (any(code == 0)) say_error("NulByte", "", "the code has a NUL byte, which R cannot read")
	else if (length(code) > 0) run_code(as_text(code))
}

go_to <- function(directory) {
	tryCatch({
		setwd(directory)
		TRUE
	}, error = function(e) {
		say_error("ChangeDirectory", paste("cannot go to the directory", directory), message_of(e))
		FALSE
	})
}

state <- new.env(parent = emptyenv())

serve <- function() {
	state$count <- 0L
	state$first <- TRUE
	state$compiling <- set_compiling(0L)
	state$attached <- attach(list(quit = quit_cell, q = quit_cell), name = "glovebox", warn.conflicts = FALSE)
	plots_begin()
	say("ready", as.character(Sys.getpid()))
	repeat {
		run_cell(receive_cell())
		finish_plots()
		say("end")
	}
}
