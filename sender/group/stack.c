// SPDX-License-Identifier: BSD-3-Clause
#include "sender/group/stack.h"

#include "common/run/run_list.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const char *const memory_words[] = {"auto", NULL};
static const char *const closings[] = {"fin", "rst", NULL};

static const struct param params[] = {
	{"kernel", STACK_CURRENT,
		"the guests' kernel, as tools/weir guests list has it; current is Debian's",
		UNIT_NONE, PARAM_TEXT(struct stack, kernel)},
	{"cc", "cubic",
		"the kernel's congestion control; of the receiver too: DCTCP needs it there",
		UNIT_NONE, PARAM_TEXT(struct stack, cc)},
	{"qdisc", "fq", "the kernel's queue discipline: fq, fq_codel, pfifo_fast", UNIT_NONE,
		PARAM_TEXT(struct stack, qdisc)},
	{"hosts", "1", "guests over which the group's flows are spread", UNIT_NONE,
		PARAM_U64(struct stack, hosts), 1, STACK_HOSTS_MAX},
	{"memory", "auto",
		"of each guest; auto: 128 MB and what its connections can fill of the kernel's "
		"buffers; less than these need is refused",
		UNIT_BYTES, PARAM_U64(struct stack, memory_bytes), 32e6, 64e9,
		.choices = memory_words},
	{"card", "10Gbit", "rate at which a guest's network card sends", UNIT_RATE_BPS,
		PARAM_U64(struct stack, card_bps), 1e6, 1e12},
	{"coalesce", "0s",
		"least time between two interrupts of a guest's network card, as cards moderate "
		"them: saves time, and adds as much delay; 0s: an interrupt for each frame",
		UNIT_TIME_NS, PARAM_U64(struct stack, coalesce_ns), 0, 1e6},
	{"pause", "0s",
		"the receiving program reads nothing from this time on, and the window closes; "
		"0s: it always reads",
		UNIT_TIME_NS, PARAM_U64(struct stack, pause_ns), 0, 1e14},
	{"resume", "0s", "the receiving program reads again from this time on", UNIT_TIME_NS,
		PARAM_U64(struct stack, resume_ns), 0, 1e14},
	{"close_at", "0s",
		"the program closes the connections that are open at this time; 0s: those whose "
		"data has been sent, or whose peer has closed them",
		UNIT_TIME_NS, PARAM_U64(struct stack, close_ns), 0, 1e14},
	{"close", "fin", "how it does at close_at: with a FIN, or with a reset", UNIT_NONE,
		PARAM_ENUM(struct stack, closing, closings)},
	PARAM_END,
};

static const struct param maps[] = {
	{"sysctl", "", "settings by their names below net.ipv4, or whole: {tcp_ecn: 1}", UNIT_NONE,
		PARAM_SCALAR},
	{"module", "",
		"parameters of the kernel's modules, loaded or built in: {tcp_cubic: {hystart: 0}}",
		UNIT_NONE, PARAM_SCALAR},
	{"run", "",
		"a program of the host that the guest runs in place of Weir's sender or receiver, "
		"as a shell command that sees the host's files read-only: \"iperf3 -c {peer} -t "
		"30\"; {peer} is the other side's address",
		UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};

static const struct param ours[] = {
	{"reset_at", "0s",
		"this side resets the connections that are open at this time, and what still "
		"arrives is answered by resets; 0s: never",
		UNIT_TIME_NS, PARAM_U64(struct stack, reset_ns), 0, 1e14},
	{"close_at", "0s",
		"of peer: the receiver sends a FIN on the connections that are open at this time, "
		"and goes on receiving; 0s: after the sender's",
		UNIT_TIME_NS, PARAM_U64(struct stack, close_ns), 0, 1e14},
	PARAM_END,
};

void stacks_list(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "stack",
			.name = "weir",
			.summary = "Weir's own TCP",
			.params = ours});
	run_list_entry(l,
		&(struct run_listed){.kind = "stack",
			.name = "linux",
			.summary = "an unmodified Linux kernel in virtual time "
				   "(tools/weir guests build)",
			.params = params,
			.also = {maps}});
	run_list_entry(l,
		&(struct run_listed){.kind = "stack",
			.name = "quic",
			.summary = "a QUIC stack by name in a Linux guest "
				   "(tools/weir guests add NAME)"});
	quic_list(l);
}

// "tcp_ecn" -> "net/ipv4/tcp_ecn", "net.core.rmem_max" -> "net/core/rmem_max".
static bool sysctl_path(const char *name, char path[static STACK_SYSCTL_SIZE]) {
	int n = snprintf(path, STACK_SYSCTL_SIZE, "%s%s",
		strchr(name, '.') == NULL ? "net/ipv4/" : "", name);

	for (char *c = path; *c != '\0'; c++) {
		if (*c == '.')
			*c = '/';
		else if (!isalnum((unsigned char)*c) && *c != '_' && *c != '/' && *c != '-')
			return false;
	}
	return n < STACK_SYSCTL_SIZE && strncmp(path, "net/", 4) == 0 && strstr(path, "//") == NULL;
}

static int read_sysctls(struct stack *st, struct config_node *map, struct err *err) {
	if (map == NULL)
		return 0;
	if (config_kind(map) != CONFIG_MAP)
		return config_err(
			map, -EINVAL, err, "sysctl is a map of settings such as {tcp_ecn: 1}");
	if (config_count(map) > STACK_SYSCTLS)
		return config_err(map, -ERANGE, err, "sysctl: at most %d settings", STACK_SYSCTLS);
	for (size_t i = 0; i < config_count(map); i++) {
		struct config_node *value = config_at(map, i);
		const char *text = config_text(value);

		if (!sysctl_path(config_key(map, i), st->sysctl[i].name))
			return config_err(value, -EINVAL, err,
				"sysctl: '%s' is no setting below net", config_key(map, i));
		if (text == NULL || text[0] == '\0' || strlen(text) >= STACK_SYSCTL_SIZE)
			return config_err(value, -EINVAL, err,
				"sysctl: %s: a value of 1 to %d characters is required",
				config_key(map, i), STACK_SYSCTL_SIZE - 1);
		snprintf(st->sysctl[i].value, STACK_SYSCTL_SIZE, "%s", text);
		st->sysctls++;
	}
	return 0;
}

// A word of a module: its name, a parameter's, or its value.
static bool module_word(const char *text, size_t size) {
	if (text == NULL || text[0] == '\0' || strlen(text) >= size)
		return false;
	for (const char *c = text; *c != '\0'; c++) {
		if (!isgraph((unsigned char)*c) || strchr("\"'\\=/", *c) != NULL)
			return false;
	}
	return true;
}

// "beta=600 hystart=0"
static int read_params(
	char text[static STACK_PARAMS_SIZE], struct config_node *map, struct err *err) {
	size_t n = 0;

	for (size_t i = 0; i < config_count(map); i++) {
		struct config_node *value = config_at(map, i);
		const char *said = config_text(value);

		if (!module_word(config_key(map, i), STACK_SYSCTL_SIZE)
			|| !module_word(said, STACK_SYSCTL_SIZE))
			return config_err(value, -EINVAL, err,
				"module: %s: a parameter is a name and a value without spaces",
				config_key(map, i));
		n += (size_t)snprintf(text + n, STACK_PARAMS_SIZE - n, "%s%s=%s", i == 0 ? "" : " ",
			config_key(map, i), said);
		if (n >= STACK_PARAMS_SIZE)
			return config_err(value, -ERANGE, err,
				"module: the parameters of one have at most %d characters",
				STACK_PARAMS_SIZE - 1);
	}
	return 0;
}

static int read_modules(struct stack *st, struct config_node *map, struct err *err) {
	int rc = 0;

	if (map == NULL)
		return 0;
	if (config_kind(map) != CONFIG_MAP)
		return config_err(map, -EINVAL, err,
			"module is a map of modules and their parameters such as {tcp_cubic: "
			"{hystart: 0}}");
	if (config_count(map) > STACK_MODULES)
		return config_err(map, -ERANGE, err, "module: at most %d modules", STACK_MODULES);
	for (size_t i = 0; rc == 0 && i < config_count(map); i++) {
		struct config_node *each = config_at(map, i);
		const char *name = config_key(map, i);

		if (config_kind(each) != CONFIG_MAP || config_count(each) == 0
			|| !module_word(name, STACK_SYSCTL_SIZE))
			return config_err(each, -EINVAL, err,
				"module: %s is a map of parameters such as {hystart: 0}", name);
		snprintf(st->module[i].name, STACK_SYSCTL_SIZE, "%s", name);
		rc = read_params(st->module[i].params, each, err);
		st->modules++;
	}
	return rc;
}

static int read_run(struct stack *st, struct config_node *node, struct err *err) {
	const char *text = node == NULL ? NULL : config_text(node);

	if (node == NULL)
		return 0;
	if (text == NULL || text[0] == '\0' || strlen(text) >= STACK_RUN_SIZE)
		return config_err(node, -EINVAL, err,
			"run: a command of 1 to %d characters is required", STACK_RUN_SIZE - 1);
	snprintf(st->run, STACK_RUN_SIZE, "%s", text);
	if (st->hosts > 1)
		return config_err(node, -EINVAL, err, "run: one guest runs the program: hosts: 1");
	if (st->pause_ns > 0 || st->resume_ns > 0 || st->close_ns > 0)
		return config_err(node, -EINVAL, err,
			"run: pause, resume and close_at are of Weir's own program in the guest");
	return 0;
}

// What the guest's kernel would not say as clearly.
static int check(const struct stack *st, struct config_node *node, struct err *err) {
	static const char *const controls[] = {"reno", "bbr", "bic", "cdg", "cubic", "dctcp",
		"highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "vegas", "veno",
		"westwood", "yeah", NULL};
	static const char *const qdiscs[] = {"fq", "fq_codel", "pfifo_fast", NULL};
	if (!module_word(st->kernel, STACK_KERNEL_SIZE))
		return config_err(
			node, -EINVAL, err, "kernel: '%s' is no name of a kernel", st->kernel);
	if (st->resume_ns > 0 && st->resume_ns <= st->pause_ns)
		return config_err(node, -EINVAL, err, "resume is later than pause");
	const struct {
		const char *key, *value;
		const char *const *known;
	} words[] = {{"cc", st->cc, controls}, {"qdisc", st->qdisc, qdiscs}};

	// What another kernel than Debian's has it says itself (tools/sim/guest/guests_kernels.c).
	for (size_t i = strcmp(st->kernel, STACK_CURRENT) == 0 ? 0 : 1; i < 2; i++) {
		char names[CONFIG_NAMES_SIZE] = "";
		bool found = false;

		for (const char *const *k = words[i].known; *k != NULL; k++) {
			config_name_add(names, *k);
			found = found || strcmp(*k, words[i].value) == 0;
		}
		if (!found)
			return config_err(node, -EINVAL, err,
				"%s: the guests' kernel has no '%s'; it has %s", words[i].key,
				words[i].value, names);
	}
	return 0;
}

static struct config_name nth_stack(size_t i) {
	static const char *const names[] = {"weir", "linux", "quic", NULL};

	return (struct config_name){names[i], NULL};
}

int stack_read(struct stack *st, struct config_node *group, const char *what, struct err *err) {
	struct config_node *at = config_get(group, what), *map;
	const char *name;
	size_t which;
	int rc;

	if (at == NULL)
		return 0;
	if ((rc = config_plugin(at, what, &name, &map, err)) < 0)
		return rc;
	if ((rc = config_registered(at, what, "a stack", nth_stack, &which, err)) < 0)
		return rc;
	name = nth_stack(which).name;
	if (strcmp(name, "quic") == 0)
		return quic_read(st, map, err);
	*st = (struct stack){.guest = strcmp(name, "linux") == 0};
	if (!st->guest) {
		rc = config_params(map, name, ours, NULL, st, err);
		if (rc == 0 && st->close_ns > 0 && strcmp(what, "stack") == 0)
			rc = config_err(
				at, -EINVAL, err, "close_at: a sender closes at its group's stop");
		return rc;
	}
	if ((rc = config_params(map, name, params, maps, st, err)) < 0
		|| (rc = read_sysctls(st, config_get(map, "sysctl"), err)) < 0
		|| (rc = read_modules(st, config_get(map, "module"), err)) < 0
		|| (rc = read_run(st, config_get(map, "run"), err)) < 0)
		return rc;
	return check(st, at, err);
}

int stack_fits(const struct stack *stack, uint64_t count, uint64_t spread_ns, const char *source,
	struct config_node *group, struct err *err) {
	if (stack->run[0] == '\0')
		return 0;
	if (config_get(group, "peer") == NULL && stack->quic == NULL)
		return config_err(group, -EINVAL, err,
			"run: the program that sends needs one that answers it: "
			"peer: {linux: {run: \"iperf3 -s\"}}; or peer: linux, which reads what is "
			"sent to port 5001");
	if (count > 1 && count % 2 != 0 && stack->quic == NULL)
		return config_err(group, -EINVAL, err,
			"count: with run it is the number of ports for the program's connections, "
			"of which Linux uses pairs: 1 or an even number");
	if (strcmp(source, "bulk") != 0 || spread_ns > 0)
		return config_err(group, -EINVAL, err,
			"%s: with run the program decides when and how much is sent",
			spread_ns > 0 ? "stagger, jitter" : "source");
	return 0;
}
