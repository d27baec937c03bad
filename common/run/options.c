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
#include <math.h>
#include <signal.h>
#include <string.h>

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
	{"force", no_argument, NULL, OPTION_FORCE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

volatile int run_stop;

const char *run_version(void) {
	return WEIR_VERSION;
}

const char *run_commit(void) {
	return WEIR_COMMIT;
}

static bool is_sim(const char *program) {
	return strcmp(program, "weir-sim") == 0;
}

static void print_help(const char *program) {
	bool sim = is_sim(program);

	printf("usage: %s CONFIG [options]%s\n\n", program, sim ? "" : " [-- EAL ARGS]");
	fputs("  CONFIG              YAML file, '-' for standard input\n"
	      "  -o path.to.key=val  override one value of it; may be repeated\n"
	      "  --seed N            the same as -o seed=N\n"
	      "  --duration T        the same as -o duration=T\n"
	      "  --out DIR           run folder (default: runs/<config>-<UTC time>-<pid>)\n"
	      "  --force             replace the run that DIR already holds\n",
		stdout);
	if (strcmp(program, "weir-sender") != 0)
		fputs("  --pcap FILE         write the packets to a capture file\n", stdout);
	if (sim)
		fputs("  --replay FILE       put an arrivals.ring through the paths, nothing else\n",
			stdout);
	fputs("  --json              the summary, or the list, as JSON on standard output\n"
	      "  --progress          progress as JSON lines on standard error\n"
	      "  --check             read the config, say what is wrong with it, run nothing\n"
	      "  --print-config      the config with all defaults, run nothing\n"
	      "  --list [KIND]       aqm, stage, cc, source: what there is, with parameters;\n"
	      "                      flows, run: the keys of a group and of the file itself\n"
	      "  --help, --version\n\n"
	      "Exit status: 0 good, 1 failed, 2 bad usage or config, 130 after SIGINT,\n"
	      "143 after SIGTERM.\n",
		stdout);
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

static int set_list(struct run_options *opt, const char *kind, struct err *err) {
	static const char *const kinds[] = {"", "aqm", "stage", "cc", "source", "flows", "run"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kind, kinds[i]) == 0) {
			opt->list = kinds[i];
			return 0;
		}
	}
	return err_set(err, -EINVAL,
		"--list: '%s' is not one of aqm, stage, cc, source, flows, run", kind);
}

static int set_config(struct run_options *opt, const char *path, struct err *err) {
	if (opt->config_path != NULL)
		return err_set(err, -EINVAL, "one config file is wanted, not two: '%s' and '%s'",
			opt->config_path, path);
	opt->config_path = path;
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
		return set_list(opt, value != NULL ? value : "", err);
	case OPTION_PCAP:
		if (strcmp(opt->program, "weir-sender") == 0)
			return err_set(
				err, -EINVAL, "--pcap: weir-sim and weir-switch write captures");
		opt->pcap = value;
		return 0;
	case OPTION_REPLAY:
		if (!is_sim(opt->program))
			return err_set(err, -EINVAL, "--replay: only weir-sim replays");
		opt->replay = value;
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

static int parse(struct run_options *opt, int argc, char **argv, struct err *err) {
	int code, rc;

	optind = 0; // glibc: start anew
	opterr = 0;
	// '-': words in their order, so that argv stays as it is for the manifest.
	while ((code = getopt_long(argc, argv, "-:o:h", long_options, NULL)) != -1) {
		const char *value = optarg;
		if (code == '?' || code == ':')
			return option_error(code, argv[optind - 1], err);
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
	if (opt->config_path == NULL && opt->list == NULL)
		return err_set(
			err, -EINVAL, "a config file is wanted: %s CONFIG, see --help", program);
	return 0;
}

static void format_range(const struct param *p, char *text, size_t size) {
	char min[64], max[64];
	size_t used = 0;

	text[0] = '\0';
	switch (p->type) {
	case PARAM_TYPE_BOOL:
		snprintf(text, size, "yes or no");
		return;
	case PARAM_TYPE_TEXT:
		snprintf(text, size, "text");
		return;
	case PARAM_TYPE_LIMIT:
		snprintf(text, size, "bytes, pkt, time or BDP");
		return;
	case PARAM_TYPE_ENUM:
		for (int i = 0; p->choices[i] != NULL && used < size; i++)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
				i == 0 ? "" : " or ", p->choices[i]);
		return;
	case PARAM_TYPE_U64:
	case PARAM_TYPE_F64:
		break;
	}
	unit_format(p->min, p->unit, min, sizeof(min));
	unit_format(p->max, p->unit, max, sizeof(max));
	if (isinf(p->max))
		snprintf(text, size, "%s or more", min);
	else
		snprintf(text, size, "%s to %s", min, max);
}

void run_list_begin(struct run_list *l, const struct run_options *opt, FILE *out) {
	*l = (struct run_list){.out = out, .as_json = opt->json, .asked = opt->list};
}

// Ranges are in the base of the unit (ns, bit/s, bytes); a max of null: no bound.
static void list_json_param(struct json *j, const struct param *p) {
	static const char *const types[] = {
		[PARAM_TYPE_U64] = "u64",
		[PARAM_TYPE_F64] = "f64",
		[PARAM_TYPE_BOOL] = "bool",
		[PARAM_TYPE_ENUM] = "enum",
		[PARAM_TYPE_TEXT] = "text",
		[PARAM_TYPE_LIMIT] = "limit",
	};
	static const char *const units[] = {
		[UNIT_NONE] = "",
		[UNIT_TIME_NS] = "ns",
		[UNIT_RATE_BPS] = "bit/s",
		[UNIT_BYTES] = "B",
		[UNIT_RATIO] = "ratio",
	};

	json_object(j, p->name);
	json_text(j, "type", types[p->type]);
	json_text(j, "unit", units[p->unit]);
	if (p->def != NULL)
		json_text(j, "default", p->def);
	else
		json_null(j, "default");
	json_f64(j, "min", p->min);
	json_f64(j, "max", p->max);
	json_array(j, "choices");
	for (int i = 0; p->choices != NULL && p->choices[i] != NULL; i++)
		json_text(j, NULL, p->choices[i]);
	json_close(j, ']');
	json_bool(j, "live", p->live);
	json_text(j, "help", p->help);
	json_close(j, '}');
}

static void list_json(struct run_list *l, const char *kind, const char *name, const char *summary,
	const struct param *table, const char *const *observed, size_t n) {
	bool other = l->kind == NULL || strcmp(l->kind, kind) != 0;
	struct json *j = &l->json;

	if (l->kind == NULL)
		json_begin(j, l->out);
	else if (other)
		json_close(j, '}');
	if (other)
		json_object(j, kind);
	json_object(j, name);
	json_text(j, "summary", summary);
	json_object(j, "params");
	for (const struct param *p = table; p != NULL && p->name != NULL; p++)
		list_json_param(j, p);
	json_close(j, '}');
	json_array(j, "observed");
	for (size_t i = 0; i < n && observed[i] != NULL; i++)
		json_text(j, NULL, observed[i]);
	json_close(j, ']');
	json_close(j, '}');
}

static void list_rows(FILE *out, const char *name, const char *summary, const struct param *table,
	const char *const *observed, size_t n) {
	char range[192];

	fprintf(out, "%-12s  %s\n", name, summary);
	for (const struct param *p = table; p != NULL && p->name != NULL; p++) {
		format_range(p, range, sizeof(range));
		fprintf(out, "    %-16s %-10s %-24s %s%s\n", p->name,
			p->def == NULL		    ? "(required)"
				: p->def[0] == '\0' ? "\"\""
						    : p->def,
			range, p->help, p->live ? " (live)" : "");
	}
	for (size_t i = 0; i < n && observed[i] != NULL; i++)
		fprintf(out, "%s%s", i == 0 ? "    observed: " : ", ", observed[i]);
	if (n > 0 && observed[0] != NULL)
		fputc('\n', out);
}

void run_list_plugin(struct run_list *l, const char *kind, const char *name, const char *summary,
	const struct param *table, const char *const *observed, size_t n) {
	l->shown = l->asked == NULL || l->asked[0] == '\0' || strcmp(l->asked, kind) == 0;
	if (!l->shown)
		return;
	if (l->as_json)
		list_json(l, kind, name, summary, table, observed, n);
	else
		list_rows(l->out, name, summary, table, observed, n);
	l->kind = kind;
}

void run_list_row(struct run_list *l, const char *row) {
	if (l->shown && !l->as_json)
		fprintf(l->out, "%s\n", row);
}

void run_list_end(struct run_list *l) {
	if (!l->as_json || l->kind == NULL)
		return;
	json_close(&l->json, '}');
	json_end(&l->json);
}

int run_status(int rc) {
	if (run_stop != 0 && (rc >= 0 || rc == -EINTR))
		return 128 + run_stop;
	return rc >= 0 ? 0 : rc == -EINVAL || rc == -ERANGE || rc == -ENOMEM ? 2 : 1;
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

static void on_signal(int signal) {
	run_stop = signal;
}

void run_catch_signals(void) {
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}
