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
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

enum option_code {
	OPTION_SEED = 256,
	OPTION_DURATION,
	OPTION_OUT,
	OPTION_CHECK,
	OPTION_PRINT_CONFIG,
	OPTION_LIST,
	OPTION_JSON,
	OPTION_PROGRESS,
	OPTION_PCAP,
	OPTION_REPLAY,
	OPTION_THREADS,
	OPTION_TRIALS,
	OPTION_FORCE,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"seed", required_argument, NULL, OPTION_SEED},
	{"duration", required_argument, NULL, OPTION_DURATION},
	{"out", required_argument, NULL, OPTION_OUT},
	{"check", no_argument, NULL, OPTION_CHECK},
	{"print-config", no_argument, NULL, OPTION_PRINT_CONFIG},
	{"list", optional_argument, NULL, OPTION_LIST},
	{"json", no_argument, NULL, OPTION_JSON},
	{"progress", no_argument, NULL, OPTION_PROGRESS},
	{"pcap", required_argument, NULL, OPTION_PCAP},
	{"replay", required_argument, NULL, OPTION_REPLAY},
	{"threads", required_argument, NULL, OPTION_THREADS},
	{"trials", no_argument, NULL, OPTION_TRIALS},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
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
			"configs/kernel-hosts.yaml -o paths.forward.link.queue=codel --pcap live.pcapng"},
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

static void print_help(const char *program) {
	bool sim = is_sim(program);

	printf("usage: %s CONFIG [options]%s\n\n", program, sim ? "" : " [-- EAL ARGS]");
	fputs("  CONFIG              YAML file, '-' for standard input\n"
	      "  -o path.to.key=val  override one value of it; may be repeated\n"
	      "  --seed N            the same as -o seed=N\n"
	      "  --duration T        the same as -o duration=T\n"
	      "  --out DIR           run folder (default: runs/<config>-<UTC time>-<pid>)\n"
	      "  --force             replace the run that DIR already holds\n"
	      "  --pcap FILE         write the packets to a capture file\n",
		stdout);
	if (sim)
		fputs("  --replay FILE       put an arrivals.ring through the paths, nothing else\n"
		      "  --threads N         use up to N processors for this run; the results are\n"
		      "                      the same (default: 2 where they are idle and it pays)\n"
		      "  --trials            in place of CONFIG: each line of standard input is one,\n"
		      "                      as JSON; its summary is a line of standard output\n",
			stdout);
	fputs("  --json              the summary, or the list, as JSON on standard output\n"
	      "  --progress          progress as JSON lines on standard error\n"
	      "  --check             read the config, say what is wrong with it, run nothing\n"
	      "  --print-config      the config with all defaults, run nothing\n"
	      "  --list [KIND|NAME]  aqm, stage, cc, source, base_rtt: what there is;\n"
	      "                      flows, run, live: the keys of the config; stream: telemetry;\n"
	      "                      a NAME, such as codel: its page\n"
	      "  --help, --version\n\n"
	      "Exit status: 0 good, 1 failed, 2 bad usage or config, 129 after SIGHUP,\n"
	      "130 after SIGINT, 143 after SIGTERM.\n\n"
	      "Examples:\n",
		stdout);
	print_examples(program);
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

	if (!is_sim(opt->program))
		return err_set(err, -EINVAL, "--threads: only weir-sim; lcores are in the config");
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || n < 1 || n > THREADS_MAX)
		return err_set(err, -EINVAL, "--threads: '%s' is not a number from 1 to %d", value,
			THREADS_MAX);
	opt->threads = (uint32_t)n;
	return 0;
}

// One option or, code 1, the config file. 1: done.
static int apply(struct run_options *opt, int code, const char *value, struct err *err) {
	switch (code) {
	case 1:
		return set_config(opt, value, err);
	case 'o':
		return add_override(opt, value, err);
	case OPTION_SEED:
		return add_made(opt, 0, "seed", value, err);
	case OPTION_DURATION:
		return add_made(opt, 1, "duration", value, err);
	case OPTION_OUT:
		opt->out_dir = value;
		return 0;
	case OPTION_LIST:
		opt->list = value != NULL ? value : "";
		return 0;
	case OPTION_PCAP:
		opt->pcap = value;
		return 0;
	case OPTION_REPLAY:
		if (!is_sim(opt->program))
			return err_set(err, -EINVAL, "--replay: only weir-sim replays");
		opt->replay = value;
		return 0;
	case OPTION_THREADS:
		return set_threads(opt, value, err);
	case OPTION_TRIALS:
		if (!is_sim(opt->program))
			return err_set(err, -EINVAL, "--trials: only weir-sim, in virtual time");
		opt->trials = true;
		return 0;
	case OPTION_CHECK:
		opt->check = true;
		return 0;
	case OPTION_PRINT_CONFIG:
		opt->print_config = true;
		return 0;
	case OPTION_JSON:
		opt->json = true;
		return 0;
	case OPTION_PROGRESS:
		opt->progress = true;
		return 0;
	case OPTION_FORCE:
		opt->force = true;
		return 0;
	case 'h':
		print_help(opt->program);
		return 1;
	default: // OPTION_VERSION
		printf("%s %s (commit %s)\n", opt->program, WEIR_VERSION, WEIR_COMMIT);
		return 1;
	}
}

// What getopt does not understand, in words.
static int option_error(int code, const char *word, struct err *err) {
	int len = (int)strcspn(word, "=");

	if (code == ':')
		return err_set(err, -EINVAL, "%s needs a value, see --help", word);
	if (strncmp(word, "--", 2) != 0)
		return err_set(err, -EINVAL, "-%c is not an option, see --help", optopt);
	for (const struct option *o = long_options; o->name != NULL; o++) {
		if (o->has_arg == no_argument && optopt == o->val)
			return err_set(err, -EINVAL, "--%s takes no value, see --help", o->name);
	}
	return err_set(err, -EINVAL, "%.*s is not an option, see --help", len, word);
}

// Is the word an option? Then it is no value: `--pcap --force` made a file of that name.
static bool is_option(const char *word) {
	size_t len = strcspn(word, "=");

	for (const struct option *o = long_options; o->name != NULL; o++) {
		if (strncmp(word, "--", 2) == 0 && strlen(o->name) == len - 2
			&& strncmp(word + 2, o->name, len - 2) == 0)
			return true;
	}
	return false;
}

static int parse(struct run_options *opt, int argc, char **argv, struct err *err) {
	int code, rc;

	optind = 0; // glibc: start anew
	opterr = 0;
	// '-': words in their order, so that argv stays as it is for the manifest.
	while ((code = getopt_long(argc, argv, "-:o:h", long_options, NULL)) != -1) {
		const char *value = optarg;
		if (code == '?' || code == ':')
			return option_error(code, argv[optind - 1], err);
		if (code != 1 && value == argv[optind - 1] && is_option(value))
			return option_error(':', argv[optind - 2], err);
		if (code == OPTION_LIST && value == NULL && optind < argc && argv[optind][0] != '-')
			value = argv[optind++];
		if ((rc = apply(opt, code, value, err)) != 0)
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
	if (opt->trials && opt->config_path != NULL)
		return err_set(err, -EINVAL, "%s: --trials reads configs from standard input",
			opt->config_path);
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
