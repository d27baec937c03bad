// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/program.h"

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/ns.h"
#include "tools/sim/guest/fields.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// The folder for the program's files.
static int make_folder(struct guest_program *p, struct err *err) {
	return mkdir(p->files, 0777) == 0
		? 0
		: err_set(err, -errno, "%s: %s", p->files, strerror(errno));
}

static bool has_files(const struct guest_program *p) {
	DIR *folder = opendir(p->files);
	uint32_t n = 0;

	while (folder != NULL && readdir(folder) != NULL)
		n++;
	if (folder != NULL)
		closedir(folder);
	return n > 2; // "." and ".."
}

int program_open(struct guest_program *p, const char *run, uint64_t stop_ns, uint32_t index,
	const char *run_folder, struct err *err) {
	char path[600];

	*p = (struct guest_program){.run = run, .stop_ns = stop_ns};
	snprintf(path, sizeof(path), "%s/guest-%u.out", run_folder, index);
	p->output = file_new(path);
	if (p->output == NULL)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	snprintf(p->files, sizeof(p->files), "%.500s/guest-%u", run_folder, index);
	return make_folder(p, err);
}

static void end_line(struct guest_program *p) {
	if (p->length > 0) {
		memcpy(p->line, p->next, p->length);
		p->line[p->length] = '\0';
		p->no_port |= strstr(p->line, strerror(EADDRNOTAVAIL)) != NULL;
	}
	p->length = 0;
}

bool program_output(
	struct guest_program *p, const void *text, uint32_t n, char *trouble, size_t size) {
	const char *c = text;

	if (p->bytes + n > PROGRAM_OUTPUT_MAX) {
		snprintf(trouble, size, "'%.60s' has printed more than %u MB",
			p->run == NULL ? "" : p->run, PROGRAM_OUTPUT_MAX >> 20);
		return false;
	}
	if (p->output != NULL)
		fwrite(text, 1, n, p->output);
	p->bytes += n;
	for (uint32_t i = 0; i < n; i++) {
		if (c[i] == '\n')
			end_line(p);
		else if (p->length < sizeof(p->next) - 1 && (unsigned char)c[i] >= ' ')
			p->next[p->length++] = c[i];
	}
	return true;
}

bool program_ended(
	struct guest_program *p, int status, uint64_t now_ns, char *trouble, size_t size) {
	p->ended = true;
	p->ended_ns = now_ns;
	p->status = status;
	end_line(p);
	if (status == 0 || now_ns >= p->stop_ns)
		return true;
	snprintf(trouble, size, "'%.60s' ended with %s %d%s%.90s%s", p->run == NULL ? "" : p->run,
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		p->line[0] == '\0' ? "" : ": ", p->line,
		p->no_port ? "; each connection needs a flow of its group: raise `count`" : "");
	return false;
}

static uint64_t exit_status(int status) {
	return (uint64_t)(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

void program_summary(const struct guest_program *p, uint32_t index, uint32_t group, bool sender,
	struct json *j) {
	char output[32], files[32];

	snprintf(output, sizeof(output), "guest-%u.out", index);
	snprintf(files, sizeof(files), "guest-%u", index);
	json_object(j, NULL);
	PROGRAM_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void program_close(struct guest_program *p) {
	if (p->output != NULL)
		fclose(p->output);
	p->output = NULL;
	if (p->files[0] != '\0')
		rmdir(p->files);
}
