// SPDX-License-Identifier: BSD-3-Clause
// The run folder: its name, its lock, what is in it, and how its files are written. Private to
// run/.
//
// A function that returns int returns 0 or -errno with a sentence.
#pragma once
#include "common/run/run.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

// Fills r->dir: --out, or a name that is made of the config's, the time and the process.
int folder_name(struct run *r, time_t now, struct err *err);
// Makes it and its parents.
int folder_make(struct run *r, struct err *err);
// Locks this program's files in it, or says that another run is writing there.
int folder_lock(struct run *r, struct err *err);
// In a process that was forked: closes what stays the other one's.
void folder_leave(struct run *r);
// Also gives back what folder_reserve took. Nothing happens if there is no lock.
void folder_unlock(struct run *r);
// Refuses a folder that holds a run of this program; with --force that run's files go.
int folder_clear(struct run *r, struct err *err);
// Does it hold the manifest of the program with this suffix?
bool folder_holds_run(const struct run *r, const char *suffix);
// Disk space for the files that end a run, from folder_reserve to folder_release.
int folder_reserve(struct run *r, struct err *err);
void folder_release(struct run *r);

// Writes the copies of the files that the config names, or takes them away.
int folder_write_files(const struct run *r, struct err *err);
void folder_remove_files(const struct run *r);
// Writes config.yaml. 1: written; 0: the other live program has written it.
int folder_write_config(const struct run *r, const char *text, size_t size, struct err *err);
// Sets r->tel.config_hash to that of the config.yaml which the other live program wrote.
int folder_hash_config(struct run *r, struct err *err);

// A file of this program, "summary.json" or "summary-switch.json", which appears complete: it has
// another name until folder_file_end, which closes *f in any case.
int folder_file_begin(const struct run *r, const char *name, FILE **f, struct err *err);
int folder_file_end(const struct run *r, FILE *f, const char *name, struct err *err);

// A time in UTC, in strftime's format.
void folder_utc_text(time_t t, const char *format, char *text, size_t size);
