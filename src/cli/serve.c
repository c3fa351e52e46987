/* SPDX-License-Identifier: Apache-2.0 */
/* `glovebox serve`: reads the settings and becomes the warden. */
#include "cli/cli.h"

#include "language/language.h"
#include "service/config.h"
#include "warden/warden.h"

#include <unistd.h>

static const char help_head[] =
	"Usage: glovebox serve [OPTION]…\n"
	"\n"
	"Serves sandboxes over HTTP: E2B's SDKs and 'glovebox create', 'exec', 'ls' … talk to it.\n"
	"The first start makes a key, prints it once and keeps it for the command line of the user who\n"
	"started it.\n"
	"\n"
	"  --config                            file of settings; see glovebox.toml(5)\n"
	"  --no-zygote                         each Python context is started anew, as --interpreter-zygote false\n"
	"  --help                              this text\n";

static const char help_tail[] =
	"\n"
	"Every setting can also come from the file or from the environment (GLOVEBOX_SECTION_KEY);\n"
	"an option wins over the environment, which wins over the file. 'glovebox config show' tells\n"
	"what holds. SIGHUP starts the server's process anew without touching any sandbox; SIGTERM\n"
	"ends everything.\n"
	"\n"
	"Examples:\n"
	"  glovebox serve\n"
	"  glovebox serve --listen 127.0.0.1:8080 --state ~/boxes --sandbox-memory 1G\n"
	"  export E2B_API_URL=http://127.0.0.1:7070 E2B_SANDBOX_URL=http://127.0.0.1:7070\n"
	"  export E2B_API_KEY=$(cat /var/lib/glovebox/local.key)\n";

/* "server.listen" is --listen, "sandbox.memory" is --sandbox-memory. */
static void print_flag(size_t i)
{
	const char *name = config_name(i);
	char flag[64];
	char *dot;

	if (strncmp(name, "server.", 7) == 0)
		name += 7;
	(void)snprintf(flag, sizeof(flag), "--%s", name);
	dot = strchr(flag, '.');
	if (dot)
		*dot = '-';
	for (char *p = flag; *p; p++)
		if (*p == '_')
			*p = '-';
	(void)printf("  %-34s  %s\n", flag, config_help(i));
}

static int print_help(void)
{
	(void)fputs(help_head, stdout);
	for (size_t i = 0; i < config_count(); i++)
		print_flag(i);
	(void)fputs(help_tail, stdout);
	return fflush(stdout) < 0 || ferror(stdout) ? CLI_FAILURE : CLI_OK;
}

struct arguments {
	const char *config_file;
	struct warden_options options;
	bool help;
};

/* The value of "--flag value" or "--flag=value"; NULL when there is none. */
static const char *flag_value(char *flag, int argc, char **argv, int *i)
{
	char *equals = strchr(flag, '=');

	if (equals) {
		*equals = '\0';
		return equals + 1;
	}
	return *i + 1 < argc ? argv[++*i] : NULL;
}

static int set_flag(struct config *c, struct arguments *a, const char *flag, const char *value)
{
	const char *name = config_flag_name(flag);
	struct fail fail = { 0 };

	if (strcmp(flag, "--config") == 0)
		a->config_file = value;
	else if (strcmp(flag, "--server") == 0) /* this and the next: for packagers and tests */
		a->options.server = value;
	else if (strcmp(flag, "--client") == 0)
		a->options.client = value;
	else if (!name)
		return cli_error(CLI_USAGE, "unknown option %.60s; see 'glovebox serve --help'",
				 flag);
	else if (config_set(c, name, value, &fail) < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
	return CLI_OK;
}

static int read_arguments(int argc, char **argv, struct config *c, struct arguments *a)
{
	for (int i = 1; i < argc; i++) {
		char *flag = argv[i];
		const char *value;
		int r;

		if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0) {
			a->help = true;
			return CLI_OK;
		}
		if (strcmp(flag, "--no-zygote") == 0) {
			c->interpreter_zygote = false;
			c->source[CONFIG_interpreter_zygote] = CONFIG_FLAG;
			continue;
		}
		if (strncmp(flag, "--", 2) != 0)
			return cli_error(CLI_USAGE, "what is '%.60s'? See 'glovebox serve --help'",
					 flag);
		value = flag_value(flag, argc, argv, &i);
		if (!value)
			return cli_error(CLI_USAGE,
					 "option %.60s needs a value; see 'glovebox serve --help'",
					 flag);
		r = set_flag(c, a, flag, value);
		if (r != CLI_OK)
			return r;
	}
	return CLI_OK;
}

int cli_serve(int argc, char **argv)
{
	static struct config config;
	struct arguments a = { .options = { .config = &config } };
	struct fail fail = { 0 };
	int r;

	config_init(&config);
	r = read_arguments(argc, argv, &config, &a);
	if (r != CLI_OK)
		return r;
	if (a.help)
		return print_help();
	if (config_load(&config, a.config_file, environ, &fail) < 0)
		return cli_error(CLI_USAGE, "%s", fail.msg);
	a.options.languages_fd = language_open(&fail);
	if (a.options.languages_fd < 0 || warden_run(&a.options, &fail) < 0)
		return cli_error(1, "%s", fail.msg);
	return CLI_OK;
}
