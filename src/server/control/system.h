/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about the service itself (control/system.c), for the table of the control plane. */
#pragma once

#include "server/http/http.h"

int system_health(struct request *r);
int system_livez(struct request *r);
int system_readyz(struct request *r);
int system_version(struct request *r);
int system_capabilities(struct request *r);
int system_openapi(struct request *r);
