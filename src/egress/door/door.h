/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes by id, what holds for each, and what comes through their doors. */
#pragma once

#include "egress/egress.h"

/* --- nets.c --------------------------------------------------------------------------------- */

_must_check_ int nets_open(struct egress *g);
struct net *net_find(struct egress *g, const char *id);
/* Takes the descriptors, whatever it returns. A box that is known already is closed before. */
_must_check_ int net_open(struct egress *g, const struct egress_open *o, const int *fds);
void net_close(struct egress *g, const char *id);
void nets_each(struct egress *g, void (*f)(struct egress *g, struct net *n));

/* --- apply.c -------------------------------------------------------------------------------- */

void apply_begin(struct net *n, const struct egress_policy *p);
void apply_use(struct net *n, const struct egress_use *u);
void apply_rule(struct net *n, const struct egress_rule *r);
void apply_header(struct net *n, const struct egress_header *h);
/* errno value for APPLIED; *ret_cut: the connections that it ended. */
int apply_commit(struct egress *g, struct net *n, uint32_t *ret_cut);
/* The operator's sets anew, for all boxes. fd: a file. -EINVAL …: the old ones stay. */
_must_check_ int apply_operator(struct egress *g, int fd, struct fail *fail);
void apply_done(struct net *n);

/* --- dns.c, dns_tcp.c ----------------------------------------------------------------------- */

/* Something can be read from a UDP door. */
void dns_udp_ready(struct egress *g, struct net *n, int fd);
/* A connection came through a TCP door: owns fd. */
void dns_tcp_accepted(struct egress *g, struct net *n, int fd);
/* The box is gone. */
void dns_done(struct egress *g, struct net *n);
