/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once
#include <corecrt.h>
