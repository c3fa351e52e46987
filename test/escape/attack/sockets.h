/* SPDX-License-Identifier: Apache-2.0 */
/* SC-18, SC-19, SC-20, SC-22: sockets of other families and protocols, and options that add some. */
#pragma once

#include "probe.h"

#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static int sc18(void)
{
	int bad = 0;

	for (int family = 0; family < 64; family++) {
		int fine = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
			   family == AF_NETLINK;

		for (unsigned long type = 1; type <= 10; type++) {
			int fd = socket(family, (int)type, 0), pair[2];

			if (!fine && (fd >= 0 || errno != EAFNOSUPPORT))
				bad |= BREACH("socket(%d, %lu): %m", family, type);
			if (fd >= 0)
				close(fd);
			if (family != AF_UNIX &&
			    (socketpair(family, (int)type, 0, pair) == 0 || errno != EAFNOSUPPORT))
				bad |= BREACH("socketpair(%d, %lu): %m", family, type);
		}
		if (!fine) {
			struct call c =
				CALL(socket, EAFNOSUPPORT, (unsigned long)family, SOCK_DGRAM, 0);

			bad |= all_refused(&c, 1);
		}
	}
	return bad;
}

static int sc19(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), bad = 0;

	if (fd < 0)
		bad |= BREACH("getifaddrs cannot work: %m");
	for (unsigned long protocol = 1; protocol < 32; protocol++) {
		struct call c = CALL(socket, EPROTONOSUPPORT, AF_NETLINK, SOCK_RAW, protocol);

		bad |= all_refused(&c, 1);
	}
	return bad;
}

static int sc20(void)
{
	static const unsigned long families[] = { AF_INET, AF_INET6 };
	int bad = 0;

	for (size_t i = 0; i < N_ELEM(families); i++) {
		unsigned long f = families[i];
		struct call calls[] = {
			CALL(socket, EPROTONOSUPPORT, f, SOCK_STREAM, 132), /* SCTP */
			CALL(socket, EPROTONOSUPPORT, f, SOCK_SEQPACKET, 132),
			CALL(socket, EPROTONOSUPPORT, f, 6, 33),            /* DCCP */
			CALL(socket, EPROTONOSUPPORT, f, SOCK_STREAM, 262), /* MPTCP */
			CALL(socket, EPROTONOSUPPORT, f, SOCK_DGRAM, 136),  /* UDP-Lite */
			CALL(socket, EPROTONOSUPPORT, f, SOCK_DGRAM, 115),  /* L2TP */
			CALL(socket, EPROTONOSUPPORT, f, SOCK_STREAM, 256), /* SMC */
			CALL(socket, EPERM, f, SOCK_RAW, 0),
			CALL(socket, EPERM, f, SOCK_RAW, 255),
			CALL(socket, EPERM, f, SOCK_RAW, IPPROTO_ICMP),
			CALL(socket, EPERM, f, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			     IPPROTO_TCP),
			CALL(socket, EPROTONOSUPPORT, f, SOCK_PACKET, 0x300),
		};

		bad |= all_refused(calls, N_ELEM(calls));
		if (socket((int)f, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ||
		    socket((int)f, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP) < 0)
			bad |= BREACH("TCP or UDP is refused: %m");
	}
	return bad;
}

static int sc22(void)
{
	static const struct {
		unsigned long level, option;
	} options[] = {
		{ SOL_TCP, 31 },  { SOL_TCP, 14 },      { SOL_TCP, 19 },    { SOL_TCP, 38 },
		{ 17, 100 },      { 136, 100 },         { SOL_SOCKET, 50 }, { SOL_SOCKET, 52 },
		{ SOL_IP, 64 },   { SOL_IP, 65 },       { SOL_IP, 96 },     { SOL_IP, 16 },
		{ SOL_IP, 17 },   { SOL_IPV6, 64 },     { SOL_IPV6, 65 },   { SOL_IPV6, 34 },
		{ SOL_IPV6, 35 }, { 282 /* TLS */, 1 }, { 273, 1 },         { 279 /* ALG */, 1 },
	};
	int tcp = socket(AF_INET, SOCK_STREAM, 0), one = 1, bad = 0;

	for (size_t i = 0; i < N_ELEM(options); i++) {
		struct call c = CALL(setsockopt, EPERM, (unsigned long)tcp, options[i].level,
				     options[i].option, NOWHERE, 4);

		bad |= all_refused(&c, 1);
	}
	if (setsockopt(tcp, SOL_TCP, TCP_ULP, "tls", 3) == 0 || errno != EPERM)
		bad |= BREACH("TCP_ULP tls: %m");
	if (setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    setsockopt(tcp, SOL_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		bad |= BREACH("an ordinary option is refused: %m");
	return bad;
}
