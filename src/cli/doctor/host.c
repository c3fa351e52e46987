/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the host around boxes, the languages it has, and the real thing. */
#include "cli/doctor/doctor.h"
#include "language/language.h"
#include "cli/self.h"

void doctor_check_core(const struct doctor *d, struct doctor_result *r)
{
	char pattern[128] = "";

	(void)d;
	if (doctor_sysctl_text("kernel.core_pattern", pattern, sizeof(pattern)) < 0 ||
	    pattern[0] != '|') {
		doctor_summary(r, DOCTOR_OK, "no program is started by crashes");
		return;
	}
	pattern[strcspn(pattern, " ")] = '\0';
	doctor_summary(r, DOCTOR_NOTE, "crashes start %.100s as root", pattern + 1);
	doctor_cost(r,
		    "nothing: programs in boxes have RLIMIT_CORE 1, with which the kernel does not "
		    "start it");
}

void doctor_check_ptrace(const struct doctor *d, struct doctor_result *r)
{
	uint64_t scope;

	(void)d;
	if (doctor_sysctl("kernel.yama.ptrace_scope", &scope) == 0 && scope > 0) {
		doctor_summary(r, DOCTOR_OK, "kernel.yama.ptrace_scope = %llu",
			       (unsigned long long)scope);
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "processes of one user may trace each other");
	doctor_cost(r,
		    "nothing in boxes, which cannot trace; other programs of yours can read what "
		    "glovebox holds");
	doctor_remedy(r,
		      "sudo sysctl -w kernel.yama.ptrace_scope=1 (needs the Yama security module)");
}

void doctor_check_tiocsti(const struct doctor *d, struct doctor_result *r)
{
	uint64_t legacy;
	int e = doctor_sysctl("dev.tty.legacy_tiocsti", &legacy);

	(void)d;
	if (e == 0 && legacy == 0) {
		doctor_summary(r, DOCTOR_OK, "dev.tty.legacy_tiocsti = 0");
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "programs can type into their terminal (TIOCSTI)");
	doctor_cost(
		r,
		"nothing in boxes, which never get your terminal; other sandboxes may hand it on");
	doctor_remedy(r, "%s",
		      e == 0 ? "sudo sysctl -w dev.tty.legacy_tiocsti=0" :
			       "install Linux 6.2 or later");
}

void doctor_check_symlinks(const struct doctor *d, struct doctor_result *r)
{
	uint64_t links;

	if (doctor_sysctl("fs.protected_symlinks", &links) == 0 && links > 0) {
		doctor_summary(r, DOCTOR_OK, "fs.protected_symlinks = %llu",
			       (unsigned long long)links);
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "links of others in /tmp are followed");
	doctor_cost(r, "nothing in boxes, which have their own /tmp%s",
		    d->root ? "" : "; ours in the host's /tmp is opened without following links");
	doctor_remedy(r, "sudo sysctl -w fs.protected_symlinks=1 fs.protected_hardlinks=1");
}

void doctor_check_languages(const struct doctor *d, struct doctor_result *r)
{
	struct fail fail = { 0 };
	struct language *list = NULL;
	char missing[120] = "";
	size_t n, present = 0, len = 0;

	(void)d;
	if (language_list(&list, &n, &fail) < 0 || n == 0) {
		doctor_summary(r, DOCTOR_NOTE, "%.150s",
			       fail.msg[0] ? fail.msg : "there are no language files");
		doctor_cost(r, "glovebox run -l does not work; commands after -- do");
		doctor_remedy(r, "install glovebox with its share directory, or set "
				 "GLOVEBOX_LANGUAGES");
		free(list);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (language_present(&list[i]))
			present++;
		else if (len + strlen(list[i].name) + 2 < sizeof(missing))
			len += (size_t)snprintf(missing + len, sizeof(missing) - len, " %s",
						list[i].name);
	}
	doctor_summary(r, present ? DOCTOR_OK : DOCTOR_NOTE, "%zu of %zu are installed%s", present,
		       n, present < n ? "" : ", all that we know");
	if (present < n)
		doctor_detail(r, "Not installed:%s.", missing);
	language_list_free(list, n);
}

static void explain_front(const struct doctor *d, struct doctor_result *r)
{
	doctor_summary(r, DOCTOR_ERROR, "plain runs fail, those with --json work");
	doctor_detail(r, "Plain runs are made by %.100s, all others by %.100s.", d->front, d->self);
	doctor_cost(r, "glovebox run without --json, --out or a network");
	doctor_remedy(
		r, "let both do the same, for example in /etc/apparmor.d; glovebox run --local -- "
		   "/bin/true says what fails");
}

void doctor_check_box(const struct doctor *d, struct doctor_result *r)
{
	if (d->box_ok && d->front[0] && !d->front_ok) {
		explain_front(d, r);
		return;
	}
	if (d->box_ok) {
		doctor_summary(r, DOCTOR_OK,
			       "made, ran /bin/true and removed; it was ready in %.1f ms",
			       json_number_value(json_object_get(d->box, "setup_ms")));
		return;
	}
	if (!d->box)
		doctor_summary(r, DOCTOR_ERROR, "glovebox run did not even start");
	else if (*self_text(d->box, "message"))
		doctor_summary(r, DOCTOR_ERROR, "%.150s", self_text(d->box, "message"));
	else
		doctor_summary(r, DOCTOR_ERROR, "/bin/true ended with status %.60s",
			       self_text(d->box, "status"));
	if (d->front_ok)
		doctor_detail(r, "Plain runs work: they are made by %.100s, not by %.100s.",
			      d->front, d->self);
	doctor_cost(r, d->front_ok ? "all but plain runs" : "no code can be run");
	doctor_remedy(r, "see the errors above");
}
