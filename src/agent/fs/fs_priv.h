/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file operations share. Each runs in a process of its own that does nothing else, so
 * buffers are static, the working directory is the operation's, and what is still open or
 * allocated at the end goes with the process. What would stay, in the box's file system, is undone
 * by hand.
 */
#pragma once

#include "agent/fs/fs.h"

#include <sys/stat.h>

#define FS_PATH_SIZE (WIRE_PATH_MAX + 1)
#define FS_OWNER_SIZE (WIRE_USER_MAX + 1)
#define FS_ATTR_PREFIX "user.e2b."
#define FS_UPLOAD_PREFIX ".glovebox-upload-"

/* Bounds: paths of one JOIN, and bytes of all attributes that one request sets. */
#define FS_SOURCES_MAX 128
#define FS_PATHS_MAX (1 + FS_SOURCES_MAX)
#define FS_ATTRS_MAX 4096
#define FS_ATTR_KEY_MAX 246 /* with the prefix as long as the kernel takes */
/* Bytes of the attributes in one ENTRY; what is beyond is left out. */
#define FS_ATTRS_SHOWN_MAX 16384
/* Links followed for one path, as the kernel does. */
#define FS_LINKS_MAX 40
/* Bytes of a file whose size is not known before: those of /proc. */
#define FS_PSEUDO_MAX (UINT32_C(1) << 20)
#define FS_SMALL_MAX 65536 /* of files that are read as a whole: what a pipe takes at once */
/* Memory for the names of a list: of the directories between its root and the one in hand. */
#define FS_LIST_BYTES_MAX (UINT32_C(64) << 20)
/* Levels of a tree that is removed (16 bytes each), and of one that is copied (two descriptors
 * each). */
#define FS_REMOVE_DEPTH_MAX (UINT32_C(1) << 20)
#define FS_COPY_DEPTH_MAX 200
/* Directories watched by one WATCH; the kernel keeps about 1 KiB for each. */
#define FS_WATCHES_MAX 8192

/* --- fs/request.c: what is asked ------------------------------------------------------------- */

struct fs_request {
	struct wire_fs fs;
	char user[FS_OWNER_SIZE]; /* "": nobody was named */
	size_t n_paths;
	char paths[FS_PATHS_MAX]
		  [FS_PATH_SIZE]; /* the client's text; resolved before an operation begins */
	size_t attrs_len;
	char attrs[FS_ATTRS_MAX]; /* key, NUL, value, NUL… */
};

/* Reads up to GO. -ECANCELED when the other side hung up. *ret_pipe is what came with GO, or
 * -EBADF. */
_must_check_ int fs_request_read(int sock, const struct wire_fs *fs, struct fs_request *ret,
				 int *ret_pipe);

/* --- fs/fs.c --------------------------------------------------------------------------------- */

/* One operation: 0 (then DONE is sent) or a negative errno. */
struct fs {
	int sock;
	struct fs_request *request;
	int pipe_fd; /* READ: where the bytes go; -EBADF: into DATA frames */
};

int fs_stat(struct fs *fs);
int fs_mkdir(struct fs *fs);
int fs_move(struct fs *fs);
int fs_list(struct fs *fs);
int fs_remove(struct fs *fs);
int fs_read(struct fs *fs);
int fs_write(struct fs *fs);
int fs_watch(struct fs *fs); /* returns only what failed before the watching began */
int fs_join(struct fs *fs);

/* Has the other side gone? For work that neither sends nor receives. */
bool fs_hung_up(int sock);

/* --- fs/path.c ------------------------------------------------------------------------------- */

/* The client's text as an absolute path without ".", ".." and doubled slashes. It is taken by its
 * letters, as E2B's SDKs expect: "a/../b" is "b" whatever "a" is. */
_must_check_ int fs_path_resolve(const char *home, const char *text, char ret[FS_PATH_SIZE]);

/* dir + "/" + name; -ENAMETOOLONG. */
_must_check_ int fs_path_join(const char *dir, const char *name, char ret[FS_PATH_SIZE]);

/* Replaces a path that is a link by where it leads, whether or not anything is there. */
_must_check_ int fs_path_follow(char path[FS_PATH_SIZE]);

/* Splits off the last component: what is above it, and where in path it begins. */
_must_check_ int fs_path_split(const char *path, char ret_dir[FS_PATH_SIZE], const char **ret_base);

/* The directories above a path that had to be made for it. */
struct fs_parents {
	char path[FS_PATH_SIZE]; /* the lowest of them */
	size_t first;            /* length of the highest one that was made; 0: none was */
};

/* On failure nothing that it made is left. */
_must_check_ int fs_parents_make(const char *path, struct fs_parents *ret);
void fs_parents_unmake(struct fs_parents *p);

/* --- fs/entry.c ------------------------------------------------------------------------------ */

/* The name of an id in the text of a passwd or group file; false when it is not there. */
bool fs_names_find(const char *text, size_t len, uint32_t id, char ret[FS_OWNER_SIZE]);

struct fs_entry {
	struct stat st; /* of the name itself, not of where a link leads */
	size_t len;
	unsigned char data[WIRE_DATA_MAX]; /* the payload of ENTRY */
};

/* What is found at a place, told under the path shown. */
_must_check_ int fs_entry_look(const char *at, const char *shown, struct fs_entry *ret);

/* An opened file, with the size that will be told. */
_must_check_ int fs_entry_opened(int fd, uint64_t size, const char *shown, struct fs_entry *ret);

_must_check_ int fs_entry_send(int sock, const struct fs_entry *e);

/* Looks and sends. */
_must_check_ int fs_entry_tell(int sock, const char *at, const char *shown);

/* --- fs/read.c ------------------------------------------------------------------------------- */

/* Opens a regular file without ever waiting. */
_must_check_ int fs_open_regular(const char *path, struct stat *ret);

/* --- fs/write.c ------------------------------------------------------------------------------ */

/* A name for something that is not yet what it shall be. */
_must_check_ int fs_temp_name(bool replaces, char *ret, size_t size);
/* Is this such a name, and of something that takes the place of another? */
bool fs_is_temp_name(const char *name, bool *ret_replaces);

/* --- fs/tree.c: whole trees ------------------------------------------------------------------ */

/* Removes what is at name in a directory, with everything below. sock: given up when hung up;
 * -EBADF: never. */
_must_check_ int fs_remove_at(int dir_fd, const char *name, int sock);

/* Copies what is at from into a new name of a directory. What was copied before a failure is
 * left. */
_must_check_ int fs_copy_at(const char *from, int dir_fd, const char *name, int sock);
