/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, counts its allocations where another process can look.
 *
 * The counter is the first eight bytes, little-endian, of the file named by
 * MALLOC_COUNT, which exists already; without it nothing is counted.
 *
 * Invariants:
 * 1. Nothing in here allocates.
 *
 * Not here: what is to be counted between what (tests/wire/test_costs.py).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own, which its malloc() and the others are names of. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Atomic uint64_t unseen;
static _Atomic uint64_t *counter = &unseen;

static __attribute__((constructor)) void start(void)
{
	const char *path = getenv("MALLOC_COUNT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		counter = map;
	close(fd);
}

void *malloc(size_t size)
{
	atomic_fetch_add(counter, 1);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	atomic_fetch_add(counter, 1);
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	atomic_fetch_add(counter, 1);
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	atomic_fetch_add(counter, 1);
	return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	*out = aligned_alloc(alignment, size);
	return *out ? 0 : ENOMEM;
}
