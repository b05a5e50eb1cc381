/* Stand-in for the pyconfig.h of a 64-bit Python on Windows. */
#pragma once
#include <stddef.h>

#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define MS_COREDLL
#define NT_THREADS
#define WITH_THREAD 1
#define Py_ENABLE_SHARED 1
#define COMPILER "[stand-in]"
#define PLATLIBDIR "lib"
#define PYTHONFRAMEWORK ""

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_OFF_T 4
#define SIZEOF_FPOS_T 8
#define SIZEOF_HKEY 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8

#define HAVE_DECLSPEC_DLL
#define HAVE_SSIZE_T 1
#define HAVE_STDARG_PROTOTYPES 1
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
#define HAVE_WCSCOLL 1
#define HAVE_PY_SSIZE_T 1
typedef long long Py_ssize_t;
#define PY_SSIZE_T_MAX 9223372036854775807LL
