/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the command line of `glovebox run`. Inputs are opened while it is checked, so what was
 * checked is what is sent.
 */
#include "cli/run/args.h"

#include "base/parse.h"
#include "cli/run/service.h"
#include "sys/cpus.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

/* --- limits ---------------------------------------------------------------------------------- */

/* A limit must be a number of its kind within what makes sense. */
static int limit_is_bad(struct fail *fail, const char *name, const char *text, const char *want)
{
	return fail_set(fail, EINVAL, "limits", "--%s %s: %s", name, text, want);
}

static int limit_read_bytes(const char *name, const char *text, uint64_t min, uint64_t max,
			    uint64_t *ret, struct fail *fail)
{
	char want[96];

	if (parse_bytes(text, ret) < 0)
		return limit_is_bad(fail, name, text, "give a size such as 64M or 2G");
	if (*ret < min || *ret > max) {
		(void)snprintf(want, sizeof(want), "must be between %lluK and %lluM here",
			       (unsigned long long)(min >> 10), (unsigned long long)(max >> 20));
		return limit_is_bad(fail, name, text, want);
	}
	return 0;
}

static int limit_read_duration(const char *name, const char *text, uint64_t *ret, struct fail *fail)
{
	if (parse_duration_us(text, ret) < 0)
		return limit_is_bad(fail, name, text, "give a duration such as 500ms, 30s or 5m");
	if (*ret < RUN_TIME_MIN_US || *ret > RUN_TIME_MAX_US)
		return limit_is_bad(fail, name, text, "must be between 1ms and 24h");
	return 0;
}

static int limit_read_count(const char *name, const char *text, uint64_t max, uint64_t *ret,
			    struct fail *fail)
{
	char want[64];

	if (parse_u64(text, ret) == 0 && *ret >= 1 && *ret <= max)
		return 0;
	(void)snprintf(want, sizeof(want), "must be a whole number from 1 to %llu",
		       (unsigned long long)max);
	return limit_is_bad(fail, name, text, want);
}

static int limit_read_cpus(const char *text, uint32_t *ret, struct fail *fail)
{
	char want[80];
	unsigned cpus = cpus_online();

	if (parse_cpus_milli(text, ret) == 0 && *ret >= RUN_CPU_MILLI_MIN && *ret <= cpus * 1000)
		return 0;
	(void)snprintf(want, sizeof(want), "must be between 0.01 and %u, the CPUs of this machine",
		       cpus);
	return limit_is_bad(fail, "cpus", text, want);
}

/* Half of what the machine can have: it needs some itself (RX-26). */
static uint64_t pids_max(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
	char text[32] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint64_t max;

	if (n > 0)
		text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, &max) == 0 ? max / 2 : 16384;
}

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	return sysinfo(&info) < 0 ? UINT64_MAX : (uint64_t)info.totalram * info.mem_unit;
}

int run_args_limit(int id, const char *text, struct run_limits *l, struct fail *fail)
{
	uint64_t n;
	int r;

	switch (id) {
	case OPT_TIMEOUT:
		return limit_read_duration("timeout", text, &l->timeout_us, fail);
	case OPT_CPU_TIME:
		return limit_read_duration("cpu-time", text, &l->cpu_time_us, fail);
	case OPT_CPUS:
		return limit_read_cpus(text, &l->cpu_milli, fail);
	case OPT_MEMORY:
		return limit_read_bytes("memory", text, RUN_MEMORY_MIN, machine_memory(),
					&l->memory_bytes, fail);
	case OPT_DISK:
		return limit_read_bytes("disk", text, RUN_DISK_MIN, machine_memory(),
					&l->disk_bytes, fail);
	case OPT_OUTPUT:
		return limit_read_bytes("output", text, 1, RUN_OUTPUT_MAX, &l->output_bytes, fail);
	case OPT_FILES:
		return limit_read_count("files", text, RUN_FILES_MAX, &l->files, fail);
	default:
		r = limit_read_count("pids", text, pids_max(), &n, fail);
		if (r == 0)
			l->pids = (uint32_t)n;
		return r;
	}
}

/* --- inputs ---------------------------------------------------------------------------------- */

#define INPUTS_MAX 256

/* Where an input goes in the box: absolute, without . and .. */
static int input_dest(const char *source, const char *dest, char **ret, struct fail *fail)
{
	_cleanup_(freep) char *path = NULL;
	const char *slash = strrchr(source, '/');
	const char *base = slash ? slash + 1 : source;
	size_t len = dest ? strlen(dest) : 0;
	int n;

	if (!dest || !len)
		n = asprintf(&path, RUN_HOME "/%s", base);
	else
		n = asprintf(&path, "%s%s%s", dest[0] == '/' ? "" : RUN_HOME "/", dest,
			     dest[len - 1] == '/' ? base : "");
	if (n < 0) {
		path = NULL;
		return -ENOMEM;
	}
	for (const char *p = path; *p; p += strcspn(p, "/")) {
		size_t part;

		p += strspn(p, "/");
		part = strcspn(p, "/");
		if (part && !wire_name_ok((const unsigned char *)p, part))
			return fail_set(fail, EINVAL, "--in",
					"--in %s: the destination may not have . or .. in it (add "
					":NAME)",
					source);
	}
	if (strlen(path) > WIRE_PATH_MAX || !*base)
		return fail_set(fail, EINVAL, "--in", "--in %s: name the destination (add :NAME)",
				source);
	*ret = take_ptr(path);
	return 0;
}

static int input_open(const char *path, bool *ret_is_dir)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		fd_close(fd);
		return -EINVAL;
	}
	*ret_is_dir = S_ISDIR(st.st_mode);
	return fd;
}

/* PATH[:DEST]. A path that exists with its colon is taken as it is. */
int run_args_input(struct run_request *q, const char *text, struct fail *fail)
{
	_cleanup_(freep) char *source = strdup(text);
	struct run_input in = { .fd = -EBADF };
	struct run_input *grown;
	char *colon = source ? strrchr(source, ':') : NULL;
	const char *dest = NULL;
	int r;

	if (!source)
		return -ENOMEM;
	if (q->n_inputs >= INPUTS_MAX)
		return fail_set(fail, E2BIG, "--in", "more than %d inputs", INPUTS_MAX);
	if (colon && access(source, F_OK) < 0) {
		*colon = '\0';
		dest = colon + 1;
	}
	/* "dir/" means dir */
	for (size_t n = strlen(source); n > 1 && source[n - 1] == '/'; n--)
		source[n - 1] = '\0';
	in.fd = input_open(source, &in.is_dir);
	if (in.fd == -EINVAL)
		return fail_set(fail, EINVAL, "--in", "--in %s: neither a file nor a directory",
				source);
	if (in.fd < 0)
		return fail_set(fail, -in.fd, "--in", "cannot read --in %s: %s", source,
				strerror(-in.fd));
	r = input_dest(source, dest, &in.dest, fail);
	if (r == 0) {
		grown = reallocarray(q->inputs, q->n_inputs + 1, sizeof(in));
		if (grown) {
			q->inputs = grown;
			q->inputs[q->n_inputs++] = in;
			return 0;
		}
		r = -ENOMEM;
		free(in.dest);
	}
	fd_close(in.fd);
	return r;
}

/* --- the options ----------------------------------------------------------------------------- */

static const struct option options[] = {
	{ "language", required_argument, NULL, 'l' },
	{ "code", required_argument, NULL, 'c' },
	{ "template", required_argument, NULL, 't' },
	{ "stdin", required_argument, NULL, OPT_STDIN },
	{ "in", required_argument, NULL, OPT_IN },
	{ "out", required_argument, NULL, OPT_OUT },
	{ "env", required_argument, NULL, OPT_ENV },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "cpu-time", required_argument, NULL, OPT_CPU_TIME },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "disk", required_argument, NULL, OPT_DISK },
	{ "files", required_argument, NULL, OPT_FILES },
	{ "pids", required_argument, NULL, OPT_PIDS },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "raw", no_argument, NULL, OPT_RAW },
	{ "local", no_argument, NULL, OPT_LOCAL },
	{ "service", no_argument, NULL, OPT_SERVICE },
	{ "no-zygote", no_argument, NULL, OPT_NO_ZYGOTE },
	{ "allow", required_argument, NULL, OPT_ALLOW },
	{ "allow-set", required_argument, NULL, OPT_ALLOW_SET },
	{ "allow-private", required_argument, NULL, OPT_ALLOW_PRIVATE },
	{ "net", required_argument, NULL, OPT_NET },
	{ "learn-to", required_argument, NULL, OPT_LEARN_TO },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int args_add_env(struct run_args *a, const char *text, struct fail *fail)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return fail_set(fail, EINVAL, "--env", "--env %.100s: write NAME=VALUE", text);
	if (a->n_env >= RUN_ENV_MAX)
		return fail_set(fail, E2BIG, "--env", "more than %d variables", RUN_ENV_MAX);
	if (strlen(text) > WIRE_DATA_MAX)
		return fail_set(fail, E2BIG, "--env", "--env %.40s…: longer than 64 KiB", text);
	a->env[a->n_env++] = text;
	return 0;
}

static int args_add_later(struct run_args *a, int id, const char *text)
{
	struct run_later *grown = reallocarray(a->later, a->n_later + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	a->later = grown;
	a->later[a->n_later++] = (struct run_later){ .id = id, .text = text };
	return 0;
}

static int args_read_option(int id, struct run_args *a, struct run_request *q, struct fail *fail)
{
	switch (id) {
	case 'l':
		a->language = optarg;
		return 0;
	case 'c':
		a->code = optarg;
		return 0;
	case 't':
		q->template_name = optarg;
		return 0;
	case 'v':
		q->verbose++;
		return 0;
	case OPT_JSON:
		q->json = true;
		return 0;
	case OPT_RAW:
		q->raw = true;
		return 0;
	case OPT_LOCAL:
		q->where = RUN_WHERE_LOCAL;
		return 0;
	case OPT_NO_ZYGOTE:
		q->no_zygote = true;
		return 0;
	case OPT_SERVICE:
		q->where = RUN_WHERE_SERVICE;
		return 0;
	case OPT_STDIN:
		a->stdin_path = optarg;
		return 0;
	case OPT_OUT:
		q->out_dir = optarg;
		return 0;
	case OPT_ENV:
		return args_add_env(a, optarg, fail);
	case OPT_IN:
	case OPT_ALLOW:
	case OPT_ALLOW_SET:
	case OPT_ALLOW_PRIVATE:
	case OPT_NET:
	case OPT_LEARN_TO:
		return args_add_later(a, id, optarg);
	default:
		return run_args_limit(id, optarg, &a->given, fail);
	}
}

/* Splits the command line into options, FILE, and the command behind --. */
static int args_read(int argc, char **argv, struct run_args *a, struct run_request *q,
		     struct fail *fail)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			a->command = argv + i + 1;
			argv[i] = NULL; /* musl's getopt looks for this, not at argc */
			argc = i;
		}
	}
	optind = 0; /* begins anew, in every C library; POSIXLY_CORRECT is heeded by glibc alone */
	opterr = 0;
	for (;;) {
		int id = getopt_long(argc, argv, ":l:c:t:vh", options, NULL), r;

		if (id == -1)
			break;
		if (id == 'h')
			return RUN_ARGS_HELP;
		if (id == '?')
			return fail_set(fail, EINVAL, "options",
					"unknown option %s; see 'glovebox run --help'",
					optopt && optopt < 256 &&
							strncmp(argv[optind - 1], "--", 2) != 0 ?
						(char[]){ '-', (char)optopt, 0 } :
						argv[optind - 1]);
		if (id == ':')
			return fail_set(fail, EINVAL, "options",
					"option %s needs a value; see 'glovebox run --help'",
					argv[optind - 1]);
		r = args_read_option(id, a, q, fail);
		if (r < 0)
			return r;
	}
	if (optind < argc)
		a->file = argv[optind++];
	if (optind < argc)
		return fail_set(fail, EINVAL, "options",
				"unexpected '%s': one FILE, or a command behind --", argv[optind]);
	if (!!a->code + !!a->file + !!a->command != 1)
		return fail_set(
			fail, EINVAL, "options",
			a->code || a->file || a->command ?
				"give one of -c CODE, FILE, or a command behind --" :
				"nothing to run: give -c CODE, FILE, or a command behind --; "
				"see 'glovebox run --help'");
	if (a->command && !a->command[0])
		return fail_set(fail, EINVAL, "options", "no command behind --");
	if (a->command && a->language)
		return fail_set(fail, EINVAL, "options", "-l is for code, not for a command");
	return 0;
}

static int read_code(const struct run_args *a, struct run_request *q, struct fail *fail)
{
	bool from_stdin = a->file && strcmp(a->file, "-") == 0;
	_cleanup_(fd_closep) int fd = -EBADF;
	_cleanup_(buf_done) struct buf b = BUF_INIT(LANGUAGE_CODE_MAX);
	struct stat st;
	int r;

	if (a->code) {
		q->code = strdup(a->code);
		q->code_len = strlen(a->code);
		return q->code ? 0 : -ENOMEM;
	}
	if (a->file && !from_stdin) {
		fd = open(a->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			return fail_set(fail, errno, "code", "cannot read %s: %s", a->file,
					strerror(errno));
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return fail_set(
				fail, EISDIR, "code",
				"%s is a directory: name a file, and bring the directory with "
				"--in",
				a->file);
		/* It kept open() from waiting for a FIFO's writer; reading may wait. */
		(void)fcntl(fd, F_SETFL, 0);
	}
	r = buf_read_fd(&b, from_stdin ? 0 : fd);
	if (r == -EFBIG)
		return fail_set(fail, EFBIG, "code", "the code is larger than %zu KiB",
				LANGUAGE_CODE_MAX >> 10);
	if (r < 0)
		return fail_set(fail, -r, "code", "cannot read the code: %s", strerror(-r));
	q->code_len = b.len;
	q->code = (char *)take_ptr(b.data);
	return 0;
}

/* The limits are set. */
static int set_step(struct run_step *step, const char *command, const struct language *l,
		    struct fail *fail)
{
	struct language_vars vars = { .file = l->file };

	vars.memory_mb = step->limits.memory_bytes >> 20;
	vars.cpus = MAX(step->limits.cpu_milli / 1000, 1u);
	return language_argv(command, &vars, &step->argv, fail);
}

static int args_use_language(struct run_args *a, struct run_request *q, struct fail *fail)
{
	_cleanup_(language_done) struct language l = { 0 };
	struct language_vars vars;
	int r;

	if (a->language)
		r = language_load(a->language, &l, fail);
	else if (a->file && strcmp(a->file, "-") != 0)
		r = language_for_file(a->file, &l, fail);
	else
		r = fail_set(fail, EINVAL, "language",
			     "which language? Give -l LANG; see "
			     "'glovebox languages'");
	if (r == 0)
		r = read_code(a, q, fail);
	if (r == 0)
		r = language_check_code(q->code, q->code_len, LANGUAGE_CODE_MAX, fail);
	if (r < 0)
		return r;
	if (strcmp(q->template_name, "base") == 0 && !language_present(&l))
		return fail_set(fail, ENOENT, "language",
				"%s is not installed on this machine; see 'glovebox languages'",
				l.title);
	q->code_file = l.file ? strdup(l.file) : NULL;
	q->language = l.name ? strdup(l.name) : NULL;
	if (!q->code_file || !q->language)
		return -ENOMEM;
	q->run.limits = run_step_limits(&a->given, &l.run_limits);
	r = set_step(&q->run, l.run, &l, fail);
	if (r == 0 && l.compile) {
		q->has_compile = true;
		q->compile.limits = run_compile_limits(&a->given, &l.compile_limits);
		r = set_step(&q->compile, l.compile, &l, fail);
	}
	vars = (struct language_vars){
		.file = l.file,
		.memory_mb = q->run.limits.memory_bytes >> 20,
		.cpus = MAX(q->run.limits.cpu_milli / 1000, 1u),
	};
	return r < 0 ? r : language_env(&l, &vars, &a->language_env, fail);
}

static int use_command(const struct run_args *a, struct run_request *q, struct fail *fail)
{
	static const struct language_limits no_needs;
	size_t n = 0;

	while (a->command[n]) {
		if (strlen(a->command[n]) > WIRE_DATA_MAX)
			return fail_set(
				fail, E2BIG, "options",
				"argument %zu is longer than 64 KiB: pass it as a file with "
				"--in",
				n);
		n++;
	}
	if (n > 4096)
		return fail_set(fail, E2BIG, "options", "more than 4096 arguments");
	q->run.argv = calloc(n + 1, sizeof(char *));
	if (!q->run.argv)
		return -ENOMEM;
	/* Like language_argv(): one block, freed at once; the strings are the caller's. */
	memcpy(q->run.argv, a->command, n * sizeof(char *));
	q->run.limits = run_step_limits(&a->given, &no_needs);
	return 0;
}

static int open_stdin(const struct run_args *a, struct run_request *q, struct fail *fail)
{
	if (!a->stdin_path)
		return 0;
	if (strcmp(a->stdin_path, "-") == 0) {
		if (a->file && strcmp(a->file, "-") == 0)
			return fail_set(fail, EINVAL, "--stdin",
					"standard input cannot be both the code and the program's "
					"input");
		q->stdin_fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	} else {
		bool is_dir = false;

		q->stdin_fd = open(a->stdin_path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (q->stdin_fd >= 0) {
			struct stat st;

			is_dir = fstat(q->stdin_fd, &st) == 0 && S_ISDIR(st.st_mode);
		}
		if (is_dir)
			return fail_set(fail, EISDIR, "--stdin", "--stdin %s is a directory",
					a->stdin_path);
	}
	if (q->stdin_fd < 0)
		return fail_set(fail, errno, "--stdin", "cannot read --stdin %s: %s", a->stdin_path,
				strerror(errno));
	return 0;
}

/* For the service, which has defaults of its own. */
static int keep_given(const struct run_args *a, struct run_request *q)
{
	q->given = a->given;
	q->given_env = calloc(a->n_env + 1, sizeof(char *));
	if (!q->given_env)
		return -ENOMEM;
	for (size_t i = 0; i < a->n_env; i++)
		q->given_env[i] = (char *)(uintptr_t)a->env[i];
	return 0;
}

static int open_inputs(const struct run_args *a, struct run_request *q, struct fail *fail)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n_later; i++)
		if (a->later[i].id == OPT_IN)
			r = run_args_input(q, a->later[i].text, fail);
	return r;
}

int run_args_reason(int r, struct fail *fail)
{
	return r < 0 && !fail->msg[0] ? fail_set(fail, -r, "options", "%s",
						 r == -ENOMEM ? "out of memory" : strerror(-r)) :
					r;
}

int run_args_options(int argc, char **argv, struct run_args *a, struct run_request *ret,
		     struct fail *fail)
{
	return run_args_reason(args_read(argc, argv, a, ret, fail), fail);
}

bool run_args_network(const struct run_args *a)
{
	for (size_t i = 0; i < a->n_later; i++)
		if (a->later[i].id != OPT_IN)
			return true;
	return false;
}

int run_args_open(struct run_args *a, struct run_request *ret, struct fail *fail)
{
	int r = open_inputs(a, ret, fail);

	if (r == 0)
		r = a->command ? use_command(a, ret, fail) : args_use_language(a, ret, fail);
	if (r == 0)
		r = open_stdin(a, ret, fail);
	if (r == 0)
		r = keep_given(a, ret);
	return run_args_reason(r, fail);
}

int run_args_env(const struct run_args *a, const char *const *network, struct run_request *ret,
		 struct fail *fail)
{
	int r = run_env(&ret->run.limits, (const char *const *)a->language_env, network, a->env,
			&ret->env);

	return run_args_reason(r, fail);
}

void run_args_done(struct run_args *a)
{
	free(a->later);
	free(a->language_env);
}

void run_request_done(struct run_request *q)
{
	free(q->code);
	free(q->code_file);
	free(q->compile.argv);
	free(q->run.argv);
	for (size_t i = 0; i < q->n_inputs; i++) {
		fd_close(q->inputs[i].fd);
		free(q->inputs[i].dest);
	}
	free(q->inputs);
	run_env_free(q->env);
	free(q->net.rules);
	free(q->net.settings);
	fd_closep(&q->net.learn_fd);
	free(q->language);
	free(q->given_env);
	fd_closep(&q->stdin_fd);
	fd_closep(&q->signal_fd);
}
