# SPDX-License-Identifier: Apache-2.0
#
# What a value of a cell looks like: as R prints it, and for data frames and matrices as tables too.

SHOWN_ROWS <- 60L
SHOWN_COLUMNS <- 20L
DATA_VALUES_MAX <- 100000L
RESULT_BYTES_MAX <- 24 * 1024 * 1024

# Prints as R does at its prompt: with the methods of the cells, which are in the global environment.
print_value <- function(value) {
	scope <- new.env(parent = globalenv())
	scope$x <- value
	eval(quote(print(x)), scope)
}

# What print_value() prints, without the last newline.
captured_print <- function(value) {
	connection <- rawConnection(raw(), "wb")
	sink(connection)
	depth <- sink.number()
	on.exit({
		while (sink.number() >= depth) sink()
		close(connection)
	})
	print_value(value)
	as_utf8(sub("\n$", "", rawToChar(rawConnectionValue(connection))))
}

# The values of a column as JSON. Dates are ISO 8601, what has no JSON is text.
json_column <- function(column) {
	if (inherits(column, "POSIXt")) {
		column <- format(as.POSIXct(column), "%Y-%m-%dT%H:%M:%OS3%z")
	} else if (inherits(column, "Date")) {
		column <- format(column, "%Y-%m-%d")
	} else if (is.list(column)) {
		column <- vapply(column, function(x) paste(deparse(x), collapse = " "), "")
	} else if (is.object(column) && !is.numeric(column)) {
		column <- as.character(column)
	}
	column <- as.vector(column)
	json_array(if (is.logical(column)) ifelse(is.na(column), "null", tolower(column))
		else if (is.numeric(column)) json_numbers(as.numeric(column))
		else json_strings(as.character(column)))
}

frame_data <- function(frame) {
	columns <- lapply(seq_along(frame), function(i) json_column(frame[[i]]))
	names(columns) <- names(frame)
	json_object(columns)
}

# A table of strings with a header, cut to what a person can read.
as_table <- function(value) {
	rows <- utils::head(seq_len(nrow(value)), SHOWN_ROWS)
	columns <- utils::head(seq_len(ncol(value)), SHOWN_COLUMNS)
	cut <- value[rows, columns, drop = FALSE]
	body <- if (is.data.frame(cut)) vapply(cut, function(x) trimws(format(x)), character(length(rows)))
		else trimws(format(cut))
	body <- matrix(as_utf8(body), nrow = length(rows))
	names <- if (is.null(rownames(cut))) as.character(rows) else rownames(cut)
	titles <- if (is.null(colnames(cut))) paste0("V", columns) else colnames(cut)
	if (ncol(value) > length(columns)) {
		body <- cbind(body, rep("\u2026", nrow(body)))
		titles <- c(titles, "\u2026")
	}
	if (nrow(value) > length(rows)) {
		body <- rbind(body, "\u2026")
		names <- c(names, "\u2026")
	}
	list(titles = as_utf8(titles), names = as_utf8(names), body = body)
}

escape_html <- function(text) {
	gsub("\"", "&quot;", gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", text, fixed = TRUE),
		fixed = TRUE), fixed = TRUE), fixed = TRUE)
}

table_html <- function(table) {
	cells <- apply(table$body, 1, function(row) paste0("<td>", escape_html(row), "</td>", collapse = ""))
	head <- paste0("<th>", escape_html(table$titles), "</th>", collapse = "")
	rows <- sprintf("<tr><th>%s</th>%s</tr>\n", escape_html(table$names), cells)
	paste0("<table>\n<thead>\n<tr><th></th>", head, "</tr>\n</thead>\n<tbody>\n",
		paste(rows, collapse = ""), "</tbody>\n</table>")
}

table_markdown <- function(table) {
	plain <- function(text) gsub("|", "\\|", gsub("[\r\n]+", " ", text), fixed = TRUE)
	line <- function(cells) paste0("| ", paste(plain(cells), collapse = " | "), " |")
	rows <- vapply(seq_along(table$names), function(i) line(c(table$names[i], table$body[i, ])), "")
	paste(c(line(c("", table$titles)), line(rep("---", length(table$titles) + 1)), rows), collapse = "\n")
}

# The fields of a result for a visible value. A table that cannot be made leaves the text alone.
value_fields <- function(value) {
	fields <- list(text = json_strings(captured_print(value)))
	tabular <- is.data.frame(value) || (is.matrix(value) && is.atomic(value))
	if (!tabular || ncol(value) == 0 || nrow(value) == 0) return(fields)
	tryCatch({
		table <- as_table(value)
		fields$html <- json_strings(table_html(table))
		fields$markdown <- json_strings(table_markdown(table))
		if (is.data.frame(value) && nrow(value) * ncol(value) <= DATA_VALUES_MAX)
			fields$data <- frame_data(value)
	}, error = function(e) NULL)
	fields
}

say_result <- function(fields, main) {
	fields$is_main_result <- if (main) "true" else "false"
	object <- json_object(fields)
	if (nchar(object, "bytes") > RESULT_BYTES_MAX) {
		fields <- list(text = json_strings("the result is too large to be shown"),
			is_main_result = fields$is_main_result)
		object <- json_object(fields)
	}
	say("result", object)
}
