/* SPDX-License-Identifier: Apache-2.0 */
#include "template/template_priv.h"

#include "base/io.h"

#include <fcntl.h>

int template_write_file(int dir_fd, const char *name, mode_t mode, const void *data, size_t size)
{
	_cleanup_(fd_closep) int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	return fd < 0 ? -errno : io_write_all(fd, data, size);
}
