/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/mnt.h"

int mnt_make(const char *type, const struct mnt_option *options, size_t n, unsigned attrs)
{
	_cleanup_(fd_closep) int fs_fd = mnt_fsopen(type);
	int r;

	if (fs_fd < 0)
		return fs_fd;
	for (size_t i = 0; i < n; i++) {
		r = options[i].value ?
			    mnt_fsconfig_string(fs_fd, options[i].key, options[i].value) :
			    mnt_fsconfig_flag(fs_fd, options[i].key);
		if (r < 0)
			return r;
	}
	r = mnt_fsconfig_create(fs_fd);
	return r < 0 ? r : mnt_fsmount(fs_fd, attrs);
}
