/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer is a file with this one function. libFuzzer, which has the main(), calls it with inputs of its own
 * making, or with the files that are named: `fuzz_NAME FILE...`. It asserts what is promised, and returns 0.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
