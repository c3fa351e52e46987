/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the store: a directory for each test, and things to put into it. */
#pragma once

#include "store/store.h"

/* The test's state is the path of its directory. */
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_test_begin, store_test_end)

int store_test_begin(void **state);
int store_test_end(void **state);

/* These check that it works. */
struct store *open_store(const char *dir);
int open_dir(const char *dir);

/* A key that the sandboxes below belong to; the same for all stores of one test. */
extern struct store_key test_key;
void make_key(struct store *s);

void make_sandbox(struct store_sandbox *b, const char *id);
/* Number i: id "i…", ended at i; stands on layer "low". */
void add_sandbox(struct store *s, int i, enum store_state state);
size_t count_rows(struct store *s);

/* Is this text in a file of the directory? */
bool files_contain(const char *dir, const char *text);
