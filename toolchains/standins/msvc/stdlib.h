/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once
#include <corecrt.h>

extern "C" {
void* __cdecl malloc(size_t);
void __cdecl free(void*);
__declspec(noreturn) void __cdecl abort(void);
__declspec(noreturn) void __cdecl exit(int);
int __cdecl abs(int);
long __cdecl labs(long);
long long __cdecl llabs(long long);
}
