/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sudo/sudo.h"

#include <getopt.h>

static const char help[] =
	"usage: sudo [-EHinsS] [-u USER] [VAR=value]... [--] [COMMAND [ARGUMENT...]]\n"
	"\n"
	"Runs a command as root of this box, or as USER of it. There is no password.\n"
	"\n"
	"  -u, --user USER        run as USER instead of root\n"
	"  -E, --preserve-env     keep the environment; --preserve-env=A,B keeps A and B\n"
	"  -H, --set-home         HOME is USER's also with -E\n"
	"  -i, --login            run USER's shell as a login shell, in USER's home\n"
	"  -s, --shell            run the shell that SHELL names\n"
	"  -n, --non-interactive  never ask for a password, which is always so\n"
	"  -S, --stdin            read the password from standard input: none is read\n"
	"  -v, -k, -K             check or forget the password: does nothing\n"
	"\n"
	"examples: sudo apt-get install -y jq   sudo -u postgres psql   sudo -i\n";

static const struct option longs[] = {
	{ "user", required_argument, NULL, 'u' },
	{ "preserve-env", optional_argument, NULL, 'E' },
	{ "set-home", no_argument, NULL, 'H' },
	{ "login", no_argument, NULL, 'i' },
	{ "shell", no_argument, NULL, 's' },
	{ "non-interactive", no_argument, NULL, 'n' },
	{ "stdin", no_argument, NULL, 'S' },
	{ "validate", no_argument, NULL, 'v' },
	{ "reset-timestamp", no_argument, NULL, 'k' },
	{ "remove-timestamp", no_argument, NULL, 'K' },
	{ "prompt", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int on_option(struct sudo_options *o, int option)
{
	switch (option) {
	case 'u':
		o->user = optarg;
		return 0;
	case 'E':
		if (optarg)
			o->keep_list = optarg;
		else
			o->keep_env = true;
		return 0;
	case 'H':
		o->set_home = true;
		return 0;
	case 'i':
		o->login = true;
		return 0;
	case 's':
		o->shell = true;
		return 0;
	case 'v':
	case 'k':
	case 'K':
		o->nothing = true;
		return 0;
	case 'n':
	case 'S':
	case 'p':
		return 0; /* about the password */
	case 'h':
		(void)fputs(help, stdout);
		return 1;
	case 'V':
		(void)puts("sudo of glovebox");
		return 1;
	default:
		(void)fputs(help, stderr); /* getopt has said which one it does not know */
		return -1;
	}
}

static bool is_variable(const char *text)
{
	return strchr(text, '=') && text[0] != '=';
}

int sudo_parse(int argc, char **argv, struct sudo_options *o)
{
	int option, r = 0;

	*o = (struct sudo_options){ .user = "root" };
	/* "+": options behind the command are the command's. */
	while (r == 0 && (option = getopt_long(argc, argv, "+u:EHisnSvkKp:hV", longs, NULL)) != -1)
		r = on_option(o, option);
	if (r != 0)
		return r;
	o->vars = argv + optind;
	while (optind < argc && is_variable(argv[optind])) {
		optind++;
		o->n_vars++;
	}
	o->command = argv + optind;
	o->n_command = (size_t)(argc - optind);
	if (o->login && o->shell) {
		(void)fputs("sudo: -i and -s exclude each other\n", stderr);
		return -1;
	}
	if (o->n_command == 0 && !o->login && !o->shell && !o->nothing) {
		(void)fputs(help, stderr);
		return -1;
	}
	return 0;
}
