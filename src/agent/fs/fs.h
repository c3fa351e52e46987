/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations for the service: one forked child each, which reads what is asked (USER, PATH,
 * ATTR, GO), becomes the user, and only then touches a file. So it can do nothing that the user
 * could not do, and links planted in the box lead nowhere but there.
 *
 * Every operation but WATCH ends with DONE, behind whatever it has to say, or with FAILED; nothing
 * follows either. The peer's hang-up ends any of them.
 *
 *   STAT, MKDIR,  ENTRY, DONE
 *   MOVE, JOIN
 *   REMOVE        DONE
 *   LIST          ENTRY…, DONE: the directory itself is not among them, a directory comes before
 *                 what is in it, names are in the order of their bytes. Left out is what the user
 *                 may not look into, and what has no path within WIRE_PATH_MAX.
 *   READ          ENTRY, DATA…, DONE. Where a pipe came with GO, the bytes go into it instead of
 *                 DATA frames: the kernel moves them there without a copy. The ENTRY is the opened
 *                 file's (a link was followed) and its size is the whole file's. What is sent of it
 *                 lies between offset and offset + length; it is nothing when offset is behind the
 *                 end or length is 0. FAILED behind the ENTRY
 *                 means that the promised bytes will not come: the file was cut short (ENODATA) or
 *                 cannot be read on.
 *   WRITE         After GO: DATA…, FILE_END; then ENTRY, DONE. FAILED may come at any time; what is
 *                 sent after that is dropped, up to FILE_END. PIPE may stand in the place of DATA:
 *                 so many bytes are read from the pipe that came with it before the next frame is.
 *                 A pipe that ends sooner is a hang-up. FAILED closes it, which is how its writer
 *                 notices.
 *   WATCH         DONE once watching, then CHANGEs, each with has_entry followed by its ENTRY.
 *
 * FAILED says which step, and an errno of Linux:
 *
 *   REQUEST  EPROTO        a frame that does not belong there
 *            EINVAL        a number, path or attribute that no request may have
 *            E2BIG         more paths or attributes than there may be
 *            EAGAIN        too many file operations at once in this box (main.c)
 *   USER     ENOENT        there is no such user
 *   DROP     EPERM, …      the user cannot be become
 *   FILE     ENOENT        it does not exist; MOVE, JOIN: a source
 *            EEXIST        MKDIR: it is a directory already. MOVE: the destination is in use
 *            ENOTEMPTY     MOVE: the destination is a directory with something in it
 *            ENOTDIR       a directory was needed, and this or something on the way is none. MKDIR:
 *                          something else has that name
 *            EISDIR        READ, WRITE, JOIN: it is a directory. MOVE: the destination is one
 *            EINVAL        READ, WRITE, JOIN: a pipe, socket or device. MOVE: into itself.
 *                          REMOVE: "/". Any: "~name"
 *            EACCES, EPERM, EROFS  the user may not
 *            ENAMETOOLONG  the path
 *            ELOOP         the path; MOVE: a tree too deep for another file system
 *            ENOSPC, EDQUOT  the box's disk is full: bytes or files
 *            EFBIG         READ: a file of /proc larger than FS_PSEUDO_MAX. WRITE: too large
 *            EMFILE        WATCH: more directories than can be watched, or too many watchers
 *            ENOBUFS       LIST: a directory with more names than can be sorted
 *            EOPNOTSUPP    WRITE, JOIN: the file system keeps no attributes
 *            EBUSY         REMOVE, MOVE: something is mounted there
 *            ENODATA       READ, JOIN: the file became shorter while it was read
 *            EAGAIN        READ, JOIN: somebody in the box holds a lease on it. MKDIR: try again
 *            ESTALE        REMOVE: somebody moved the directory while it was being emptied
 *            others        faults of the box: EIO, ENOMEM
 *
 * While a file is being written it lies beside its final name as ".glovebox-upload-…" and appears
 * under it in one step. Such names are neither listed nor told by WATCH.
 */
#pragma once

#include "agent/agent.h"

/* The forked child of a file operation: never returns. sock blocks. */
_noreturn_ void agent_fs_run(const struct wire_fs *request, int sock);

/* fs/transfer.c: the forked child of a file transfer: never returns. */
_noreturn_ void agent_files_run(enum wire_type type, const struct wire_files *request, int sock);
