/* The reader of Redis' protocol alone: hiredis' connections notice neither a refused port nor a dead peer. hiredis 0.14 (Debian 12) and
 * 1.2 (Debian 13) differ in where a reader has its tasks, in the count of an array, and in RESP3, which only the newer one reads. */
#include <stddef.h>
#include <hiredis/read.h>

#ifdef REDIS_REPLY_DOUBLE
typedef size_t roost_reply_count;

static inline void *roost_refuse_double(const redisReadTask *task, double value, char *text, size_t length)
{
    (void)task, (void)value, (void)text, (void)length;
    return NULL;
}

static inline void *roost_refuse_bool(const redisReadTask *task, int value)
{
    (void)task, (void)value;
    return NULL;
}
#else
typedef int roost_reply_count;
#endif

/* Callbacks for values of RESP2. Those of RESP3 make the reader fail: without a callback it would take them for values. */
static inline redisReplyObjectFunctions roost_reply_functions(
    void *(*create_string)(const redisReadTask *, char *, size_t), void *(*create_array)(const redisReadTask *, roost_reply_count),
    void *(*create_integer)(const redisReadTask *, long long), void *(*create_nil)(const redisReadTask *), void (*free_object)(void *))
{
    redisReplyObjectFunctions functions = {
        .createString = create_string,
        .createArray = create_array,
        .createInteger = create_integer,
        .createNil = create_nil,
        .freeObject = free_object,
#ifdef REDIS_REPLY_DOUBLE
        .createDouble = roost_refuse_double,
        .createBool = roost_refuse_bool,
#endif
    };
    return functions;
}

/* REDIS_REPLY_ of the value that the reader is in the middle of; 0 if there is none. */
static inline int roost_reader_type(const redisReader *reader)
{
    if (reader->ridx < 0)
        return 0;
#ifdef REDIS_REPLY_DOUBLE
    return reader->ridx < reader->tasks ? reader->task[reader->ridx]->type : 0;
#else
    return (size_t)reader->ridx < sizeof reader->rstack / sizeof *reader->rstack ? reader->rstack[reader->ridx].type : 0;
#endif
}
