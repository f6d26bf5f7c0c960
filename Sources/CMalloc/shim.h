/* What glibc's module for Swift leaves out: mallinfo2(3), malloc_trim(3). Both may be called on any thread; each takes the
   lock of one arena after the other. */
#include <malloc.h>
