/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once

#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffff
#define LONG_MAX 2147483647L
#define ULONG_MAX 0xffffffffUL
#define LLONG_MAX 9223372036854775807i64
#define ULLONG_MAX 0xffffffffffffffffui64
