/* SPDX-License-Identifier: MIT */
/* The few macros that every unit uses. */
#ifndef CORE_BASE_H
#define CORE_BASE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The structure of TYPE whose MEMBER is at PTR. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define NS_PER_US ((uint64_t)1000)
#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S ((uint64_t)1000000000)

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ALIGN is a power of two. */
static inline uint64_t align_down(uint64_t v, uint64_t align)
{
	return v & ~(align - 1);
}

static inline uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

#endif
