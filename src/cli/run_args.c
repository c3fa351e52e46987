/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_args.h"

#include "base/parse.h"
#include "cli/language.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#define ENV_MAX 256
#define INPUTS_MAX 256

enum option_id {
	OPT_STDIN = 256,
	OPT_IN,
	OPT_OUT,
	OPT_ENV,
	OPT_TIMEOUT,
	OPT_CPU_TIME,
	OPT_CPUS,
	OPT_MEMORY,
	OPT_DISK,
	OPT_FILES,
	OPT_PIDS,
	OPT_OUTPUT,
	OPT_JSON,
	OPT_RAW,
};

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
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* What is read before the language is known. 0 in a limit: not given. */
struct args {
	const char *language;
	const char *code;
	const char *stdin_path;
	const char *file; /* FILE or "-" */
	char **command;   /* behind -- */
	struct run_limits given;
	const char *env[ENV_MAX];
	size_t n_env;
};

static const struct run_limits defaults = {
	.timeout_us = UINT64_C(30) * 1000000,
	.cpu_time_us = UINT64_C(10) * 1000000,
	.memory_bytes = UINT64_C(256) << 20,
	.disk_bytes = UINT64_C(256) << 20,
	.files = 65536,
	.output_bytes = UINT64_C(1) << 20,
	.pids = 64,
	.cpu_milli = 1000,
};

/* A limit must be a number of its kind within what makes sense. */
static int bad_limit(struct fail *fail, const char *name, const char *text, const char *want)
{
	return fail_set(fail, EINVAL, "limits", "--%s %s: %s", name, text, want);
}

static int read_bytes(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		      struct fail *fail)
{
	char want[96];

	if (parse_bytes(text, ret) < 0)
		return bad_limit(fail, name, text, "give a size such as 64M or 2G");
	if (*ret < min || *ret > max) {
		(void)snprintf(want, sizeof(want), "must be between %lluK and %lluM here",
			       (unsigned long long)(min >> 10), (unsigned long long)(max >> 20));
		return bad_limit(fail, name, text, want);
	}
	return 0;
}

static int read_duration(const char *name, const char *text, uint64_t *ret, struct fail *fail)
{
	if (parse_duration_us(text, ret) < 0)
		return bad_limit(fail, name, text, "give a duration such as 500ms, 30s or 5m");
	if (*ret < 1000 || *ret > UINT64_C(86400) * 1000000)
		return bad_limit(fail, name, text, "must be between 1ms and 24h");
	return 0;
}

static int read_count(const char *name, const char *text, uint64_t max, uint64_t *ret,
		      struct fail *fail)
{
	char want[64];

	if (parse_u64(text, ret) == 0 && *ret >= 1 && *ret <= max)
		return 0;
	(void)snprintf(want, sizeof(want), "must be a whole number from 1 to %llu",
		       (unsigned long long)max);
	return bad_limit(fail, name, text, want);
}

static int read_cpus(const char *text, uint32_t *ret, struct fail *fail)
{
	char want[80];
	int cpus = get_nprocs();

	if (parse_cpus_milli(text, ret) == 0 && *ret >= 10 && *ret <= (uint32_t)cpus * 1000)
		return 0;
	(void)snprintf(want, sizeof(want), "must be between 0.01 and %d, the CPUs of this machine",
		       cpus);
	return bad_limit(fail, "cpus", text, want);
}

static uint64_t machine_memory(void)
{
	struct sysinfo info;

	return sysinfo(&info) < 0 ? UINT64_MAX : (uint64_t)info.totalram * info.mem_unit;
}

static int read_limit(int id, const char *text, struct run_limits *l, struct fail *fail)
{
	uint64_t n;
	int r;

	switch (id) {
	case OPT_TIMEOUT:
		return read_duration("timeout", text, &l->timeout_us, fail);
	case OPT_CPU_TIME:
		return read_duration("cpu-time", text, &l->cpu_time_us, fail);
	case OPT_CPUS:
		return read_cpus(text, &l->cpu_milli, fail);
	case OPT_MEMORY:
		return read_bytes("memory", text, 4 << 20, machine_memory(), &l->memory_bytes, fail);
	case OPT_DISK:
		return read_bytes("disk", text, 64 << 10, machine_memory(), &l->disk_bytes, fail);
	case OPT_OUTPUT:
		return read_bytes("output", text, 1, UINT64_C(1) << 32, &l->output_bytes, fail);
	case OPT_FILES:
		return read_count("files", text, UINT64_C(1) << 24, &l->files, fail);
	default:
		r = read_count("pids", text, 32768, &n, fail);
		if (r == 0)
			l->pids = (uint32_t)n;
		return r;
	}
}

static int add_env(struct args *a, const char *text, struct fail *fail)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		return fail_set(fail, EINVAL, "--env", "--env %.100s: write NAME=VALUE", text);
	if (a->n_env >= ENV_MAX)
		return fail_set(fail, E2BIG, "--env", "more than %d variables", ENV_MAX);
	if (strlen(text) > WIRE_DATA_MAX)
		return fail_set(fail, E2BIG, "--env", "--env %.40s…: longer than 64 KiB", text);
	a->env[a->n_env++] = text;
	return 0;
}

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

static int open_input(const char *path, bool *ret_is_dir)
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
static int add_input(struct run_request *q, const char *text, struct fail *fail)
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
	in.fd = open_input(source, &in.is_dir);
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

static int read_option(int id, struct args *a, struct run_request *q, struct fail *fail)
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
	case OPT_STDIN:
		a->stdin_path = optarg;
		return 0;
	case OPT_IN:
		return add_input(q, optarg, fail);
	case OPT_OUT:
		q->out_dir = optarg;
		return 0;
	case OPT_ENV:
		return add_env(a, optarg, fail);
	default:
		return read_limit(id, optarg, &a->given, fail);
	}
}

/* Splits the command line into options, FILE, and the command behind --. */
static int read_args(int argc, char **argv, struct args *a, struct run_request *q, struct fail *fail)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			a->command = argv + i + 1;
			argc = i;
		}
	}
	optind = 1;
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
					optopt && optopt < 256 ? (char[]){ '-', (char)optopt, 0 } :
								 argv[optind - 1]);
		if (id == ':')
			return fail_set(fail, EINVAL, "options",
					"option %s needs a value; see 'glovebox run --help'",
					argv[optind - 1]);
		r = read_option(id, a, q, fail);
		if (r < 0)
			return r;
	}
	if (optind < argc)
		a->file = argv[optind++];
	if (optind < argc)
		return fail_set(fail, EINVAL, "options",
				"unexpected '%s': one FILE, or a command behind --", argv[optind]);
	if (!!a->code + !!a->file + !!a->command != 1)
		return fail_set(fail, EINVAL, "options",
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

static int read_code(const struct args *a, struct run_request *q, struct fail *fail)
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
	if (!from_stdin) {
		fd = open(a->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			return fail_set(fail, errno, "code", "cannot read %s: %s", a->file,
					strerror(errno));
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return fail_set(fail, EISDIR, "code",
					"%s is a directory: name a file, and bring the directory with "
					"--in",
					a->file);
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

/* The limits of a step: what was given, else what the language needs, else the default. */
static struct run_limits step_limits(const struct run_limits *given, const struct language_limits *l)
{
	struct run_limits out = *given;

#define CHOOSE(field, need)                                                                        \
	do {                                                                                       \
		if (!out.field)                                                                    \
			out.field = MAX((uint64_t)defaults.field, (uint64_t)(need));               \
	} while (0)
	CHOOSE(timeout_us, l->timeout_us);
	CHOOSE(cpu_time_us, l->cpu_time_us);
	CHOOSE(memory_bytes, l->memory_bytes);
	CHOOSE(disk_bytes, l->disk_bytes);
	CHOOSE(files, 0);
	CHOOSE(output_bytes, 0);
#undef CHOOSE
	if (!out.pids)
		out.pids = (uint32_t)MAX((uint64_t)defaults.pids, l->pids);
	if (!out.cpu_milli)
		out.cpu_milli = defaults.cpu_milli;
	return out;
}

static int set_step(struct run_step *step, const char *command, const struct language *l,
		    const struct language_limits *limits, const struct args *a, struct fail *fail)
{
	struct language_vars vars = { .file = l->file };

	step->limits = step_limits(&a->given, limits);
	vars.memory_mb = step->limits.memory_bytes >> 20;
	vars.cpus = MAX(step->limits.cpu_milli / 1000, 1u);
	return language_argv(command, &vars, &step->argv, fail);
}

static int use_language(const struct args *a, struct run_request *q, char ***ret_env,
			struct fail *fail)
{
	static const struct run_limits nothing_given;
	_cleanup_(language_done) struct language l = { 0 };
	struct language_vars vars;
	struct args compile = *a;
	int r;

	if (a->language)
		r = language_load(a->language, &l, fail);
	else if (a->file && strcmp(a->file, "-") != 0)
		r = language_for_file(a->file, &l, fail);
	else
		r = fail_set(fail, EINVAL, "language", "which language? Give -l LANG; see "
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
	q->code_file = strdup(l.file);
	if (!q->code_file)
		return -ENOMEM;
	r = set_step(&q->run, l.run, &l, &l.run_limits, a, fail);
	if (r == 0 && l.compile) {
		/* What was asked for is for the program; compiling has limits of its own. */
		compile.given = nothing_given;
		compile.given.cpu_milli = a->given.cpu_milli;
		compile.given.output_bytes = a->given.output_bytes;
		q->has_compile = true;
		r = set_step(&q->compile, l.compile, &l, &l.compile_limits, &compile, fail);
	}
	vars = (struct language_vars){
		.file = l.file,
		.memory_mb = q->run.limits.memory_bytes >> 20,
		.cpus = MAX(q->run.limits.cpu_milli / 1000, 1u),
	};
	return r < 0 ? r : language_env(&l, &vars, ret_env, fail);
}

/* Sets NAME=VALUE, replacing an earlier one of that name. */
static int put_env(char **env, size_t *n, const char *text)
{
	size_t name_len = (size_t)(strchr(text, '=') - text) + 1;
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++) {
		if (strncmp(env[i], text, name_len) == 0) {
			free(env[i]);
			env[i] = copy;
			return 0;
		}
	}
	env[(*n)++] = copy;
	return 0;
}

/* The program's whole environment: nothing of ours, then the language's, then what was asked for. */
static int build_env(const struct args *a, char **language_vars, struct run_request *q)
{
	static const char *const fixed[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin",
		"HOME=" RUN_HOME, "USER=user", "LOGNAME=user", "SHELL=/bin/bash", "LANG=C.UTF-8",
		"TMPDIR=/tmp",
	};
	char cpus[2][40];
	uint32_t n_cpus = MAX(q->run.limits.cpu_milli / 1000, 1u);
	size_t n = 0, n_language = 0;
	int r = 0;

	while (language_vars && language_vars[n_language])
		n_language++;
	q->env = calloc(ARRAY_SIZE(fixed) + ARRAY_SIZE(cpus) + n_language + a->n_env + 1,
			sizeof(*q->env));
	if (!q->env)
		return -ENOMEM;
	/* PR-18: runtimes that would count the host's CPUs are told the box's. */
	(void)snprintf(cpus[0], sizeof(cpus[0]), "GOMAXPROCS=%u", n_cpus);
	(void)snprintf(cpus[1], sizeof(cpus[1]), "OMP_NUM_THREADS=%u", n_cpus);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(fixed); i++)
		r = put_env(q->env, &n, fixed[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(cpus); i++)
		r = put_env(q->env, &n, cpus[i]);
	for (size_t i = 0; r == 0 && i < n_language; i++)
		r = put_env(q->env, &n, language_vars[i]);
	for (size_t i = 0; r == 0 && i < a->n_env; i++)
		r = put_env(q->env, &n, a->env[i]);
	return r;
}

static int use_command(const struct args *a, struct run_request *q, struct fail *fail)
{
	static const struct language_limits no_needs;
	size_t n = 0;

	while (a->command[n]) {
		if (strlen(a->command[n]) > WIRE_DATA_MAX)
			return fail_set(fail, E2BIG, "options",
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
	q->run.limits = step_limits(&a->given, &no_needs);
	return 0;
}

static int open_stdin(const struct args *a, struct run_request *q, struct fail *fail)
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

int run_args_read(int argc, char **argv, struct run_request *ret, struct fail *fail)
{
	_cleanup_(freep) char **language_vars = NULL;
	struct args a = { 0 };
	int r = read_args(argc, argv, &a, ret, fail);

	if (r != 0)
		return r;
	r = a.command ? use_command(&a, ret, fail) : use_language(&a, ret, &language_vars, fail);
	if (r == 0)
		r = open_stdin(&a, ret, fail);
	if (r == 0)
		r = build_env(&a, language_vars, ret);
	if (r == -ENOMEM && !fail->msg[0])
		r = fail_set(fail, ENOMEM, "options", "out of memory");
	return r;
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
	for (char **e = q->env; e && *e; e++)
		free(*e);
	free(q->env);
	fd_closep(&q->stdin_fd);
}
