/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces and the user ids in them. */
#include "box/ids.h"

#include "base/buf.h"
#include "base/parse.h"
#include "cli/doctor/doctor.h"
#include "sys/proc.h"
#include "sys/user.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

/* --- /etc/subuid and /etc/subgid: who may map which ids, and where more fit ------------------ */

#define FIRST_CANDIDATE 100000u /* where useradd starts */
#define FILE_MAX ((size_t)1 << 20)

static bool subid_read_line(char *line, struct doctor_subid *ret)
{
	char *save = NULL, *owner = strtok_r(line, ":", &save);
	char *first = strtok_r(NULL, ":", &save), *count = strtok_r(NULL, ":", &save);

	if (!owner || !first || !count || strlen(owner) >= sizeof(ret->owner))
		return false;
	if (parse_u64(first, &ret->first) < 0 || parse_u64(count, &ret->count) < 0 ||
	    ret->first > UINT32_MAX || ret->count > UINT32_MAX)
		return false;
	(void)snprintf(ret->owner, sizeof(ret->owner), "%s", owner);
	return true;
}

int doctor_subids_read(const char *file, struct doctor_subids *ret)
{
	_cleanup_(fd_closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	char *save = NULL;
	int r;

	ret->n = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_read_fd(&text, fd);
	if (r < 0)
		return r;
	for (char *line = strtok_r((char *)text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (ret->n == ARRAY_SIZE(ret->list))
			return -E2BIG;
		if (subid_read_line(line, &ret->list[ret->n]))
			ret->n++;
	}
	return 0;
}

static bool has_enough(const struct doctor_subids *ids, const char *user, uid_t uid)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", uid);
	for (size_t i = 0; i < ids->n; i++) {
		const struct doctor_subid *id = &ids->list[i];

		if ((!strcmp(id->owner, user) || !strcmp(id->owner, number)) && id->first > 0 &&
		    id->count >= DOCTOR_SUBIDS_COUNT)
			return true;
	}
	return false;
}

/* Moves *first up past the first entry that a range there would touch; false when there is none. */
static bool move_past(const struct doctor_subids *ids, uint64_t *first)
{
	for (size_t i = 0; i < ids->n; i++) {
		uint64_t end = ids->list[i].first + ids->list[i].count;

		if (ids->list[i].first >= *first + DOCTOR_SUBIDS_COUNT || end <= *first)
			continue;
		*first = end;
		return true;
	}
	return false;
}

int doctor_subids_command(const char *user, uid_t uid, char *ret, size_t size)
{
	struct doctor_subids uids = { 0 }, gids = { 0 };
	char uid_part[64] = "", gid_part[64] = "";
	uint64_t first = FIRST_CANDIDATE;
	unsigned long long last;
	int r = doctor_subids_read("/etc/subuid", &uids);

	if (r == 0)
		r = doctor_subids_read("/etc/subgid", &gids);
	if (r < 0)
		return r;
	while (move_past(&uids, &first) || move_past(&gids, &first))
		;
	last = first + DOCTOR_SUBIDS_COUNT - 1;
	if (last > UINT32_MAX)
		return -ENOSPC;
	if (!has_enough(&uids, user, uid))
		(void)snprintf(uid_part, sizeof(uid_part), " --add-subuids %llu-%llu",
			       (unsigned long long)first, last);
	if (!has_enough(&gids, user, uid))
		(void)snprintf(gid_part, sizeof(gid_part), " --add-subgids %llu-%llu",
			       (unsigned long long)first, last);
	if (!*uid_part && !*gid_part)
		*ret = '\0';
	else if (snprintf(ret, size, "usermod%s%s %s", uid_part, gid_part, user) >= (int)size)
		return -ENAMETOOLONG;
	return 0;
}

/* --- the checks ------------------------------------------------------------------------------ */

#define REMEDY_DOCKER                                                                              \
	"in a container: docker run --security-opt seccomp=unconfined --security-opt "             \
	"apparmor=unconfined --security-opt systempaths=unconfined --cap-add SYS_ADMIN"

static bool sysctl_is(const char *name, uint64_t value)
{
	uint64_t now;

	return doctor_sysctl(name, &now) == 0 && now == value;
}

/* Joining a mount namespace leads to its root, also out of a chroot. Only root can. */
static int try_leave_chroot(void)
{
	struct statx ours, root;
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &ours) < 0 ||
	    setns(fd, CLONE_NEWNS) < 0 ||
	    statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &root) < 0)
		return -errno;
	return ours.stx_mnt_id == root.stx_mnt_id && ours.stx_ino == root.stx_ino ? -EALREADY : 0;
}

/* Why user namespaces do not work, and the command against it. */
static void explain_userns(const struct doctor *d, struct doctor_result *r, int e)
{
	if (sysctl_is("user.max_user_namespaces", 0)) {
		doctor_detail(r, "user.max_user_namespaces is 0.");
		doctor_remedy(r, "sudo sysctl -w user.max_user_namespaces=65536");
	} else if (sysctl_is("kernel.unprivileged_userns_clone", 0)) {
		doctor_detail(r, "kernel.unprivileged_userns_clone is 0 (a Debian setting).");
		doctor_remedy(r, "sudo sysctl -w kernel.unprivileged_userns_clone=1");
	} else if (sysctl_is("kernel.apparmor_restrict_unprivileged_userns", 1)) {
		char profile[96] = "unknown";
		FILE *f = fopen("/proc/self/attr/current", "re");

		if (f) {
			if (fscanf(f, "%95[^\n]", profile) != 1)
				(void)snprintf(profile, sizeof(profile), "none");
			(void)fclose(f);
		}
		doctor_detail(r,
			      "Ubuntu's kernel.apparmor_restrict_unprivileged_userns is 1 and our "
			      "AppArmor profile (%s) does not have 'userns'.",
			      profile);
		doctor_remedy(r,
			      "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; or, "
			      "narrower, a profile with 'userns,' for %.80s%s%.80s in "
			      "/etc/apparmor.d",
			      d->front, d->front[0] ? " and " : "", d->self);
	} else if (e == -ENOSPC || e == -EUSERS) {
		doctor_detail(
			r, "The limit of namespaces is reached, here or in a namespace around us.");
		doctor_remedy(r, "sudo sysctl -w user.max_user_namespaces=65536, outside of any "
				 "container");
	} else if (doctor_probe(0, try_leave_chroot) == 0) {
		doctor_detail(r,
			      "This is a chroot, and in one the kernel makes no user namespaces.");
		doctor_remedy(r, "run it outside; or enter that directory with pivot_root(8) in a "
				 "mount namespace of its own (unshare --mount)");
	} else {
		doctor_detail(r, "No sysctl explains it: a container, a security module or, for an "
				 "ordinary user, a chroot forbids it.");
		doctor_remedy(r, REMEDY_DOCKER);
	}
}

void doctor_check_userns(const struct doctor *d, struct doctor_result *r)
{
	int e = d->userns;

	if (e < 0) {
		doctor_summary(r, doctor_needed(d), "cannot be made, or have no power: %s",
			       strerror(-e));
		explain_userns(d, r, e);
		doctor_cost(r, "boxes cannot be made: a box's root would be the host's");
		return;
	}
	e = doctor_probe_unprivileged(d);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "can be made%s",
			       d->root ? ", by ordinary users too" : "");
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "root can make them, ordinary users cannot: %s",
		       strerror(-e));
	explain_userns(d, r, e);
	doctor_cost(r, "without sudo there are no boxes");
}

void doctor_check_namespaces(const struct doctor *d, struct doctor_result *r)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} kinds[] = {
		{ "mount", CLONE_NEWNS }, { "pid", CLONE_NEWPID }, { "net", CLONE_NEWNET },
		{ "ipc", CLONE_NEWIPC },  { "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP },
	};
	char bad[96] = "";
	size_t len = 0;
	uint64_t all = CLONE_NEWUSER;
	int e;

	if (doctor_is_blocked(d, r))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		all |= kinds[i].flag;
	e = doctor_probe(all, doctor_try_nothing);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "mount, pid, net, ipc, uts and cgroup, by one clone3");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (doctor_probe(CLONE_NEWUSER | kinds[i].flag, doctor_try_nothing) < 0)
			len += (size_t)snprintf(bad + len, sizeof(bad) - len, " %s", kinds[i].name);
	doctor_summary(r, doctor_needed(d), "cannot be made:%s: %s", len ? bad : " all at once",
		       strerror(-e));
	doctor_detail(r, "The kernel was built without, user.max_*_namespaces is 0, or a container "
			 "forbids it.");
	doctor_cost(r, "boxes cannot be made");
	doctor_remedy(r,
		      "sysctl -a | grep '^user.max_', and set what is 0 with sudo sysctl -w; "
		      "%.200s",
		      REMEDY_DOCKER);
}

static int try_time(void)
{
	return unshare(CLONE_NEWTIME) < 0 ? -errno : 0;
}

void doctor_check_time(const struct doctor *d, struct doctor_result *r)
{
	int e;

	if (doctor_is_blocked(d, r))
		return;
	e = doctor_probe(CLONE_NEWUSER, try_time);
	if (e == 0) {
		doctor_summary(r, DOCTOR_OK, "boxes have clocks of their own");
		return;
	}
	doctor_summary(r, DOCTOR_NOTE, "no time namespace: %s", strerror(-e));
	doctor_cost(r, "a program can see how long the host has been up");
	doctor_remedy(r, "use Linux 5.6 or later with CONFIG_TIME_NS=y; sudo sysctl -w "
			 "user.max_time_namespaces=65536 if that is 0");
}

static void explain_single(const struct ids_host *h, struct doctor_result *r)
{
	const struct passwd *pw = user_by_id(geteuid());
	char command[256] = "";

	doctor_summary(r, DOCTOR_WARNING, "one id for everything in a box: %s", h->why_single);
	doctor_detail(
		r, "Boxes run, but with your own id only, which their agent and programs share.");
	doctor_cost(r,
		    "the wall between a box's agent and its programs; all your boxes share one id");
	if (access("/usr/bin/newuidmap", X_OK) < 0)
		doctor_remedy(r, "sudo apt-get install uidmap");
	else if (pw &&
		 doctor_subids_command(pw->pw_name, pw->pw_uid, command, sizeof(command)) == 0)
		doctor_remedy(r, "sudo %s", command);
}

void doctor_check_ids(const struct doctor *d, struct doctor_result *r)
{
	struct ids_host h = IDS_HOST_INIT;
	struct fail fail = { 0 };

	if (ids_host_open(&h, &fail) < 0) {
		doctor_summary(r, doctor_needed(d), "%.150s", fail.msg);
		doctor_cost(r, "boxes cannot be made");
		doctor_remedy(r, "make that directory writable for you alone, or remove it");
		return;
	}
	if (h.kind == IDS_SINGLE)
		explain_single(&h, r);
	else
		doctor_summary(r, DOCTOR_OK, "%s; %u boxes at a time",
			       h.kind == IDS_RANGE ? "65,536 ids of its own for each box" :
						     "1,024 of your subordinate ids for each box",
			       h.slots.count);
	ids_host_close(&h);
}

static void explain_overlap(const struct doctor_subid *id, uint64_t first, uint64_t last,
			    struct doctor_result *r)
{
	unsigned long long from = id->first, to = id->first + id->count - 1;

	doctor_summary(r, DOCTOR_WARNING, "%s has ids in /etc/subuid that boxes use too",
		       id->owner);
	doctor_detail(r, "%llu to %llu; boxes of root use %llu to %llu.", from, to,
		      (unsigned long long)first, (unsigned long long)last);
	doctor_cost(r, "%s can signal and trace programs in those boxes", id->owner);
	doctor_remedy(
		r,
		"sudo usermod --del-subuids %llu-%llu %s, then --add-subuids with a range outside",
		from, to, id->owner);
}

/* Root's boxes use a fixed range that nothing reserves; others must keep out of it. */
void doctor_check_id_overlap(const struct doctor *d, struct doctor_result *r)
{
	struct doctor_subids ids = { 0 };
	struct ids_host h = IDS_HOST_INIT;
	struct fail fail = { 0 };
	uint64_t first, last;

	if (!d->root || ids_host_open(&h, &fail) < 0) {
		doctor_summary(r, DOCTOR_OK, "your boxes use only ids that are yours");
		return;
	}
	first = h.uid_base;
	last = first + (uint64_t)h.slots.count * DOCTOR_SUBIDS_COUNT - 1;
	ids_host_close(&h);
	if (doctor_subids_read("/etc/subuid", &ids) < 0) {
		doctor_summary(r, DOCTOR_NOTE, "cannot be told: /etc/subuid cannot be read");
		return;
	}
	for (size_t i = 0; i < ids.n; i++) {
		if (ids.list[i].first > last || ids.list[i].first + ids.list[i].count <= first)
			continue;
		explain_overlap(&ids.list[i], first, last, r);
		return;
	}
	doctor_summary(r, DOCTOR_OK, "nobody else has ids %llu to %llu", (unsigned long long)first,
		       (unsigned long long)last);
}
