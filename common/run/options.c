// SPDX-License-Identifier: BSD-3-Clause
// The command line that all programs share.
#include "common/run/run.h"

#ifdef WEIR_VERSION
#include "common/weir_commit.h" // WEIR_COMMIT, made by meson
#else
#define WEIR_VERSION "unknown"
#define WEIR_COMMIT "unknown"
#endif

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024
#define CODE_LONG 256 // code of the first row that has no letter

enum { SIM = 1, LIVE = 2, PCAP = 4, CONFIG = SIM | LIVE, ALL = SIM | LIVE | PCAP };

// getopt's options, --help and refusals come from a table of these.
struct row {
	char letter;
	const char *name;
	const char *argument; // as --help has it; NULL: a flag; '[': it may be missing
	const char *help; // lines
	unsigned programs; // those that have it
	size_t offset; // of the flag or the text in struct run_options
	int (*set)(struct run_options *opt, const char *value, struct err *err); // in its place
	const char *refusal; // of the programs that read a config and do not have it
};

const char *run_version(void) {
	return WEIR_VERSION;
}

const char *run_commit(void) {
	return WEIR_COMMIT;
}

static bool is_sim(const char *program) {
	return strcmp(program, "weir-sim") == 0;
}

static void print_examples(const char *program) {
	static const struct {
		const char *program, *line;
	} examples[] = {
		{"weir-sim", "configs/quickstart.yaml --out runs/quick"},
		{"weir-sim", "configs/quickstart.yaml --duration 5s -o flows.0.count=10 --json"},
		{"weir-sim", "--list codel"},
		{"weir-switch", "configs/kernel-hosts.yaml --out runs/live"},
		{"weir-switch",
			"configs/kernel-hosts.yaml -o "
			"paths.forward.link.queue=codel --pcap live.pcapng"},
		{"weir-switch", "--list stage"},
		{"weir-sender", "configs/loopback-10g.yaml --out runs/live"},
		{"weir-sender", "configs/sender-25g.yaml --duration 5s -- --log-level=8"},
		{"weir-sender", "--list copa"},
	};

	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		if (strcmp(examples[i].program, program) == 0)
			printf("  %s %s\n", program, examples[i].line);
	}
}

static int add_override(struct run_options *opt, const char *text, struct err *err) {
	if (opt->override_count == RUN_OVERRIDES_MAX)
		return err_set(
			err, -EINVAL, "-o %s: more than %d overrides", text, RUN_OVERRIDES_MAX);
	opt->overrides[opt->override_count++] = text;
	return 0;
}

// --seed N as "seed=N". Given twice, the last one counts.
static int add_made(
	struct run_options *opt, int slot, const char *key, const char *value, struct err *err) {
	char *text = opt->made[slot];
	int kept = 0;

	if (strlen(key) + strlen(value) + 2 > sizeof(opt->made[slot]))
		return err_set(err, -EINVAL, "--%s: '%.40s...' is too long", key, value);
	for (int i = 0; i < opt->override_count; i++) {
		if (opt->overrides[i] != text)
			opt->overrides[kept++] = opt->overrides[i];
	}
	opt->override_count = kept;
	stpcpy(stpcpy(stpcpy(text, key), "="), value);
	return add_override(opt, text, err);
}

static int set_seed(struct run_options *opt, const char *value, struct err *err) {
	return add_made(opt, 0, "seed", value, err);
}

static int set_duration(struct run_options *opt, const char *value, struct err *err) {
	return add_made(opt, 1, "duration", value, err);
}

static int set_list(struct run_options *opt, const char *value, struct err *err) {
	opt->list = value != NULL ? value : "";
	return 0;
}

static int set_config(struct run_options *opt, const char *path, struct err *err) {
	if (opt->config_path != NULL)
		return err_set(err, -EINVAL, "one config file is wanted, not two: '%s' and '%s'",
			opt->config_path, path);
	opt->config_path = path;
	return 0;
}

static int set_threads(struct run_options *opt, const char *value, struct err *err) {
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (value[0] < '0' || value[0] > '9' || *end != '\0' || n < 1 || n > THREADS_MAX)
		return err_set(err, -EINVAL, "--threads: '%s' is not a number from 1 to %d", value,
			THREADS_MAX);
	opt->threads = (uint32_t)n;
	return 0;
}

static int print_version(struct run_options *opt, const char *value, struct err *err) {
	printf("%s %s (commit %s)\n", opt->program, WEIR_VERSION, WEIR_COMMIT);
	return 1;
}

static int print_help(struct run_options *opt, const char *value, struct err *err);

#define AT(member) .offset = offsetof(struct run_options, member)
static const struct row rows[] = {
	{'o', NULL, "path.to.key=val", "override one value of it; may be repeated", CONFIG,
		.set = add_override},
	{0, "seed", "N", "the same as -o seed=N", CONFIG, .set = set_seed},
	{0, "duration", "T", "the same as -o duration=T", CONFIG, .set = set_duration},
	{0, "out", "DIR", "run folder (default: runs/<name>-<UTC time>-<pid>)", ALL, AT(out_dir)},
	{0, "force", NULL, "replace the run that DIR already holds", ALL, AT(force)},
	{0, "pcap", "FILE", "write the packets to a capture file", CONFIG, AT(pcap)},
	{0, "replay", "FILE", "put an arrivals.ring through the paths, nothing else", SIM,
		AT(replay), .refusal = "only weir-sim replays"},
	{0, "threads", "N",
		"use up to N processors for this run; the results are\n"
		"the same (default: 2 where they are idle and it pays;\n"
		"all for a run with branches)",
		SIM, .set = set_threads, .refusal = "only weir-sim; lcores are in the config"},
	{0, "trials", NULL,
		"each line of standard input is a run whose summary is a\n"
		"line of standard output: its config as JSON, or, beside\n"
		"CONFIG, {\"o\": [\"seed=3\", \"flows.0.count=9\"]}",
		SIM, AT(trials), .refusal = "only weir-sim, in virtual time"},
	{0, "json", NULL, "the summary, or the list, as JSON on standard output", ALL, AT(json)},
	{0, "progress", NULL, "progress as JSON lines on standard error", ALL, AT(progress)},
	{0, "check", NULL, "read the config, say what is wrong with it, run nothing", CONFIG,
		AT(check)},
	{0, "print-config", NULL, "the config with all defaults, run nothing", CONFIG,
		AT(print_config)},
	{0, "list", "[KIND|NAME]",
		"aqm, stage, cc, source, base_rtt: what there is;\n"
		"flows, run, live: the keys of the config; stream: telemetry;\n"
		"a NAME, such as codel: its page",
		CONFIG, .set = set_list},
	{'h', "help", NULL, "this text", ALL, .set = print_help},
	{0, "version", NULL, "version and commit", ALL, .set = print_version},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static unsigned kind_of(const char *program) {
	return is_sim(program) ? SIM : strcmp(program, "weir-pcap") == 0 ? PCAP : LIVE;
}

void run_print_option(const char *option, const char *argument, const char *help) {
	char left[40];

	snprintf(left, sizeof(left), "%s %s", option, argument != NULL ? argument : "");
	for (const char *line = help; line != NULL;) {
		int len = (int)strcspn(line, "\n");

		printf("  %-19s %.*s\n", line == help ? left : "", len, line);
		line = line[len] == '\n' ? line + len + 1 : NULL;
	}
}

void run_print_options(const char *program) {
	for (const struct row *row = rows; row < rows + ROWS; row++) {
		char option[24] = {'-', row->letter};

		if (row->name != NULL)
			snprintf(option, sizeof(option), "--%s", row->name);
		if (row->programs & kind_of(program))
			run_print_option(option, row->argument, row->help);
	}
}

static int print_help(struct run_options *opt, const char *value, struct err *err) {
	printf("usage: %s CONFIG [options]%s\n\n", opt->program,
		is_sim(opt->program) ? "" : " [-- EAL ARGS]");
	run_print_option("CONFIG", NULL, "YAML file, '-' for standard input");
	run_print_options(opt->program);
	fputs(RUN_EXIT_STATUS "Examples:\n", stdout);
	print_examples(opt->program);
	return 1;
}

static int apply(
	const struct row *row, struct run_options *opt, const char *value, struct err *err) {
	if (!(row->programs & kind_of(opt->program)))
		return err_set(err, -EINVAL, "--%s: %s", row->name, row->refusal);
	if (row->set != NULL)
		return row->set(opt, value, err);
	if (row->argument == NULL)
		*(bool *)((char *)opt + row->offset) = true;
	else
		*(const char **)((char *)opt + row->offset) = value;
	return 0;
}

// The row of a name of this length; NULL: there is none.
static const struct row *named(const char *name, size_t len) {
	for (const struct row *row = rows; row < rows + ROWS; row++) {
		if (row->name != NULL && strlen(row->name) == len
			&& strncmp(row->name, name, len) == 0)
			return row;
	}
	return NULL;
}

int run_option(struct run_options *opt, const char *name, const char *value, struct err *err) {
	const struct row *row = named(name, strlen(name));

	if (row == NULL || !(row->programs & kind_of(opt->program)))
		return -ENOENT;
	if (row->argument != NULL && value == NULL)
		return err_set(err, -EINVAL, "--%s needs a value, see --help", name);
	int rc = apply(row, opt, value, err);
	return rc < 0 ? rc : row->argument != NULL;
}

static const struct row *of_code(int code) {
	if (code >= CODE_LONG)
		return &rows[code - CODE_LONG];
	for (const struct row *row = rows; row < rows + ROWS; row++) {
		if (row->letter == code)
			return row;
	}
	return NULL;
}

// What getopt does not understand, in words.
static int option_error(int code, const char *word, struct err *err) {
	int len = (int)strcspn(word, "=");
	const struct row *row = of_code(optopt);

	if (code == ':')
		return err_set(err, -EINVAL, "%s needs a value, see --help", word);
	if (strncmp(word, "--", 2) != 0)
		return err_set(err, -EINVAL, "-%c is not an option, see --help", optopt);
	if (row != NULL && optopt != 0 && row->argument == NULL)
		return err_set(err, -EINVAL, "--%s takes no value, see --help", row->name);
	return err_set(err, -EINVAL, "%.*s is not an option, see --help", len, word);
}

// Is the word an option? Then it is no value: `--pcap --force` made a file of that name.
static bool is_option(const char *word) {
	return strncmp(word, "--", 2) == 0 && named(word + 2, strcspn(word, "=") - 2) != NULL;
}

static void fill_long_options(struct option options[ROWS + 1]) {
	memset(options, 0, (ROWS + 1) * sizeof(*options));
	for (size_t i = 0, n = 0; i < ROWS; i++) {
		const char *argument = rows[i].argument;
		int has = argument == NULL   ? no_argument
			: argument[0] == '[' ? optional_argument
					     : required_argument;

		if (rows[i].name != NULL)
			options[n++] = (struct option){rows[i].name, has, NULL, CODE_LONG + (int)i};
	}
}

static int parse(struct run_options *opt, int argc, char **argv, struct err *err) {
	struct option options[ROWS + 1];
	int code, rc;

	fill_long_options(options);
	optind = 0; // glibc: start anew
	opterr = 0;
	// '-': words in their order, so that argv stays as it is for the manifest.
	while ((code = getopt_long(argc, argv, "-:o:h", options, NULL)) != -1) {
		const char *value = optarg;

		if (code == '?' || code == ':')
			return option_error(code, argv[optind - 1], err);
		if (code != 1 && value == argv[optind - 1] && is_option(value))
			return option_error(':', argv[optind - 2], err);
		const struct row *row = code == 1 ? NULL : of_code(code);
		if (row != NULL && row->set == set_list && value == NULL && optind < argc
			&& argv[optind][0] != '-')
			value = argv[optind++];
		rc = row == NULL ? set_config(opt, value, err) : apply(row, opt, value, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int run_options(
	struct run_options *opt, int argc, char **argv, const char *program, struct err *err) {
	int own = 1;

	run_keep_streams();
	memset(opt, 0, sizeof(*opt));
	opt->program = program;
	opt->argc = argc;
	opt->argv = argv;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (own < argc) {
		opt->eal_argv = argv + own + 1;
		opt->eal_argc = argc - own - 1;
	}
	int rc = parse(opt, own, argv, err);
	if (rc != 0)
		return rc;
	if (opt->eal_argc > 0 && is_sim(program))
		return err_set(err, -EINVAL, "%s: %s has no EAL to give arguments to",
			opt->eal_argv[0], program);
	if (opt->config_path == NULL && opt->list == NULL && !opt->trials)
		return err_set(
			err, -EINVAL, "a config file is wanted: %s CONFIG, see --help", program);
	return 0;
}

int run_status(int rc) {
	if (run_stop != 0 && (rc >= 0 || rc == -EINTR))
		return 128 + run_stop;
	if (rc == -EINVAL || rc == -ERANGE || rc == -ENOMEM || rc == -EEXIST)
		return 2;
	return rc < 0;
}

int run_flush(struct err *err) {
	errno = EIO;
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return 0;
	return err_set(err, -EIO, "standard output cannot be written: %s", strerror(errno));
}

int run_exit(const char *program, int rc, struct err *err) {
	if (rc >= 0)
		rc = run_flush(err);
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", program, err->msg);
	return run_status(rc);
}
