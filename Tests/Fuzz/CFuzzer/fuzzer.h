// libFuzzer's entry for programs that have a main function of their own (clang's compiler-rt).

#include <stddef.h>
#include <stdint.h>

// Runs until it is told to stop, or `callback` ends the process. What it is told by arguments stands in `argv`.
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));
