/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter says (kernels/PROTOCOL.md), taken apart as it comes. Everything in it is
 * hostile. Pure: no system call, no allocation, nothing kept but the line in hand.
 */
#pragma once

#include "base/util.h"

#define KERNEL_LINE_MAX 32
#define KERNEL_EVENT_MAX (UINT64_C(32) << 20) /* bytes of one result or error */
#define KERNEL_NUMBER_DIGITS 10

enum kernel_word {
	KERNEL_WORD_READY,
	KERNEL_WORD_COUNT,
	KERNEL_WORD_RESULT,
	KERNEL_WORD_ERROR,
	KERNEL_WORD_END,
	_KERNEL_WORD_MAX,
};

/* All zero in the beginning. */
struct kernel_event {
	bool in_bytes;
	char line[KERNEL_LINE_MAX];
	size_t line_len;
	enum kernel_word word; /* of the message in hand, from BEGIN to FINISH */
	uint64_t left;         /* bytes of it that are still to come */
	uint64_t number;       /* ready, count: at FINISH */
};

struct kernel_bytes {
	const unsigned char *at;
	size_t len;
};

enum kernel_token {
	KERNEL_TOKEN_NONE,   /* in is empty: give more */
	KERNEL_TOKEN_BEGIN,  /* the line of a message */
	KERNEL_TOKEN_PIECE,  /* bytes of it, at least one */
	KERNEL_TOKEN_FINISH, /* all of them came */
};

/* Takes the next token off the front of in: enum kernel_token, or -EPROTO, after which nothing more
 * is to be made of it. */
_must_check_ int kernel_event_next(struct kernel_event *e, struct kernel_bytes *in,
				   struct kernel_bytes *ret_piece);
