/* SPDX-License-Identifier: Apache-2.0 */
/* The network of boxes: the process of egress, and doors to it. */
#pragma once

#include "warden/warden_priv.h"

/* net/egress.c. Reads the operator's rule sets, which must be right; the process comes with the
 * first box that needs it. */
_must_check_ int egress_open(struct warden *w, struct fail *fail);
void egress_reload(struct warden *w); /* the rule sets, if they are right */
void egress_close(struct warden *w);
_must_check_ int egress_need(struct warden *w, struct fail *fail);
void egress_add(struct warden *w, struct ward *d);    /* a box has doors: net_told() follows */
void egress_remove(struct warden *w, struct ward *d); /* it ends */
void egress_greet_server(struct warden *w);           /* there is a new one */

/* net/net.c. The request is answered in any case. */
void net_begin(struct warden *w, struct ward *d, struct pending *p);
void net_socket(struct warden *w, struct ward *d, uint32_t family, struct pending *p);
void net_told(struct warden *w, struct ward *d);     /* egress has its doors */
void net_not_told(struct warden *w, struct ward *d); /* and will not have them soon */
void net_end(struct warden *w, struct ward *d);      /* before it loses its id */
