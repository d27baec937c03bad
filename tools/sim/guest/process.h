// SPDX-License-Identifier: BSD-3-Clause
// A guest's processes: the folder it runs in, its start and its end.
//
//	/dev/shm/weir-guests-XXXXXX/     of a run, which has locked it; removed at its end, or by
//	                                 the next run
//		0.time, 0.card           sockets of guest 0
//		0.initramfs, 0.log       the program inside and its config; what the kernel prints
#pragma once
#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel;

struct guest_folder {
	char path[64]; // "": none
	int lock_fd; // of the folder, locked
	char shim[512], init[512]; // files
};

struct guest_start {
	uint32_t index; // of the guest in the run
	uint64_t seed; // of what its kernel draws
	uint64_t memory_bytes;
	const struct kernel *kernel;
	int cpu; // -1: any
	int page_fd; // page.h
	const void *config; // struct guest_config, and its flows
	size_t config_bytes;
};

// Finds our two files; a folder that holds `bytes` would have room. -ENOENT,
// -ENOSPC, -ENOTSUP, ... and a sentence that says what to do.
int guest_folder_check(struct guest_folder *f, uint64_t bytes, struct err *err);
// That, and makes the folder.
int guest_folder_make(struct guest_folder *f, uint64_t bytes, struct err *err);
// Kills nothing: the guests have ended.
void guest_folder_remove(struct guest_folder *f);
// "index.suffix" in the folder.
void guest_path(
	const struct guest_folder *f, uint32_t index, const char *suffix, char path[static 108]);
// Starts a guest's kernel; its sockets must be listening. The process, or a negative errno and a
// sentence.
pid_t guest_process(const struct guest_folder *f, const struct guest_start *s, struct err *err);
// The calling thread goes on at this CPU; -1: at any.
void guest_pin(int cpu);
// Kills it with all that it has started, and waits for them.
void guest_kill(pid_t pid);
// What its kernel printed of its end: the line with "panic", else the last one that is not empty.
void guest_last_words(const struct guest_folder *f, uint32_t index, char *text, size_t size);
// Copies what its kernel has printed, if anything, to the run folder: guest-INDEX.log.
void guest_keep_log(const struct guest_folder *f, uint32_t index, const char *run_folder);
