/* c10 calls glibc's function where it does not see Microsoft's compiler. */
#pragma once
extern "C" void __assert_fail(const char*, const char*, unsigned, const char*);
