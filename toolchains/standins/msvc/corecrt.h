/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once

typedef unsigned __int64 size_t;
typedef __int64 ptrdiff_t;
typedef __int64 intptr_t;
typedef unsigned __int64 uintptr_t;
typedef __int64 time_t;
#define NULL 0
#define _CRTIMP
#define _ACRTIMP
#define _CRT_JIT_INTRINSIC
#define _Check_return_
#define _In_
#define __CRTDECL __cdecl
