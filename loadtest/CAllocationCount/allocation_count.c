// Counts what a program asks of the allocator: links in front of glibc's malloc and its kin, and calls them.
//
// Invariants
//   - The counters are the thread's own, so that what other threads do moves no figure, and nothing is locked.
//   - Memory still comes from glibc: blocks may be freed by whoever, and nothing has to be kept beside them.
//   - Equal programs count alike. A Swift array asks how large its block has become and grows into it, and glibc gives 16
//     bytes more than usual where they would be left over. Blocks of 32 bytes and multiples leave none over.
//   - Whole programs only. A library that is linked in front of another program's malloc would count for nobody.

#include "CAllocationCount.h"

#include <errno.h>
#include <stddef.h>

// In the program's own part of thread memory: reading it must never allocate.
static __thread struct roost_allocations now __attribute__((tls_model("initial-exec")));

struct roost_allocations roost_allocations_now(void) { return now; }

#ifdef __GLIBC__

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

// Counts a request; the size to ask for in its stead, so that with glibc's 8 bytes it is a multiple of 32.
static size_t count(size_t size) {
    now.calls++;
    now.bytes += size;
    return size < PTRDIFF_MAX - 64 ? ((size + 8 + 31) & ~(size_t)31) - 8 : size;
}

void *malloc(size_t size) {
    return __libc_malloc(count(size));
}

void *calloc(size_t number, size_t size) {
    size_t whole = number * size;
    // Too much for anybody: glibc says no.
    if (size != 0 && whole / size != number) return __libc_calloc(number, size);
    return __libc_calloc(1, count(whole));
}

void *realloc(void *block, size_t size) {
    now.freed += block != NULL;
    // Of size 0 it is a way to free.
    return __libc_realloc(block, size == 0 ? 0 : count(size));
}

void free(void *block) {
    now.freed += block != NULL;
    __libc_free(block);
}

void *memalign(size_t alignment, size_t size) {
    return __libc_memalign(alignment, count(size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return __libc_memalign(alignment, count(size));
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *made = __libc_memalign(alignment, count(size));
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

#endif
