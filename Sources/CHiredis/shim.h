/* The reader of Redis' protocol alone: hiredis' connections notice neither a refused port nor a dead peer. */
#include <stddef.h>
#include <hiredis/read.h>
