/* SPDX-License-Identifier: Apache-2.0 */
/* What boxes need of this machine: cgroups, user ids, the agent's image, and a clean start. */
#include "box/box.h"

#include "box/breakable.h"
#include "base/buf.h"
#include "base/parse.h"

#include <fcntl.h>
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

extern const unsigned char agent_image[], agent_image_end[];

/*
 * PR-07, FD-10: the agent runs from memory that nobody can write any more, so what happens to its
 * /proc/1/exe can never reach a file of the host or another box.
 */
static int make_agent(void)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	const unsigned char *image = agent_image;
	size_t size = (uintptr_t)agent_image_end - (uintptr_t)agent_image;
	_cleanup_(fd_closep) int fd = -EBADF;

#ifdef GLOVEBOX_BREAKABLE
	/* The tests of the host's side put a hostile agent in the real one's place. */
	_cleanup_(buf_done) struct buf other = BUF_INIT(16 << 20);

	if (getenv("GLOVEBOX_AGENT")) {
		_cleanup_(fd_closep) int file =
			open(getenv("GLOVEBOX_AGENT"), O_RDONLY | O_CLOEXEC);

		if (file < 0 || buf_read_fd(&other, file) < 0)
			return -ENOENT;
		image = other.data;
		size = other.len;
	}
#endif
	fd = memfd_create("glovebox-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every memfd was executable */
		fd = memfd_create("glovebox-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (write(fd, image, size) != (ssize_t)size)
		return -EIO;
	if (control_on("seal") && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_EXEC) < 0 &&
	    fcntl(fd, F_ADD_SEALS, seals) < 0)
		return -errno;
	return take_fd(&fd);
}

struct leftovers {
	struct ids_host *ids;
	int lock_fd; /* of the number that is being cleaned up: nobody may take it meanwhile */
};

/* "box-17" is a leftover when nobody alive has number 17. */
static bool is_stale(const char *name, void *arg)
{
	struct leftovers *l = arg;
	uint64_t number;

	fd_closep(&l->lock_fd);
	if (strncmp(name, "box-", 4) != 0 || parse_u64(name + 4, &number) < 0 ||
	    number >= l->ids->slots.count)
		return false;
	l->lock_fd = slots_take_number(&l->ids->slots, (uint32_t)number);
	return l->lock_fd >= 0;
}

static void remove_leftovers(struct box_host *h)
{
	struct leftovers l = { .ids = &h->ids, .lock_fd = -EBADF };

	/* What cannot be removed now is tried again at the next start. */
	(void)cgroup_reap(&h->cgroups, is_stale, &l);
	fd_closep(&l.lock_fd);
}

int box_host_open(struct box_host *ret, struct fail *fail)
{
	struct box_host h = BOX_HOST_INIT;
	int r = ids_host_open(&h.ids, fail);

	if (r < 0)
		return r;
	r = cgroup_host_open(&h.cgroups);
	if (r < 0) {
		ids_host_close(&h.ids);
		return fail_set(fail, -r, "cgroups", "cannot use cgroups: %s", strerror(-r));
	}
	remove_leftovers(&h);
	*ret = h;
	return 0;
}

int box_host_agent(struct box_host *h, struct fail *fail)
{
	int fd;

	if (h->agent_fd >= 0)
		return 0;
	fd = make_agent();
	if (fd < 0)
		return fail_set(fail, -fd, "agent", "cannot make the agent's memory file: %s%s",
				strerror(-fd),
				fd == -EACCES ? " (sysctl vm.memfd_noexec forbids it)" : "");
	h->agent_fd = fd;
	return 0;
}

void box_host_close(struct box_host *h)
{
	cgroup_host_close(&h->cgroups);
	ids_host_close(&h->ids);
	fd_closep(&h->agent_fd);
}
