/* Compiles one .cu with the NVRTC of a given library, on Linux or as a Windows program:
 *     nvrtc LIBRARY SOURCE CUBIN OPTION...
 * Prints NVRTC's version, the size of its long and its log. Exits with the compiler's status. */
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>
static void* load(const char* path) {
  return (void*)LoadLibraryExA(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}
static void* find(void* library, const char* name) {
  return (void*)GetProcAddress((HMODULE)library, name);
}
#else
#include <dlfcn.h>
static void* load(const char* path) { return dlopen(path, RTLD_NOW); }
static void* find(void* library, const char* name) { return dlsym(library, name); }
#endif

typedef void* Program;

static void* library;

static void* function(const char* name) {
  void* found = find(library, name);
  if (!found) {
    printf("the library has no %s\n", name);
    exit(100);
  }
  return found;
}

static char* read_file(const char* path) {
  char* text = (char*)calloc(1, 1 << 20);
  FILE* file = fopen(path, "rb");
  if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
    printf("cannot read %s\n", path);
    exit(101);
  }
  fclose(file);
  return text;
}

int main(int argc, char** argv) {
  Program program = NULL;
  size_t size = 0;
  char* bytes;
  int major = 0, minor = 0, status;
  FILE* out;
  if (argc < 4 || !(library = load(argv[1]))) {
    printf("cannot load %s\n", argc < 4 ? "nothing" : argv[1]);
    return 102;
  }
  ((int (*)(int*, int*))function("nvrtcVersion"))(&major, &minor);
  ((int (*)(Program*, const char*, const char*, int, const char**, const char**))function(
      "nvrtcCreateProgram"))(&program, read_file(argv[2]), argv[2], 0, NULL, NULL);
  status =
      ((int (*)(Program, int, char**))function("nvrtcCompileProgram"))(program, argc - 4, argv + 4);
  ((int (*)(Program, size_t*))function("nvrtcGetProgramLogSize"))(program, &size);
  bytes = (char*)calloc(1, size + 1);
  ((int (*)(Program, char*))function("nvrtcGetProgramLog"))(program, bytes);
  printf("NVRTC %d.%d, host long %d bytes, status %d\n%s\n", major, minor, (int)sizeof(long),
         status, bytes);
  if (status) return status;
  ((int (*)(Program, size_t*))function("nvrtcGetCUBINSize"))(program, &size);
  bytes = (char*)realloc(bytes, size);
  ((int (*)(Program, char*))function("nvrtcGetCUBIN"))(program, bytes);
  out = fopen(argv[3], "wb");
  if (!out || fwrite(bytes, 1, size, out) != size || fclose(out)) return 103;
  return 0;
}
