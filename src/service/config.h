/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of `glovebox serve`: flag > environment > file > default. One table (config.def) is
 * what the file, the flags, the environment, `glovebox config show` and the documentation are made
 * from.
 */
#pragma once

#include "base/fail.h"

#include <sys/socket.h>

#define CONFIG_TEXT_SIZE 1024

/* One number for each setting: its place in the table. */
enum config_setting {
#define TEXT(section, key, def, help) CONFIG_##section##_##key,
#define BYTES(section, key, def, min, max, help) CONFIG_##section##_##key,
#define COUNT(section, key, def, min, max, help) CONFIG_##section##_##key,
#define MILLIS(section, key, def, min, max, help) CONFIG_##section##_##key,
#define CPUS(section, key, def, min, max, help) CONFIG_##section##_##key,
#define FLAG(section, key, def, help) CONFIG_##section##_##key,
#include "service/config.def"
#undef TEXT
#undef BYTES
#undef COUNT
#undef MILLIS
#undef CPUS
#undef FLAG
	_CONFIG_MAX,
};

/* Where a value comes from; a higher one wins, in whatever order they are read. */
enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG };

struct config {
#define TEXT(section, key, def, help) char section##_##key[CONFIG_TEXT_SIZE];
#define BYTES(section, key, def, min, max, help) uint64_t section##_##key;
#define COUNT(section, key, def, min, max, help) uint64_t section##_##key;
#define MILLIS(section, key, def, min, max, help) uint64_t section##_##key;
#define CPUS(section, key, def, min, max, help) uint64_t section##_##key;
#define FLAG(section, key, def, help) bool section##_##key;
#include "service/config.def"
#undef TEXT
#undef BYTES
#undef COUNT
#undef MILLIS
#undef CPUS
#undef FLAG
	uint8_t source[_CONFIG_MAX]; /* enum config_source */
};

/* All defaults. */
void config_init(struct config *c);

/*
 * One setting by its name, "section.key", as text: what a flag says, so nothing read from the
 * environment or a file replaces it. -ENOENT: no such setting; -EINVAL, -ERANGE.
 */
_must_check_ int config_set(struct config *c, const char *name, const char *value,
			    struct fail *fail);

/*
 * The file: flat sections, "key = value", '#' comments, strings in double quotes, true and false: a
 * subset of TOML. An unknown section or key, or one given twice, is an error that names the line.
 */
_must_check_ int config_read_file(struct config *c, const char *path, struct fail *fail);

/* The same for text that has been read; where is the file's name in errors. */
_must_check_ int config_parse(struct config *c, const char *where, const char *text, size_t len,
			      struct fail *fail);

/* What GLOVEBOX_SECTION_KEY variables say. */
_must_check_ int config_read_environment(struct config *c, char *const *environ_,
					 struct fail *fail);

/* The file that is read when none is named: /etc/glovebox/glovebox.toml, for a user
 * ~/.config/glovebox/glovebox.toml. -ENAMETOOLONG; -ENOENT: a user without HOME. */
_must_check_ int config_usual_file(char *ret, size_t size);

/* Everything after the flags: the file (path, or the usual one if it is there), the environment,
 * and config_check(). */
_must_check_ int config_load(struct config *c, const char *path, char *const *environ_,
			     struct fail *fail);

/* Do the settings go together? After all of them have been read. */
_must_check_ int config_check(const struct config *c, struct fail *fail);

/* "127.0.0.1:7070" or "[::1]:7070": numbers only, so that what is bound is what was written. */
_must_check_ int config_parse_listen(const char *text, struct sockaddr_storage *ret,
				     socklen_t *ret_len);

/* Where the service keeps its things: server.state, or what is usual for this user. -ENAMETOOLONG;
 * -ENOENT: a user without HOME. */
_must_check_ int config_state_dir(const struct config *c, char *ret, size_t size);

/* Where the operator's rule sets are: egress.sets, or egress/ beside the usual settings file.
 * -ENAMETOOLONG; -ENOENT: a user without HOME. */
_must_check_ int config_sets_dir(const struct config *c, char *ret, size_t size);

/* The setting that a flag means ("--listen", "--sandbox-memory"), as "section.key"; NULL: none. */
const char *config_flag_name(const char *flag);

/* All settings in order, as text: for `glovebox config show` and for handing them to the server
 * room. */
size_t config_count(void);
const char *config_name(size_t i); /* "section.key" */
const char *config_help(size_t i);
bool config_is_quoted(size_t i); /* in a file it is written with quotes */
_must_check_ int config_text(const struct config *c, size_t i, char *ret,
			     size_t size); /* -ENOBUFS */
