/* What glibc's module for Swift leaves out: mallinfo2(3), malloc_trim(3), mallopt(3). The first two may be called on
   any thread, and take the lock of one arena after the other; the last one is for the start, before there are other threads. */
#include <malloc.h>
