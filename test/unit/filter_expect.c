/* SPDX-License-Identifier: Apache-2.0 */
#include "filter_expect.h"

#include <errno.h>
#include <stdbool.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* linux/seccomp.h: the action in the upper half, the errno in the lower. */
static const uint32_t yes = 0x7fff0000;

static uint32_t no(uint32_t err)
{
	return 0x00050000 + err;
}

static uint32_t expect_socket(const uint32_t a[6])
{
	uint32_t family = a[0], type = a[1] % 16, protocol = a[2];

	if (family == 1) /* UNIX */
		return yes;
	if (family == 16) /* NETLINK */
		return protocol == 0 ? yes : no(EPROTONOSUPPORT);
	if (family != 2 && family != 10) /* INET, INET6 */
		return no(EAFNOSUPPORT);
	if (type == 3) /* RAW */
		return no(EPERM);
	if (type == 1 && (protocol == 0 || protocol == 6))
		return yes;
	if (type == 2 && (protocol == 0 || protocol == 1 || protocol == 17 || protocol == 58))
		return yes;
	return no(EPROTONOSUPPORT);
}

static uint32_t expect_socketpair(const uint32_t a[6])
{
	return a[0] == 1 ? yes : no(EAFNOSUPPORT);
}

static bool tcp_option_is_bad(uint32_t option)
{
	switch (option) {
	case 14: /* MD5SIG */
	case 19: /* REPAIR */
	case 31: /* ULP */
	case 32: /* MD5SIG_EXT */
	case 38: /* AO_ADD_KEY */
	case 39: /* AO_DEL_KEY */
	case 40: /* AO_INFO */
	case 42: /* AO_REPAIR */
		return true;
	default:
		return false;
	}
}

static uint32_t expect_setsockopt(const uint32_t a[6])
{
	uint32_t option = a[2];
	bool bad;

	switch (a[1]) {
	case 0: /* IP: iptables from 64 on, IPsec policies */
		bad = option > 63 || option == 16 || option == 17;
		break;
	case 1: /* SOCKET: eBPF programs */
		bad = option == 50 || option == 52;
		break;
	case 6:
		bad = tcp_option_is_bad(option);
		break;
	case 17: /* UDP: ESP in UDP */
		bad = option == 100;
		break;
	case 41: /* IPV6: ip6tables, IPsec policies */
		bad = option == 64 || option == 65 || option == 34 || option == 35;
		break;
	case 270: /* NETLINK */
		bad = false;
		break;
	default:
		bad = true;
	}
	return bad ? no(EPERM) : yes;
}

static uint32_t expect_ioctl(const uint32_t a[6])
{
	switch (a[1]) {
	case 0x5412: /* TIOCSTI */
	case 0x541c: /* TIOCLINUX */
	case 0x541d: /* TIOCCONS */
	case 0x5423: /* TIOCSETD */
		return no(EPERM);
	default:
		return yes;
	}
}

static uint32_t expect_clone(const uint32_t a[6])
{
	/* USER..NET are neighbours: UTS, IPC, USER, PID, NET from bit 26 to 30. */
	bool fresh = a[0] >> 26 & 31 || a[0] & 0x00020000 /* NS */ ||
		     a[0] & 0x02000000 /* CGROUP */ || a[0] & 0x80 /* TIME */;
	bool of_parent = a[0] & 0x8000;

	return fresh || of_parent ? no(EPERM) : yes;
}

static uint32_t expect_unshare(const uint32_t a[6])
{
	uint32_t rest = a[0];

	rest &= ~0x00000100u; /* VM */
	rest &= ~0x00000200u; /* FS */
	rest &= ~0x00000400u; /* FILES */
	rest &= ~0x00000800u; /* SIGHAND */
	rest &= ~0x00010000u; /* THREAD */
	rest &= ~0x00040000u; /* SYSVSEM */
	return rest == 0 ? yes : no(EPERM);
}

static uint32_t expect_mode(uint32_t mode)
{
	switch (mode / 010000 % 020) {
	case 000: /* nothing said: a regular file */
	case 001: /* FIFO */
	case 010: /* regular */
	case 014: /* socket */
		return yes;
	default:
		return no(EPERM);
	}
}

static uint32_t expect_mknodat(const uint32_t a[6])
{
	return expect_mode(a[2]);
}

#ifdef __x86_64__
static uint32_t expect_mknod(const uint32_t a[6])
{
	return expect_mode(a[1]);
}
#endif

/* Huge pages: MAP_HUGETLB, MFD_HUGETLB, SHM_HUGETLB. */
static uint32_t expect_mmap(const uint32_t a[6])
{
	return a[3] & 0x40000 ? no(ENOMEM) : yes;
}

static uint32_t expect_memfd_create(const uint32_t a[6])
{
	return a[1] & 4 ? no(ENOMEM) : yes;
}

static uint32_t expect_shmget(const uint32_t a[6])
{
	return a[2] & 04000 ? no(ENOMEM) : yes;
}

static uint32_t expect_personality(const uint32_t a[6])
{
	if (a[0] == UINT32_MAX)
		return yes;
	return (a[0] & ~0x20000u) == 0 || (a[0] & ~0x20000u) == 8 ? yes : no(EPERM);
}

static uint32_t expect_sched_setscheduler(const uint32_t a[6])
{
	uint32_t policy = a[1] & 0xbfffffff;

	return policy == 1 || policy == 2 || policy == 6 ? no(EPERM) : yes;
}

static uint32_t expect_ioprio_set(const uint32_t a[6])
{
	return a[2] / 8192 % 8 == 1 ? no(EPERM) : yes;
}

static uint32_t expect_seccomp(const uint32_t a[6])
{
	switch (a[0]) {
	case 0: /* strict */
		return no(EPERM);
	case 1: /* filter */
		return a[1] & 8 ? no(EPERM) : yes;
	case 2:
	case 3:
		return yes;
	default:
		return no(EINVAL);
	}
}

static bool is_one_of(uint32_t v, const uint32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

static uint32_t expect_prctl(const uint32_t a[6])
{
	/* The three large ones: AUXV, VMA, PTRACER. */
	static const uint32_t good[] = { 1,  2,  3,  4,  7,  8,          13,         14,
					 15, 16, 21, 23, 24, 25,         27,         28,
					 29, 30, 36, 37, 38, 39,         41,         42,
					 47, 52, 53, 65, 66, 0x41555856, 0x53564d41, 0x59616d61 };
#ifdef __aarch64__
	static const uint32_t arm[] = { 50, 51, 54, 55, 56, 60, 61, 63, 64, 74, 75, 76 };
#endif
	static const uint32_t bad[] = { 26, 31, 32, 33, 34, 35, 40, 57, 58, 59, 62, 67, 68 };

	if (is_one_of(a[0], good, LEN(good)))
		return yes;
#ifdef __aarch64__
	if (is_one_of(a[0], arm, LEN(arm)))
		return yes;
#endif
	if (a[0] == 22) /* SET_SECCOMP: filter, not strict */
		return a[1] == 2 ? yes : no(EPERM);
	return is_one_of(a[0], bad, LEN(bad)) ? no(EPERM) : no(EINVAL);
}

static const uint32_t type_extra[] = { 0x80001, 0x80002, 0x80003, 0x800 + 3, 0x80801,
				       0x80802, 0x8080a, 0x80805, 0x10003 };
static const uint32_t protocol_extra[] = { 262, 0x10006, UINT32_MAX };
static const uint32_t level_extra[] = { 279, 282, 283, 284, 0x10001, UINT32_MAX };
static const uint32_t ioctl_extra[] = { 0x5412, 0x541c, 0x541d, 0x5423, 0x5401, 0x5413 };
static const uint32_t clone_extra[] = { 0x01200011, 0x003d0f00, 0x4111, 0x7e020080 };
static const uint32_t mode_extra[] = { 0010644, 0020644, 0040755, 0060644, 0100644,
				       0120777, 0140755, 0170000, 0220644, 0400000 + 0020000 };
static const uint32_t mmap_extra[] = { 0x22, 0x40000, 0x40022, 0x78040022, 0x20022, 0x80022 };
static const uint32_t personality_extra[] = { 0x20000,  0x20008, 0x40000,   0x400000,
					      0x440000, 0x20018, UINT32_MAX };
static const uint32_t policy_extra[] = { 0x40000001, 0x40000002, 0x40000006, 0x40000000,
					 0x80000001 };
static const uint32_t ioprio_extra[] = { 0x2000, 0x2007,  0x3fff, 0x4000,
					 0x6007, 0x12000, 0xa000, 0xe000 };
static const uint32_t prctl_extra[] = { 0x41555856, 0x53564d41, 0x59616d61 };

#define EXTRA(list) (list), LEN(list)
#define NO_EXTRA NULL, 0

const struct expect_call expect_calls[] = {
	{ "socket",
	  expect_socket,
	  { { 0, 48, 1, NO_EXTRA },
	    { 1, 20, 0, EXTRA(type_extra) },
	    { 2, 140, 0, EXTRA(protocol_extra) } },
	  3 },
	{ "socketpair",
	  expect_socketpair,
	  { { 0, 64, 1, NO_EXTRA }, { 1, 8, 0, NO_EXTRA }, { 2, 8, 0, NO_EXTRA } },
	  3 },
	{ "setsockopt",
	  expect_setsockopt,
	  { { 1, 300, 1, EXTRA(level_extra) }, { 2, 300, 1, NO_EXTRA } },
	  2 },
	{ "ioctl", expect_ioctl, { { 1, 0x6000, 1, EXTRA(ioctl_extra) } }, 1 },
	{ "clone", expect_clone, { { 0, 0x1000, 1, EXTRA(clone_extra) } }, 1 },
	{ "unshare", expect_unshare, { { 0, 0x1000, 1, EXTRA(clone_extra) } }, 1 },
#ifdef __x86_64__
	{ "mknod", expect_mknod, { { 1, 0x10000, 1, EXTRA(mode_extra) } }, 1 },
#endif
	{ "mknodat", expect_mknodat, { { 2, 0x10000, 1, EXTRA(mode_extra) } }, 1 },
	{ "mmap", expect_mmap, { { 3, 300, 1, EXTRA(mmap_extra) } }, 1 },
	{ "memfd_create", expect_memfd_create, { { 1, 300, 1, NO_EXTRA } }, 1 },
	{ "shmget", expect_shmget, { { 2, 0x1000, 1, NO_EXTRA } }, 1 },
	{ "personality", expect_personality, { { 0, 300, 1, EXTRA(personality_extra) } }, 1 },
	{ "sched_setscheduler",
	  expect_sched_setscheduler,
	  { { 1, 300, 1, EXTRA(policy_extra) } },
	  1 },
	{ "ioprio_set", expect_ioprio_set, { { 2, 0x10000, 1, EXTRA(ioprio_extra) } }, 1 },
	{ "seccomp", expect_seccomp, { { 0, 300, 1, NO_EXTRA }, { 1, 300, 1, NO_EXTRA } }, 2 },
	{ "prctl", expect_prctl, { { 0, 300, 1, EXTRA(prctl_extra) }, { 1, 64, 1, NO_EXTRA } }, 2 },
};
const size_t n_expect_calls = LEN(expect_calls);
