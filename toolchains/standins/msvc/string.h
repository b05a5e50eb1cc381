/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once
#include <corecrt.h>

extern "C" {
void* __cdecl memcpy(void*, const void*, size_t);
void* __cdecl memset(void*, int, size_t);
void* __cdecl memmove(void*, const void*, size_t);
size_t __cdecl strlen(const char*);
}
