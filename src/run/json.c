/* SPDX-License-Identifier: Apache-2.0 */
/* The result as one JSON object. */
#include "run/result.h"

#include "base/utf8.h"
#include "sys/cgroup.h"

#include <jansson.h>
#include <sodium.h>
#include <sys/stat.h>

json_t *run_base64_json(const void *data, size_t len)
{
	size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
	_cleanup_(freep) char *text = malloc(size);

	if (!text)
		return NULL;
	(void)sodium_bin2base64(text, size, len ? data : (const unsigned char *)"", len,
				sodium_base64_VARIANT_ORIGINAL);
	return json_string(text);
}

/* Bytes of a program as JSON text. What is not UTF-8 is shown with U+FFFD and given exactly in a
 * second field, NAME_base64. */
static void set_bytes(json_t *o, const char *name, const void *data, size_t len)
{
	_cleanup_(buf_done) struct buf shown = BUF_INIT(len * 3 + 16);
	char key[64];

	if (utf8_valid(data, len, NULL)) {
		(void)json_object_set_new(o, name, json_stringn_nocheck(len ? data : "", len));
		return;
	}
	if (utf8_replace_invalid(data, len, &shown) == 0)
		(void)json_object_set_new(o, name,
					  json_stringn_nocheck((char *)shown.data, shown.len));
	(void)snprintf(key, sizeof(key), "%s_base64", name);
	(void)json_object_set_new(o, key, run_base64_json(data, len));
}

static json_t *result_number(uint64_t value)
{
	return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

static json_t *result_ms(uint64_t us)
{
	return json_real((double)us / 1000.0);
}

static json_t *usage_json(const struct run_usage *u)
{
	return json_pack("{so so so so so so so}", "wall_ms", result_ms(u->wall_us), "cpu_user_ms",
			 result_ms(u->cpu_user_us), "cpu_system_ms", result_ms(u->cpu_system_us),
			 "memory_peak_bytes", result_number(u->memory_peak), "processes_peak",
			 result_number(u->processes_peak), "read_bytes",
			 result_number(u->read_bytes), "written_bytes",
			 result_number(u->written_bytes));
}

static json_t *limits_json(const struct run_limits *l)
{
	return json_pack("{so so so so so so so so}", "timeout_ms", result_ms(l->timeout_us),
			 "cpu_time_ms", result_ms(l->cpu_time_us), "cpus",
			 json_real(l->cpu_milli / 1000.0), "memory_bytes",
			 result_number(l->memory_bytes), "disk_bytes", result_number(l->disk_bytes),
			 "files", result_number(l->files), "pids", result_number(l->pids),
			 "output_bytes", result_number(l->output_bytes));
}

static const char *refused_type(uint32_t type)
{
	switch (type) {
	case S_IFLNK:
		return "link";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	default:
		return "other";
	}
}

static json_t *outputs_json(const struct run_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_outputs; i++) {
		const struct run_output *out = &r->outputs[i];
		char hex[65];
		json_t *o = json_object();

		(void)sodium_bin2hex(hex, sizeof(hex), out->sha256, sizeof(out->sha256));
		set_bytes(o, "path", out->path, strlen(out->path));
		(void)json_object_set_new(o, "size", result_number(out->size));
		(void)json_object_set_new(o, "sha256", json_string(hex));
		(void)json_array_append_new(list, o);
	}
	return list;
}

static json_t *refused_json(const struct run_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_refused; i++) {
		json_t *o = json_object();

		set_bytes(o, "path", r->refused[i].path, strlen(r->refused[i].path));
		(void)json_object_set_new(o, "type", json_string(refused_type(r->refused[i].type)));
		(void)json_array_append_new(list, o);
	}
	return list;
}

/* Every protection that was really on in this run. */
json_t *run_isolation_json(const struct isolation *i)
{
	unsigned f = i->features, c = i->cgroup_features;
	json_t *namespaces =
		json_pack("[s s s s s s]", "user", "mount", "pid", "net", "ipc", "uts");

	if (f & SETUP_HAS_CGROUP_NS)
		(void)json_array_append_new(namespaces, json_string("cgroup"));
	if (f & SETUP_HAS_TIME_NS)
		(void)json_array_append_new(namespaces, json_string("time"));
	return json_pack("{so ss sb sb sb sb sb si sb s[] si sb ss s{ss sb sb sb sb}}",
			 "namespaces", namespaces, "user_ids", ids_kind_name(i->ids_kind),
			 "idmapped_layers", f & SETUP_HAS_IDMAP, "own_devices",
			 f & SETUP_HAS_OWN_DEVICES, "core_scheduling",
			 f & SETUP_HAS_CORE_SCHEDULING, "no_new_privs", f & SETUP_HAS_NO_NEW_PRIVS,
			 "seccomp", f & SETUP_HAS_SECCOMP, "landlock_abi", (int)i->landlock_abi,
			 "landlock", f & SETUP_HAS_LANDLOCK, "capabilities", "proc_masks",
			 (int)i->masks, "own_keyring", f & SETUP_HAS_KEYRING, "network", "none",
			 "cgroup", "mode", cgroup_mode_name((enum cgroup_mode)i->cgroup_mode),
			 "memory", c & CGROUP_MEMORY, "pids", c & CGROUP_PIDS, "cpu",
			 c & CGROUP_CPU, "cpu_time", c & CGROUP_CPUACCT);
}

json_t *run_network_json(const struct net_log *l, bool catches)
{
	json_t *o = net_totals_json(&l->totals);

	(void)json_object_set_new(o, "catches", json_boolean(catches));
	(void)json_object_set_new(o, "connections", net_connections_json(l, RUN_CONNECTIONS_SHOWN));
	return o;
}

/* Where no box came to be there is nothing to claim. A fork has the addresses, and Python's hash
 * seed, that all forks of its zygote have. */
static json_t *isolation_json(const struct run_result *r)
{
	json_t *o = r->isolated ? run_isolation_json(&r->isolation) : json_null();

	if (!r->isolated)
		return o;
	(void)json_object_set_new(o, "zygote", json_boolean(r->forked));
	(void)json_object_set_new(o, "own_address_layout", json_boolean(!r->forked));
	if (r->network)
		(void)json_object_set_new(o, "network", json_string(r->learned ? "all" : "listed"));
	return o;
}

json_t *run_result_json(const struct run_result *r, const struct run_limits *given,
			const struct run_limits *compile)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "status", json_string(run_status_name(r->status)));
	(void)json_object_set_new(o, "step", json_string(r->step ? r->step : "setup"));
	(void)json_object_set_new(o, "exit_code",
				  r->exit_code < 0 ? json_null() : json_integer(r->exit_code));
	(void)json_object_set_new(o, "signal", r->signal ? json_integer(r->signal) : json_null());
	set_bytes(o, "stdout", r->out.data, r->out.len);
	set_bytes(o, "stderr", r->err.data, r->err.len);
	(void)json_object_set_new(o, "truncated", json_boolean(r->truncated));
	set_bytes(o, "message", r->message, strlen(r->message));
	(void)json_object_set_new(o, "setup_ms", result_ms(r->setup_us));
	(void)json_object_set_new(o, "usage", usage_json(&r->usage));
	(void)json_object_set_new(o, "limits", limits_json(given));
	if (compile)
		(void)json_object_set_new(o, "compile",
					  json_pack("{so so}", "usage",
						    usage_json(&r->compile_usage), "limits",
						    limits_json(compile)));
	(void)json_object_set_new(o, "outputs", outputs_json(r));
	(void)json_object_set_new(o, "refused_outputs", refused_json(r));
	(void)json_object_set_new(o, "refused_outputs_more", result_number(r->refused_more));
	(void)json_object_set_new(o, "network", r->network ? json_incref(r->network) : json_null());
	if (r->learned)
		(void)json_object_set(o, "learned", r->learned);
	(void)json_object_set_new(o, "isolation", isolation_json(r));
	return o;
}

void run_result_done(struct run_result *r)
{
	json_decref(r->network);
	json_decref(r->learned);
	json_decref(r->service);
	r->network = NULL;
	r->learned = NULL;
	r->service = NULL;
	buf_done(&r->out);
	buf_done(&r->err);
	for (size_t i = 0; i < r->n_outputs; i++)
		free(r->outputs[i].path);
	for (size_t i = 0; i < r->n_refused; i++)
		free(r->refused[i].path);
	free(r->outputs);
	free(r->refused);
	r->outputs = NULL;
	r->refused = NULL;
}
