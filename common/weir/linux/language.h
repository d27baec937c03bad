// SPDX-License-Identifier: BSD-3-Clause
// Public: the kernel's C, as far as congestion controls use it: types, attributes, arithmetic.
#pragma once
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
#define U8_MAX UINT8_MAX
#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define S32_MAX INT32_MAX
#define U32_C(x) x##U

// The compiler's.
#define __init __attribute__((unused))
#define __exit __attribute__((unused))
#define __pure __attribute__((pure))
#define __maybe_unused __attribute__((unused))
#define __read_mostly
#define __bpf_kfunc
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define fallthrough __attribute__((fallthrough))
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define cmpxchg(at, before, value)                                                                 \
	({                                                                                         \
		__typeof__(*(at)) was_ = *(at);                                                    \
		if (was_ == (before))                                                              \
			*(at) = (value);                                                           \
		was_;                                                                              \
	})
#define BUG_ON(condition) assert(!(condition))
#define BUILD_BUG_ON(condition) static_assert(!(condition), #condition)
#define WARN_ONCE(condition, ...) (!!(condition))
#define WARN_ON_ONCE(condition) (!!(condition))
#define pr_debug(...) ((void)0)
#define pr_info(...) ((void)0)
#define pr_err(...) ((void)0)
#define EXPORT_SYMBOL_GPL(name) static_assert(1, "")
#define EXPORT_SYMBOL(name) static_assert(1, "")
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

// Arithmetic. The operands of two types are compared as C does.
#define min(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ < b_ ? a_ : b_;                                                                 \
	})
#define max(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		a_ > b_ ? a_ : b_;                                                                 \
	})
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define max3(a, b, c)                                                                              \
	({                                                                                         \
		__typeof__(a) most_ = max(a, b);                                                   \
		max(most_, c);                                                                     \
	})
#define clamp(x, low, high)                                                                        \
	({                                                                                         \
		__typeof__(x) least_ = max(x, low);                                                \
		min(least_, high);                                                                 \
	})
#define min_not_zero(a, b)                                                                         \
	({                                                                                         \
		__typeof__(a) x_ = (a);                                                            \
		__typeof__(b) y_ = (b);                                                            \
		x_ == 0 ? y_ : y_ == 0 ? x_ : min(x_, y_);                                         \
	})
#define do_div(n, base)                                                                            \
	({                                                                                         \
		u32 base_ = (base), rest_ = (u32)((n) % base_);                                    \
		(n) /= base_;                                                                      \
		rest_;                                                                             \
	})
#define DIV_ROUND_CLOSEST(x, by)                                                                   \
	((x) < 0 ? ((x) - (__typeof__(x))(by) / 2) / (__typeof__(x))(by)                           \
		 : ((x) + (__typeof__(x))(by) / 2) / (__typeof__(x))(by))
#define DIV_ROUND_UP(x, by) (((x) + (by)-1) / (by))
#define DIV_ROUND_UP_ULL DIV_ROUND_UP
#define div_u64(n, by) ((u64)(n) / (u32)(by))
#define div64_u64(n, by) ((u64)(n) / (u64)(by))
#define div64_ul(n, by) ((u64)(n) / (unsigned long)(by))
#define div64_long(n, by) ((s64)(n) / (long)(by))
static inline int fls64(u64 x) {
	return x == 0 ? 0 : 64 - __builtin_clzll(x);
}
#define ilog2(x) (fls64(x) - 1)
#define BITS_PER_TYPE(type) (sizeof(type) * 8)
static inline bool is_power_of_2(unsigned long n) {
	return n != 0 && (n & (n - 1)) == 0;
}
static inline bool before(u32 a, u32 b) {
	return (s32)(a - b) < 0;
}
#define after(a, b) before(b, a)
static inline bool between(u32 a, u32 low, u32 high) {
	return high - low >= a - low;
}
