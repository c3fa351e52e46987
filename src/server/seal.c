/* SPDX-License-Identifier: Apache-2.0 */
#include "server/seal.h"

#include "sys/landlock.h"
#include "wire/warden.h"

#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "server_filter_data.h"

static_assert(ARRAY_SIZE(server_filter_code) <= BPF_MAXINSNS, "longer than the kernel takes");

/* Sanitizers make calls, and start programs, that the room has no place for. Such a build is for tests only, and
 * /capabilities says so. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAN_SEAL false
#else
#define CAN_SEAL true
#endif

/* Libraries load code when they are first used: let them, while they can. */
static void warm_up(void)
{
	struct addrinfo *found = NULL;
	time_t now = 0;
	struct tm tm;

	if (getaddrinfo("localhost", "80", NULL, &found) == 0)
		freeaddrinfo(found);
	tzset();
	(void)localtime_r(&now, &tm);
}

/*
 * One line for each thing that is kept:
 *   the store's directory    read and write: the database
 *   /etc/ssl, ca-certificates   read: to know a webhook's certificate
 *   resolv.conf, hosts, …    read: to find a webhook's address
 *   /dev/null, urandom       what libraries open
 */
static int restrict_files(int *ret_abi, struct fail *fail)
{
	static const struct landlock_path paths[] = {
		{ "/proc/self/fd/5", LANDLOCK_READ | LANDLOCK_CHANGE },
		{ "/etc/ssl", LANDLOCK_READ },
		{ "/usr/share/ca-certificates", LANDLOCK_READ },
		{ "/usr/local/share/ca-certificates", LANDLOCK_READ },
		{ "/etc/pki", LANDLOCK_READ },
		{ "/etc/gnutls", LANDLOCK_READ },
		{ "/etc/resolv.conf", LANDLOCK_READ },
		{ "/run/systemd/resolve", LANDLOCK_READ },
		{ "/etc/hosts", LANDLOCK_READ },
		{ "/etc/host.conf", LANDLOCK_READ },
		{ "/etc/gai.conf", LANDLOCK_READ },
		{ "/etc/services", LANDLOCK_READ },
		{ "/etc/nsswitch.conf", LANDLOCK_READ },
		{ "/dev/null", LANDLOCK_READ | LANDLOCK_WRITE },
		{ "/dev/urandom", LANDLOCK_READ },
	};
	int r = landlock_restrict(paths, ARRAY_SIZE(paths), ret_abi);

	static_assert(WARDEN_STATE_FD == 5, "the first path names it");
	/* A kernel without it: the file modes and the filter remain, and /capabilities says so. */
	if (r == -EOPNOTSUPP)
		return 0;
	return r < 0 ? fail_set(fail, -r, "landlock", "cannot restrict the files: %s",
				strerror(-r)) :
		       0;
}

static int install_filter(void)
{
	/* The kernel only reads the program; the interface is older than const. */
	const struct sock_fprog prog = {
		.len = ARRAY_SIZE(server_filter_code),
		.filter = (struct sock_filter *)(uintptr_t)server_filter_code,
	};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &prog) < 0)
		return -errno;
	return 0;
}

int seal(struct server *s, struct fail *fail)
{
	struct rlimit none = { 0 };
	int r;

	warm_up();
	if (!CAN_SEAL)
		return 0;
	/* AP-17: keys and tokens are in this memory. */
	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_set(fail, errno, "seal", "cannot give up privileges: %s",
				strerror(errno));
	r = restrict_files(&s->landlock_abi, fail);
	if (r < 0)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail_set(fail, errno, "seal", "cannot hide the memory: %s", strerror(errno));
	r = install_filter();
	s->has_filter = r == 0;
	return r < 0 ? fail_set(fail, -r, "seccomp", "cannot filter system calls: %s",
				strerror(-r)) :
		       0;
}
