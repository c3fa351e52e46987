/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the nftables rules of a box with doors (src/box/doors.c) as the bytes of one netlink
 * batch, in a C header. The rules never differ, so they are made while building: the product needs
 * no netfilter library, and opening doors is one send().
 *
 *	table inet glovebox {
 *		chain caught {
 *			type filter hook prerouting priority mangle
 *			ip daddr 127.0.0.0/8 accept
 *			ip6 daddr ::1 accept
 *			tcp dport 53 tproxy to :3153 accept
 *			meta l4proto tcp tproxy to :3129 accept
 *		}
 *		chain untracked {
 *			type filter hook output priority raw
 *			udp sport 3153 accept                  # answers of that door
 *			ip daddr 127.0.0.0/8 notrack
 *			ip6 daddr ::1 notrack
 *			udp dport 53 accept
 *			notrack
 *		}
 *		chain counted {
 *			type filter hook output priority mangle
 *			ct state new ct count over 4096 drop
 *		}
 *		chain redirect {
 *			type nat hook output priority -100
 *			ip daddr 127.0.0.0/8 accept
 *			ip6 daddr ::1 accept
 *			udp dport 53 redirect to :3153
 *		}
 *	}
 *
 * TCP is handed to the doors' sockets as it is, without rewriting an address: the local address of
 * what they accept is the one that was asked for, and the kernel has nothing to remember.
 * (Redirected, each connection would be in its table for two minutes after its end, in memory that
 * is charged to nobody: a box could fill that, NW-22.) Only datagrams to foreign resolvers are
 * rewritten, because an answer must come from whom was asked; only so many are remembered.
 *
 * Everything else that is not for loopback comes back by `lo`, by the routes that go with this, and
 * finds nobody.
 */
#include <arpa/inet.h>
#include <err.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/egress.h"

#define TABLE "glovebox"
#define CAUGHT "caught"
#define UNTRACKED "untracked"
#define COUNTED "counted"
#define REDIRECT "redirect"
#define TRACKED_MAX 4096 /* about 2 MiB */
#define BATCH_SIZE 16384

/* Where the ports are in a TCP and in a UDP header, and the destination in an IP header. */
enum { SOURCE_PORT = 0, TARGET_PORT = 2, PORT_LEN = 2, TARGET_V4 = 16, TARGET_V6 = 24 };

static struct mnl_nlmsg_batch *batch;
static uint32_t last_seq;
static unsigned n_acks;

static void fill(uint16_t type, uint16_t flags, void *object,
		 void (*build)(struct nlmsghdr *, const void *))
{
	struct nlmsghdr *head =
		nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(batch), type, NFPROTO_INET,
				      (uint16_t)(flags | NLM_F_CREATE | NLM_F_ACK), ++last_seq);

	build(head, object);
	n_acks++;
	if (!mnl_nlmsg_batch_next(batch))
		errx(EXIT_FAILURE, "the rules are longer than %d bytes", BATCH_SIZE);
}

static void build_table(struct nlmsghdr *head, const void *object)
{
	nftnl_table_nlmsg_build_payload(head, object);
}

static void build_chain(struct nlmsghdr *head, const void *object)
{
	nftnl_chain_nlmsg_build_payload(head, object);
}

/* libnftnl takes a rule that is not const. */
static void build_rule(struct nlmsghdr *head, const void *object)
{
	nftnl_rule_nlmsg_build_payload(head, (struct nftnl_rule *)(uintptr_t)object);
}

static void add_table(void)
{
	struct nftnl_table *t = nftnl_table_alloc();

	if (!t)
		err(EXIT_FAILURE, "table");
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_set_str(t, NFTNL_TABLE_NAME, TABLE);
	fill(NFT_MSG_NEWTABLE, 0, t, build_table);
	nftnl_table_free(t);
}

static void add_chain(const char *name, const char *type, uint32_t hook, int priority)
{
	struct nftnl_chain *c = nftnl_chain_alloc();

	if (!c)
		err(EXIT_FAILURE, "chain");
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, TABLE);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, type);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
	fill(NFT_MSG_NEWCHAIN, 0, c, build_chain);
	nftnl_chain_free(c);
}

static struct nftnl_rule *begin_rule(const char *chain)
{
	struct nftnl_rule *r = nftnl_rule_alloc();

	if (!r)
		err(EXIT_FAILURE, "rule");
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, TABLE);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain);
	return r;
}

static void end_rule(struct nftnl_rule *r)
{
	fill(NFT_MSG_NEWRULE, NLM_F_APPEND, r, build_rule);
	nftnl_rule_free(r);
}

static struct nftnl_expr *add_expr(struct nftnl_rule *r, const char *name)
{
	struct nftnl_expr *e = nftnl_expr_alloc(name);

	if (!e)
		err(EXIT_FAILURE, "%s", name);
	nftnl_rule_add_expr(r, e);
	return e;
}

static void load_meta(struct nftnl_rule *r, uint32_t key)
{
	struct nftnl_expr *e = add_expr(r, "meta");

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
}

static void load_payload(struct nftnl_rule *r, uint32_t base, uint32_t offset, uint32_t len)
{
	struct nftnl_expr *e = add_expr(r, "payload");

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
}

static void match(struct nftnl_rule *r, const void *data, uint32_t len)
{
	struct nftnl_expr *e = add_expr(r, "cmp");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
}

/* The first bytes of the address are enough for a whole /8; all of ::1 for one. */
static void match_loopback(struct nftnl_rule *r, uint8_t family)
{
	const uint8_t net = 127;

	load_meta(r, NFT_META_NFPROTO);
	match(r, &family, sizeof(family));
	if (family == NFPROTO_IPV4) {
		load_payload(r, NFT_PAYLOAD_NETWORK_HEADER, TARGET_V4, sizeof(net));
		match(r, &net, sizeof(net));
	} else {
		load_payload(r, NFT_PAYLOAD_NETWORK_HEADER, TARGET_V6, sizeof(in6addr_loopback));
		match(r, &in6addr_loopback, sizeof(in6addr_loopback));
	}
}

static void match_protocol(struct nftnl_rule *r, uint8_t protocol)
{
	load_meta(r, NFT_META_L4PROTO);
	match(r, &protocol, sizeof(protocol));
}

static void match_port(struct nftnl_rule *r, uint8_t protocol, uint32_t offset, uint16_t port)
{
	const uint16_t wanted = htons(port);

	match_protocol(r, protocol);
	load_payload(r, NFT_PAYLOAD_TRANSPORT_HEADER, offset, PORT_LEN);
	match(r, &wanted, sizeof(wanted));
}

static void end_verdict(struct nftnl_rule *r, uint32_t verdict)
{
	struct nftnl_expr *e = add_expr(r, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, verdict);
	end_rule(r);
}

static void end_accept(struct nftnl_rule *r)
{
	end_verdict(r, NF_ACCEPT);
}

static void end_notrack(struct nftnl_rule *r)
{
	(void)add_expr(r, "notrack");
	end_rule(r);
}

static void end_redirect(struct nftnl_rule *r, uint16_t to)
{
	const uint16_t port = htons(to);
	struct nftnl_expr *e = add_expr(r, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &port, sizeof(port));
	e = add_expr(r, "redir");
	nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MIN, NFT_REG_1);
	end_rule(r);
}

static void accept_port(const char *chain, uint8_t protocol, uint32_t offset, uint16_t port)
{
	struct nftnl_rule *r = begin_rule(chain);

	match_port(r, protocol, offset, port);
	end_accept(r);
}

static void add_loopback(const char *chain, uint8_t family, void (*end)(struct nftnl_rule *))
{
	struct nftnl_rule *r = begin_rule(chain);

	match_loopback(r, family);
	end(r);
}

/* To the listening socket at that port of this box's loopback. */
static void end_catch(struct nftnl_rule *r, uint16_t to)
{
	const uint16_t port = htons(to);
	struct nftnl_expr *e = add_expr(r, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_1);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, &port, sizeof(port));
	e = add_expr(r, "tproxy");
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, NFPROTO_UNSPEC); /* either */
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_1);
	end_accept(r);
}

static void add_caught(void)
{
	struct nftnl_rule *r;

	add_chain(CAUGHT, "filter", NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE);
	add_loopback(CAUGHT, NFPROTO_IPV4, end_accept);
	add_loopback(CAUGHT, NFPROTO_IPV6, end_accept);
	r = begin_rule(CAUGHT);
	match_port(r, IPPROTO_TCP, TARGET_PORT, 53);
	end_catch(r, EGRESS_DNS_PORT);
	r = begin_rule(CAUGHT);
	match_protocol(r, IPPROTO_TCP);
	end_catch(r, EGRESS_CATCH_PORT);
}

static void add_untracked(void)
{
	add_chain(UNTRACKED, "filter", NF_INET_LOCAL_OUT, NF_IP_PRI_RAW);
	accept_port(UNTRACKED, IPPROTO_UDP, SOURCE_PORT, EGRESS_DNS_PORT);
	add_loopback(UNTRACKED, NFPROTO_IPV4, end_notrack);
	add_loopback(UNTRACKED, NFPROTO_IPV6, end_notrack);
	accept_port(UNTRACKED, IPPROTO_UDP, TARGET_PORT, 53);
	end_notrack(begin_rule(UNTRACKED));
}

static void match_new(struct nftnl_rule *r)
{
	const uint32_t bit = NF_CT_STATE_BIT(IP_CT_NEW), none = 0;
	struct nftnl_expr *e = add_expr(r, "ct");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_KEY, NFT_CT_STATE);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CT_DREG, NFT_REG_1);
	e = add_expr(r, "bitwise");
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, sizeof(bit));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, &bit, sizeof(bit));
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, &none, sizeof(none));
	match(r, &bit, sizeof(bit));
}

static void add_counted(void)
{
	struct nftnl_rule *r;
	struct nftnl_expr *e;

	add_chain(COUNTED, "filter", NF_INET_LOCAL_OUT, NF_IP_PRI_MANGLE);
	r = begin_rule(COUNTED);
	match_new(r);
	e = add_expr(r, "connlimit");
	nftnl_expr_set_u32(e, NFTNL_EXPR_CONNLIMIT_COUNT, TRACKED_MAX);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
	end_verdict(r, NF_DROP);
}

static void add_redirect(void)
{
	struct nftnl_rule *r;

	add_chain(REDIRECT, "nat", NF_INET_LOCAL_OUT, NF_IP_PRI_NAT_DST);
	add_loopback(REDIRECT, NFPROTO_IPV4, end_accept);
	add_loopback(REDIRECT, NFPROTO_IPV6, end_accept);
	r = begin_rule(REDIRECT);
	match_port(r, IPPROTO_UDP, TARGET_PORT, 53);
	end_redirect(r, EGRESS_DNS_PORT);
}

static void print(const char *path)
{
	const unsigned char *bytes = mnl_nlmsg_batch_head(batch);
	size_t len = mnl_nlmsg_batch_size(batch);
	FILE *f = fopen(path, "we");

	if (!f)
		err(EXIT_FAILURE, "%s", path);
	(void)fprintf(f, "/* Made by tools/mkredirect.c. */\n#define REDIRECT_ACKS %u\n", n_acks);
	(void)fprintf(f, "static const unsigned char redirect_batch[%zu] = {", len);
	for (size_t i = 0; i < len; i++)
		(void)fprintf(f, "%s0x%02x,", i % 16 ? " " : "\n\t", bytes[i]);
	(void)fprintf(f, "\n};\n");
	if (fclose(f) != 0)
		err(EXIT_FAILURE, "%s", path);
}

int main(int argc, char **argv)
{
	static char space[2 * BATCH_SIZE];

	if (argc != 2)
		errx(EXIT_FAILURE, "usage: mkredirect FILE");
	batch = mnl_nlmsg_batch_start(space, BATCH_SIZE);
	if (!batch)
		err(EXIT_FAILURE, "batch");
	(void)nftnl_batch_begin(mnl_nlmsg_batch_current(batch), ++last_seq);
	(void)mnl_nlmsg_batch_next(batch);
	add_table();
	add_caught();
	add_untracked();
	add_counted();
	add_redirect();
	(void)nftnl_batch_end(mnl_nlmsg_batch_current(batch), ++last_seq);
	(void)mnl_nlmsg_batch_next(batch);
	print(argv[1]);
	return 0;
}
