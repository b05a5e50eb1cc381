/* Stand-in: clang's CUDA wrapper includes this header of cuRAND; nothing here uses it. */
