#pragma once

#include <stdint.h>

// What the calling thread has asked of the allocator since it began.
struct roost_allocations {
    // A block that grows or shrinks counts as one that is asked for and one that is given back.
    uint64_t calls;
    // As asked for, not as rounded up by the allocator.
    uint64_t bytes;
    uint64_t freed;
};

struct roost_allocations roost_allocations_now(void);

// Instructions of the calling thread outside the kernel, since the first call; -1 where the kernel does not let anybody
// count them. One thread of a program may ask.
int64_t roost_instructions_now(void);
