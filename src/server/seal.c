/* SPDX-License-Identifier: Apache-2.0 */
#include "server/seal.h"

#include "sys/seal.h"
#include "wire/warden.h"

#include <assert.h>
#include <netdb.h>
#include <time.h>

#include "server_filter_data.h"

static_assert(ARRAY_SIZE(server_filter_code) <= BPF_MAXINSNS, "longer than the kernel takes");

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
static_assert(WARDEN_STATE_FD == 5, "the first path names it");

int seal(struct server *s, struct fail *fail)
{
	const struct seal kept = { .paths = paths,
				   .n_paths = ARRAY_SIZE(paths),
				   .filter = server_filter_code,
				   .filter_len = ARRAY_SIZE(server_filter_code) };
	int r;

	warm_up();
	r = seal_room(&kept, &s->landlock_abi, fail);
	s->has_filter = r == 0 && seal_has_filter();
	return r;
}
