/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once

typedef long clock_t;
extern "C" clock_t __cdecl clock(void);
