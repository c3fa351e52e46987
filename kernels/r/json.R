# SPDX-License-Identifier: Apache-2.0
#
# JSON in ASCII, and base64: R has neither without a package.

# Bytes that are not UTF-8 are shown as R shows them, <ff>.
as_utf8 <- function(text) {
	text <- enc2utf8(as.character(text))
	broken <- !is.na(text) & !validUTF8(text)
	text[broken] <- iconv(text[broken], "UTF-8", "UTF-8", sub = "byte")
	text
}

# As UTF-16 has it: what is beyond 16 bits is a pair.
utf16 <- function(codes) {
	pair <- codes > 0xffff
	units <- rep(codes, 1L + pair)
	low <- cumsum(1L + pair)[pair]
	units[low - 1L] <- 0xd800 + (codes[pair] - 0x10000) %/% 0x400
	units[low] <- 0xdc00 + (codes[pair] - 0x10000) %% 0x400
	units
}

# One string with \uXXXX for all that is not printable ASCII; all characters at once, for it may be long.
escape_rest <- function(text) {
	units <- utf16(utf8ToInt(text))
	special <- units < 32 | units > 126
	size <- ifelse(special, 6L, 1L)
	start <- cumsum(size) - size + 1L
	bytes <- raw(sum(size))
	bytes[start[!special]] <- as.raw(units[!special])
	at <- start[special]
	bytes[at] <- charToRaw("\\")
	bytes[at + 1L] <- charToRaw("u")
	for (place in 0:3) {
		digit <- units[special] %/% 16^(3 - place) %% 16
		bytes[at + 2L + place] <- charToRaw("0123456789abcdef")[digit + 1]
	}
	rawToChar(bytes)
}

# Strings, each as JSON has it; NA is null.
json_strings <- function(text) {
	missing <- is.na(text)
	text <- gsub("([\\\\\"])", "\\\\\\1", as_utf8(text))
	special <- !missing & grepl("[^ -~]", text, perl = TRUE, useBytes = TRUE)
	text[special] <- vapply(text[special], escape_rest, "", USE.NAMES = FALSE)
	ifelse(missing, "null", paste0("\"", text, "\""))
}

# Numbers with as many digits as it takes to read the same number again. JSON has no infinity.
json_numbers <- function(x) {
	text <- sprintf("%.15g", x)
	exact <- is.finite(x) & as.numeric(text) == x
	ifelse(!is.finite(x), "null", ifelse(exact, text, sprintf("%.17g", x)))
}

# Named values that are JSON already.
json_object <- function(values) {
	names <- json_strings(names(values))
	paste0("{", paste0(names, ": ", unlist(values), collapse = ", "), "}")
}

json_array <- function(values) paste0("[", paste(values, collapse = ", "), "]")

base64 <- function(bytes) {
	alphabet <- charToRaw("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
	missing <- (3 - length(bytes) %% 3) %% 3
	bytes <- as.integer(c(bytes, raw(missing)))
	three <- matrix(bytes, nrow = 3)
	number <- three[1, ] * 65536L + three[2, ] * 256L + three[3, ]
	four <- rbind(number %/% 262144L, number %/% 4096L %% 64L, number %/% 64L %% 64L, number %% 64L)
	text <- alphabet[as.vector(four) + 1L]
	if (missing > 0) text[length(text) - seq_len(missing) + 1L] <- charToRaw("=")
	rawToChar(text)
}
