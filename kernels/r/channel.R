# SPDX-License-Identifier: Apache-2.0
#
# Requests and events over the pipes; channel.c does the reading and writing.

LINE_MAX <- 32L

symbols <- NULL # what channel.c offers
owner <- Sys.getpid()

channel_open <- function(file) {
	channel <- dyn.load(file)
	symbols <<- lapply(c(open = "gb_channel_open", line = "gb_channel_line", read = "gb_channel_read",
		write = "gb_channel_write"), getNativeSymbolInfo, channel)
	if (!.C(symbols$open, good = 0L)$good) stop("descriptors 3 and 4 are not open")
}

# The end of the file, or what is no request: the agent has gone.
channel_closed <- function() base::quit("no", 0, FALSE)

# The next request: list(word, bytes).
read_request <- function() {
	got <- .C(symbols$line, bytes = raw(LINE_MAX), LINE_MAX, length = 0L)
	line <- rawToChar(got$bytes[seq_len(got$length)])
	if (!grepl("^[a-z]{1,15} [0-9]{1,8}$", line, perl = TRUE)) channel_closed()
	parts <- strsplit(line, " ", fixed = TRUE)[[1]]
	size <- as.integer(parts[2])
	got <- .C(symbols$read, bytes = raw(size), size, length = 0L)
	if (got$length != size) channel_closed()
	list(word = parts[1], bytes = got$bytes)
}

# A child that a cell made with a bare fork comes here too, at the latest at the end of the cell. It is not the
# kernel.
say <- function(word, content = "") {
	if (Sys.getpid() != owner) tools::pskill(Sys.getpid(), tools::SIGKILL)
	bytes <- c(charToRaw(paste0(word, " ", nchar(content, "bytes"), "\n")), charToRaw(content))
	if (!.C(symbols$write, bytes, length(bytes), good = 0L)$good) channel_closed()
}
