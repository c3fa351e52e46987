/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel, settings of the host around boxes, the languages it has, and the real thing. */
#include "cli/doctor/doctor.h"

#include "box/doors.h"
#include "box/filter/filter.h"
#include "cli/self.h"
#include "language/language.h"
#include "service/program.h"
#include "sys/landlock.h"
#include "sys/mnt.h"
#include "sys/proc.h"

#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

/* --- what the kernel itself must have -------------------------------------------------------- */

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Called with arguments that no kernel accepts: ENOSYS says that there is no such call. */
static const struct {
	const char *name;
	long number;
} calls[] = {
	{ "clone3", SYS_clone3 },           { "pidfd_send_signal", SYS_pidfd_send_signal },
	{ "open_tree", SYS_open_tree },     { "move_mount", SYS_move_mount },
	{ "fsopen", SYS_fsopen },           { "fsconfig", SYS_fsconfig },
	{ "fsmount", SYS_fsmount },         { "mount_setattr", SYS_mount_setattr },
	{ "execveat", SYS_execveat },       { "memfd_create", SYS_memfd_create },
	{ "close_range", SYS_close_range },
};

static bool call_is_missing(long number)
{
	return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) < 0 && errno == ENOSYS;
}

void doctor_check_kernel(const struct doctor *d, struct doctor_result *r)
{
	struct utsname u = { 0 };
	char missing[160] = "";
	size_t len = 0;

	(void)uname(&u);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (call_is_missing(calls[i].number))
			len += (size_t)snprintf(missing + len, sizeof(missing) - len, " %s",
						calls[i].name);
	if (!len) {
		doctor_summary(r, DOCTOR_OK, "Linux %.60s, %.20s, has every system call boxes need",
			       u.release, u.machine);
		return;
	}
	doctor_summary(r, doctor_needed(d), "Linux %.60s lacks%.80s", u.release, missing);
	doctor_detail(r,
		      "Boxes need Linux 5.12; a container's seccomp profile can hide calls too.");
	doctor_cost(r, "boxes cannot be made");
	doctor_remedy(r,
		      "install a newer kernel (Debian: apt-get install linux-image-amd64 from "
		      "backports; Ubuntu: apt-get install linux-generic-hwe-22.04), or run outside "
		      "the container");
}

static int try_seccomp(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return box_filter_install();
}

void doctor_check_seccomp(const struct doctor *d, struct doctor_result *r)
{
	int e = doctor_probe(0, try_seccomp);
	size_t len;

	(void)box_filter_program(&len);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK,
			       "the boxes' filter can be installed (%zu instructions)", len);
		return;
	}
	doctor_summary(r, doctor_needed(d), "the boxes' system-call filter cannot be installed: %s",
		       strerror(-e));
	doctor_cost(r,
		    "boxes are refused: nothing would keep their programs from the whole kernel");
	doctor_remedy(r,
		      "use a kernel with CONFIG_SECCOMP_FILTER=y (Debian's and Ubuntu's have it)");
}

/* What each ABI brought that boxes use. */
static const char *landlock_lacks(int abi)
{
	if (abi < 2)
		return "renaming across directories is refused; truncation, device ioctls and signals "
		       "are not controlled a second time";
	if (abi < 3)
		return "truncation, device ioctls and signals are not controlled a second time";
	if (abi < 5)
		return "device ioctls, signals and abstract sockets are not controlled a second time";
	return "signals and abstract sockets are not controlled a second time";
}

static void landlock_missing(struct doctor_result *r)
{
	doctor_summary(r, DOCTOR_WARNING, "the kernel offers no Landlock");
	doctor_detail(r, "It is not built in, or not in the list of /sys/kernel/security/lsm.");
	doctor_cost(r, "the second lock on files: boxes rely on mounts and user ids alone");
	doctor_remedy(r, "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX "
			 "lsm=landlock,lockdown,yama,integrity,apparmor,bpf\"' | sudo tee "
			 "/etc/default/grub.d/landlock.cfg && sudo update-grub && sudo reboot "
			 "(Linux 5.13 or later)");
}

void doctor_check_landlock(const struct doctor *d, struct doctor_result *r)
{
	int abi = landlock_abi();

	(void)d;
	if (abi <= 0) {
		landlock_missing(r);
		return;
	}
	doctor_summary(r, abi >= 6 ? DOCTOR_OK : DOCTOR_NOTE, "ABI %d", abi);
	if (abi >= 6)
		return;
	doctor_cost(r, "%s; namespaces and seccomp still do", landlock_lacks(abi));
	doctor_remedy(r, "install Linux 6.12 or later");
}

void doctor_check_memfd(const struct doctor *d, struct doctor_result *r)
{
	_cleanup_(fd_closep) int fd = memfd_create("glovebox-doctor", MFD_CLOEXEC | MFD_EXEC);
	int e;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every memfd was executable */
		fd = memfd_create("glovebox-doctor", MFD_CLOEXEC);
	e = errno;
	if (fd >= 0) {
		doctor_summary(r, DOCTOR_OK, "the agent can run from sealed memory");
		return;
	}
	doctor_summary(r, doctor_needed(d), "executable memory files are forbidden: %s",
		       strerror(e));
	doctor_detail(r, "vm.memfd_noexec = 2 refuses even those who say that they mean it.");
	doctor_cost(r, "boxes cannot be made: their agent runs from a sealed memory file");
	doctor_remedy(r, "sudo sysctl -w vm.memfd_noexec=1");
}

/* With the rules that boxes get; the kernel loads its modules for the owner of the namespace. */
void doctor_check_nftables(const struct doctor *d, struct doctor_result *r)
{
	int e;

	if (doctor_is_blocked(d, r))
		return;
	e = doors_probe_catching();
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "nf_tables leads every connection to egress");
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "nf_tables cannot redirect in a namespace: %s",
		       strerror(-e));
	doctor_detail(r, "A box with network reaches it through the proxy variables only. Nothing "
			 "gets out that is not allowed, either way.");
	doctor_cost(r, "programs in boxes that know of no proxy have no network");
	doctor_remedy(
		r,
		"sudo modprobe -a nf_tables nft_tproxy nft_redir nft_connlimit nft_ct (modules in Debian's and "
		"Ubuntu's kernels)");
}

void doctor_check_egress(const struct doctor *d, struct doctor_result *r)
{
	char path[PATH_MAX];

	(void)d;
	if (program_find("egress", "glovebox-egress", path, sizeof(path)) == 0) {
		doctor_summary(r, DOCTOR_OK, "boxes can be given network, to what is allowed only");
		return;
	}
	doctor_summary(r, DOCTOR_WARNING, "there is no glovebox-egress");
	doctor_cost(r, "no box can have network, whatever is asked for");
	doctor_remedy(r, "install glovebox completely, or build it: meson compile -C build");
}

/* --- settings around boxes, languages, and the real thing ------------------------------------ */

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
