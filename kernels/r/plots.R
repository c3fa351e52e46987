# SPDX-License-Identifier: Apache-2.0
#
# Plots: a picture device that opens when a cell first draws, and a result for each page that is finished.
# Every cell begins with no device of ours; those it opens itself are its own.

plots <- new.env(parent = emptyenv())
plots$device <- NULL   # the number of our device, while it is open
plots$directory <- NULL
plots$sent <- 0L       # pages of it that have been sent

# For options(device = ): called by R when something is drawn and no device is open. The size is set by the
# same options as in other notebooks of R.
plot_device <- function(...) {
	setting <- function(name, default) {
		value <- getOption(paste0("repr.plot.", name))
		if (is.numeric(value) && length(value) == 1 && is.finite(value) && value > 0) value else default
	}
	finish_plots()
	plots$directory <- tempfile("plots", tempdir(check = TRUE))
	dir.create(plots$directory, mode = "0700")
	grDevices::png(file.path(plots$directory, "%06d.png"), type = "cairo", units = "in",
		width = setting("width", 7), height = setting("height", 7), res = setting("res", 120))
	grDevices::dev.control("enable")
	plots$device <- grDevices::dev.cur()
	plots$sent <- 0L
}

plot_page <- function(number) file.path(plots$directory, sprintf("%06d.png", number))

send_page <- function(file) {
	size <- file.size(file)
	if (!is.na(size) && size > 0 && size < RESULT_BYTES_MAX / 2) {
		say_result(list(png = json_strings(base64(readBin(file, "raw", size)))), FALSE)
	}
	unlink(file)
}

# Sends the pages that nothing can be drawn on any more. A page is a file from its beginning: while the device
# is open, the last one is not finished.
send_finished <- function(all = FALSE) suspendInterrupts({
	while (!is.null(plots$directory)) {
		following <- plot_page(plots$sent + 2L)
		page <- plot_page(plots$sent + 1L)
		if (!file.exists(page) || !(all || file.exists(following))) break
		send_page(page)
		plots$sent <- plots$sent + 1L
	}
})

device_is_ours <- function() !is.null(plots$device) && plots$device %in% grDevices::dev.list()

# At the end of a cell.
finish_plots <- function() {
	if (device_is_ours()) grDevices::dev.off(plots$device)
	send_finished(all = TRUE)
	unlink(plots$directory, recursive = TRUE)
	plots$device <- plots$directory <- NULL
}

# Pages are sent as the next one begins, also from the middle of a loop.
plots_begin <- function() {
	options(device = plot_device)
	setHook("before.plot.new", function(...) send_finished())
	setHook("before.grid.newpage", function(...) send_finished())
}
