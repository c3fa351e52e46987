/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting a packet out of a box that has no network. Outside, `watch` is an interface with a default
 * route behind which nobody is: it prints what arrives there.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const char *arg = "";

struct place {
	struct sockaddr_storage address;
	socklen_t len;
};

static struct place place(const char *host, unsigned port)
{
	struct place p = { 0 };
	struct sockaddr_in *v4 = (void *)&p.address;
	struct sockaddr_in6 *v6 = (void *)&p.address;

	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		p.len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		p.len = sizeof(*v6);
	}
	return p;
}

static int is_no_route(int err)
{
	return err == ENETUNREACH || err == EHOSTUNREACH || err == ENETDOWN;
}

/* One address, every ordinary way. 0 when each of them says that there is no way. */
static int no_way_to(const char *host, unsigned port)
{
	struct place p = place(host, port);
	int family = p.address.ss_family, bad = 0;
	int tcp = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0),
	    udp = socket(family, SOCK_DGRAM, 0);
	int ping = socket(family, SOCK_DGRAM, family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6);

	if (connect(tcp, (void *)&p.address, p.len) == 0 || !is_no_route(errno))
		bad |= BREACH("TCP to %s %u: %m", host, port);
	if (sendto(udp, "x", 1, 0, (void *)&p.address, p.len) >= 0 || !is_no_route(errno))
		bad |= BREACH("UDP to %s %u: %m", host, port);
	if (connect(udp, (void *)&p.address, p.len) == 0)
		bad |= BREACH("UDP has a route to %s", host);
	if (ping >= 0 && (sendto(ping, "\10\0\0\0\0\0\0\0", 8, 0, (void *)&p.address, p.len) >= 0 ||
			  !is_no_route(errno)))
		bad |= BREACH("ICMP to %s: %m", host);
	close(tcp);
	close(udp);
	close(ping);
	return bad;
}

static int only_lo(void)
{
	struct if_nameindex *names = if_nameindex();
	struct ifaddrs *all = NULL;
	int bad = 0;

	if (!names || getifaddrs(&all) < 0)
		return BREACH("cannot list interfaces: %m");
	for (size_t i = 0; names[i].if_index; i++)
		if (strcmp(names[i].if_name, "lo") != 0)
			bad |= BREACH("interface %s", names[i].if_name);
	for (struct ifaddrs *a = all; a; a = a->ifa_next) {
		struct sockaddr_in6 *v6 = (void *)a->ifa_addr;
		struct sockaddr_in *v4 = (void *)a->ifa_addr;

		if (!a->ifa_addr)
			continue;
		if (v4->sin_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 != 127)
			bad |= BREACH("an IPv4 address on %s", a->ifa_name);
		if (v6->sin6_family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr))
			bad |= BREACH("an IPv6 address on %s", a->ifa_name);
	}
	return bad;
}

static int nw01(void)
{
	static const char *const hosts[] = { "1.1.1.1",
					     "8.8.8.8",
					     "192.0.2.77",
					     "10.0.0.1",
					     "169.254.169.254",
					     "2606:4700:4700::1111",
					     "2001:4860:4860::8888",
					     "fd00:ec2::254",
					     "64:ff9b::101:101" };
	int bad = only_lo();

	for (size_t i = 0; i < N_ELEM(hosts); i++)
		bad |= no_way_to(hosts[i], 80) | no_way_to(hosts[i], 443);
	return bad ? 1 : SAFE("no way out");
}

/* --- Listening, on the host or in another box --------------------------------------------------- */

static int listen_at(const char *host, int kind, unsigned *port)
{
	struct place p = place(host, *port);
	struct sockaddr_storage got;
	socklen_t len = sizeof(got);
	int fd = socket(p.address.ss_family, kind | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (void *)&p.address, p.len) < 0 || (kind == SOCK_STREAM && listen(fd, 4) < 0) ||
	    getsockname(fd, (void *)&got, &len) < 0)
		return -1;
	*port = ntohs(((struct sockaddr_in *)&got)->sin_port);
	return fd;
}

/* `hold PORT`, 0 for any: says "ready" and the port, waits for a word, and must have seen nobody. */
static int hold(void)
{
	unsigned port = (unsigned)atoi(arg);
	struct pollfd polls[4] = { 0 };
	char line[16];

	polls[0].fd = listen_at("0.0.0.0", SOCK_STREAM, &port);
	polls[1].fd = listen_at("0.0.0.0", SOCK_DGRAM, &port);
	polls[2].fd = listen_at("::", SOCK_STREAM, &port);
	polls[3].fd = listen_at("::", SOCK_DGRAM, &port);
	if (polls[0].fd < 0 || polls[1].fd < 0)
		return BREACH("cannot listen: %m");
	for (size_t i = 0; i < N_ELEM(polls); i++)
		polls[i].events = POLLIN;
	printf("ready %u\n", port);
	(void)!read(0, line, sizeof(line));
	return poll(polls, N_ELEM(polls), 0) > 0 ? BREACH("somebody came") : SAFE("nobody came");
}

/* `NW-03 PORT`: somebody else's loopback must not be ours. */
static int nobody_at(void)
{
	static const char *const hosts[] = { "127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0",
					     "::1",       "::",        "::ffff:127.0.0.1" };
	unsigned port = (unsigned)atoi(arg);
	int bad = only_lo(), own;

	for (size_t i = 0; i < N_ELEM(hosts); i++) {
		struct place p = place(hosts[i], port);
		int tcp = socket(p.address.ss_family, SOCK_STREAM, 0);
		int udp = socket(p.address.ss_family, SOCK_DGRAM, 0);
		char byte;

		if (connect(tcp, (void *)&p.address, p.len) == 0 || errno != ECONNREFUSED)
			bad |= BREACH("TCP to %s %u: %m", hosts[i], port);
		if (connect(udp, (void *)&p.address, p.len) < 0 || send(udp, "x", 1, 0) != 1 ||
		    recv(udp, &byte, 1, MSG_DONTWAIT) >= 0 || errno != ECONNREFUSED)
			bad |= BREACH("UDP to %s %u: %m", hosts[i], port);
	}
	own = listen_at("0.0.0.0", SOCK_STREAM, &port);
	if (own < 0)
		bad |= BREACH("port %u is somebody else's: %m", port);
	return bad ? 1 : SAFE("only our own loopback");
}

/* --- Making one's own way ------------------------------------------------------------------------ */

/* A message to the kernel's routing tables: what does it answer? */
static int route_request(uint16_t type, const void *body, size_t len)
{
	struct {
		struct nlmsghdr head;
		char body[256];
	} request = { .head = { .nlmsg_type = type,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE,
				.nlmsg_len = (uint32_t)NLMSG_LENGTH(len) } };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer = { 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	memcpy(request.body, body, len);
	if (send(fd, &request, request.head.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) <= 0)
		return errno;
	close(fd);
	return answer.head.nlmsg_type == NLMSG_ERROR ? -answer.error.error : 0;
}

static int make_ways(void)
{
	struct {
		struct ifinfomsg info;
		struct rtattr outer, inner;
		char kind[8];
	} link = { .outer = { 24, IFLA_LINKINFO },
		   .inner = { 9, 1 /* IFLA_INFO_KIND */ },
		   .kind = "veth" };
	struct {
		struct ifaddrmsg info;
		struct rtattr attr;
		unsigned char address[4];
	} address = { { AF_INET, 24, 0, 0, 1 }, { 8, IFA_LOCAL }, { 192, 0, 2, 9 } };
	struct {
		struct rtmsg info;
		struct rtattr attr;
		int out;
	} route = { { .rtm_family = AF_INET,
		      .rtm_table = RT_TABLE_MAIN,
		      .rtm_protocol = RTPROT_BOOT,
		      .rtm_type = RTN_UNICAST },
		    { 8, RTA_OIF },
		    1 };
	struct ifinfomsg down = { .ifi_index = 1, .ifi_change = IFF_UP };
	int bad = 0;

	if (route_request(RTM_NEWLINK, &link, sizeof(link)) != EPERM)
		bad |= BREACH("made an interface");
	if (route_request(RTM_NEWADDR, &address, sizeof(address)) != EPERM)
		bad |= BREACH("made an address");
	if (route_request(RTM_NEWROUTE, &route, sizeof(route)) != EPERM)
		bad |= BREACH("made a route");
	if (route_request(RTM_SETLINK, &down, sizeof(down)) != EPERM)
		bad |= BREACH("switched off lo");
	return bad;
}

static int nw18(void)
{
	static const unsigned long families[] = { AF_INET, AF_INET6 };
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = 0 };
	int udp = socket(AF_INET, SOCK_DGRAM, 0), bad = make_ways();

	bad |= ALL_REFUSED(CALL(socket, EAFNOSUPPORT, AF_PACKET, SOCK_RAW, 0x300),
			   CALL(socket, EAFNOSUPPORT, AF_PACKET, SOCK_DGRAM, 0x300),
			   CALL(socket, EPROTONOSUPPORT, AF_INET, SOCK_PACKET, 0x300),
			   CALL(socket, EPROTONOSUPPORT, AF_NETLINK, SOCK_RAW, 12 /* NETFILTER */),
			   CALL(socket, EPROTONOSUPPORT, AF_NETLINK, SOCK_RAW, 6 /* XFRM */));
	for (size_t i = 0; i < N_ELEM(families); i++) {
		for (unsigned long protocol = 0; protocol < 256; protocol++) {
			struct call c = CALL(socket, EPERM, families[i], SOCK_RAW, protocol);

			if (call_errno(&c) != EPERM)
				bad |= BREACH("raw socket %lu", protocol);
		}
		if (socket((int)families[i], SOCK_DGRAM,
			   families[i] == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6) >= 0)
			bad |= BREACH("a ping socket");
	}
	if (ioctl(udp, SIOCSIFFLAGS, &request) == 0 || errno != EPERM)
		bad |= BREACH("SIOCSIFFLAGS: %m");
	if (open("/dev/net/tun", O_RDWR) >= 0)
		bad |= BREACH("/dev/net/tun");
	return bad ? 1 : SAFE("no interface, no route, no raw packet");
}

/* --- Ways that know no proxy ---------------------------------------------------------------------- */

/* A datagram with everything in it that chooses an interface by hand. */
static int by_hand(int udp, const struct place *p)
{
	static const char *const devices[] = { "escape0", "eth0" };
	char control[CMSG_SPACE(sizeof(struct in_pktinfo))] = { 0 };
	struct iovec part = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	struct msghdr message = { .msg_name = (void *)&p->address,
				  .msg_namelen = p->len,
				  .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	int bad = 0;

	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
	for (int index = 2; index < 8; index++) {
		((struct in_pktinfo *)CMSG_DATA(c))->ipi_ifindex = index;
		if (sendmsg(udp, &message, 0) >= 0)
			bad |= BREACH("UDP through interface %d", index);
	}
	for (size_t i = 0; i < N_ELEM(devices); i++)
		if (setsockopt(udp, SOL_SOCKET, SO_BINDTODEVICE, devices[i],
			       (socklen_t)strlen(devices[i])) == 0)
			bad |= BREACH("bound to %s", devices[i]);
	return bad;
}

static int nw19(void)
{
	static const char *const hosts[] = { "1.1.1.1",         "9.9.9.9",
					     "198.51.100.77",   "224.0.0.251",
					     "239.255.255.250", "255.255.255.255",
					     "192.0.2.255",     "2606:4700:4700::1111",
					     "ff02::fb",        "ff0e::1" };
	static const unsigned ports[] = { 53, 123, 443, 853, 784, 3478, 4500, 51820 };
	int one = 1, bad = 0;

	for (size_t i = 0; i < N_ELEM(hosts); i++) {
		struct place p = place(hosts[i], 443);
		int udp = socket(p.address.ss_family, SOCK_DGRAM, 0),
		    tcp = socket(p.address.ss_family, SOCK_STREAM, 0);

		setsockopt(udp, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
		for (size_t k = 0; k < N_ELEM(ports); k++) {
			p = place(hosts[i], ports[k]);
			if (sendto(udp, "query", 5, 0, (void *)&p.address, p.len) >= 0)
				bad |= BREACH("UDP to %s %u", hosts[i], ports[k]);
			if (sendto(udp, "query", 5, MSG_CONFIRM | MSG_DONTROUTE, (void *)&p.address,
				   p.len) >= 0)
				bad |= BREACH("UDP without routing to %s %u", hosts[i], ports[k]);
		}
		if (sendto(tcp, "hello", 5, MSG_FASTOPEN | MSG_DONTWAIT, (void *)&p.address,
			   p.len) >= 0 ||
		    errno == EINPROGRESS)
			bad |= BREACH("TCP with data to %s", hosts[i]);
		if (p.address.ss_family == AF_INET)
			bad |= by_hand(udp, &p);
		close(udp);
		close(tcp);
	}
	return bad ? 1 : SAFE("nothing left");
}

/* --- Outside ------------------------------------------------------------------------------------ */

static int is_own_noise(const unsigned char *packet, ssize_t n)
{
	/* Our own kernel looking for neighbours and routers. */
	return n >= 40 && packet[0] >> 4 == 6 && packet[24] == 0xff &&
	       (packet[6] == 58 || packet[6] == 0);
}

/* `watch NAME`: makes the interface and prints what is sent through it until it is killed. */
static int watch(void)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	unsigned char packet[4096];
	char to[64];

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", arg);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0)
		return 77;
	puts("ready");
	for (;;) {
		ssize_t n = read(fd, packet, sizeof(packet));

		if (n < 20 || is_own_noise(packet, n))
			continue;
		if (packet[0] >> 4 == 4)
			printf("packet %d to %s\n", packet[9],
			       inet_ntop(AF_INET, packet + 16, to, sizeof(to)));
		else
			printf("packet %d to %s\n", packet[6],
			       inet_ntop(AF_INET6, packet + 24, to, sizeof(to)));
	}
}

int main(int argc, char **argv)
{
	static const struct row rows[] = {
		{ "NW-01", nw01 }, { "hold", hold },  { "NW-03", nobody_at },
		{ "NW-18", nw18 }, { "NW-19", nw19 }, { "watch", watch },
	};

	if (argc == 3)
		arg = argv[2];
	return run_rows(rows, N_ELEM(rows), argc > 2 ? 2 : argc, argv);
}
