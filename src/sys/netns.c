/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/netns.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#define LO_INDEX 1 /* of `lo` in every network namespace */
#define ANSWER_SIZE 8192
#define PATIENCE_S 5

int netns_lo_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	_cleanup_(fd_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int open_netlink(int protocol)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	_cleanup_(fd_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return take_fd(&fd);
}

/* Counts the acknowledgements in one packet; the first error ends it. */
static int count_acks(const char *bytes, size_t len, unsigned *n_acks)
{
	while (len >= sizeof(struct nlmsghdr)) {
		struct nlmsgerr error;
		struct nlmsghdr head;

		memcpy(&head, bytes, sizeof(head));
		if (head.nlmsg_len < NLMSG_LENGTH(sizeof(error)) || head.nlmsg_len > len ||
		    head.nlmsg_type != NLMSG_ERROR)
			return -EPROTO;
		memcpy(&error, bytes + NLMSG_HDRLEN, sizeof(error));
		if (error.error)
			return error.error < 0 ? error.error : -EPROTO;
		if ((*n_acks)-- == 0)
			return -EPROTO;
		bytes += MIN(NLMSG_ALIGN(head.nlmsg_len), len);
		len -= MIN(NLMSG_ALIGN(head.nlmsg_len), len);
	}
	return 0;
}

static int ask_kernel(int protocol, const void *request, size_t len, unsigned n_acks)
{
	_cleanup_(fd_closep) int fd = open_netlink(protocol);
	char answer[ANSWER_SIZE];
	int r = 0;

	if (fd < 0)
		return fd;
	if (send(fd, request, len, 0) != (ssize_t)len)
		return -errno;
	while (r == 0 && n_acks) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		r = n < 0 ? -errno : n == 0 ? -EPROTO : count_acks(answer, (size_t)n, &n_acks);
	}
	return r;
}

int netns_route_all_to_lo(int family)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr device;
		uint32_t index;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type = RTM_NEWROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.route = { .rtm_family = (unsigned char)family,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_STATIC,
			   .rtm_scope = RT_SCOPE_HOST,
			   .rtm_type = RTN_LOCAL },
		.device = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF },
		.index = LO_INDEX,
	};

	return ask_kernel(NETLINK_ROUTE, &ask, sizeof(ask), 1);
}

int netns_rules(const void *batch, size_t len, unsigned n_acks)
{
	return ask_kernel(NETLINK_NETFILTER, batch, len, n_acks);
}
