// Tells the thread sanitizer what Swift's libraries do between threads. They are not instrumented, so without this every contended lock
// and every array that one thread has handed to another would be a race in its reports.
//
// The linker puts these in front of Swift's own functions, and they call them (`--wrap`; scripts/test-sanitizers.sh).
//
//   - `Mutex` takes and gives a free lock by one atomic operation, which the compiler instruments where it is called. Where threads
//     contend, it calls the library, which waits by a futex that the sanitizer does not know.
//   - Whoever finds that nobody else has an object any more writes to it in place: what the others have read of it comes before, because
//     they gave their references back. (In C++, the sanitizer knows that of `shared_ptr`, whose counting is instrumented.)
//
// Invariants
//   - Nothing of it is linked into any other build.
//   - The names of `Mutex` are the mangled ones of Swift 6.3: if they change, nothing is wrapped, and the canary (canary.swift) says so.
//   - The address told of a lock is that of its word, which is what the instrumented operations are on; that of an object is its own.

#include <stdbool.h>
#include <stdint.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
// Methods of Swift's: `self` is in a register of its own.
#define METHOD __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

METHOD void swift_lock(uint32_t thread, SELF void *handle) __asm__("__real_" LOCK);
METHOD void swift_unlock(SELF void *handle) __asm__("__real_" UNLOCK);
METHOD void told_lock(uint32_t thread, SELF void *handle) __asm__("__wrap_" LOCK);
METHOD void told_unlock(SELF void *handle) __asm__("__wrap_" UNLOCK);

METHOD void told_lock(uint32_t thread, SELF void *handle) {
    swift_lock(thread, handle);
    __tsan_acquire(handle);
}

METHOD void told_unlock(SELF void *handle) {
    __tsan_release(handle);
    swift_unlock(handle);
}

void __real_swift_release(void *object);
void __real_swift_release_n(void *object, uint32_t count);
bool __real_swift_isUniquelyReferenced_native(void *object);
bool __real_swift_isUniquelyReferenced_nonNull_native(void *object);

// Some references have bits of an enumeration's in them: what is no address of a program's is not told.
static void tell_end(void *object) {
    if (object && !((uintptr_t)object & 0xF000000000000007)) __tsan_release(object);
}

void __wrap_swift_release(void *object) {
    tell_end(object);
    __real_swift_release(object);
}

void __wrap_swift_release_n(void *object, uint32_t count) {
    tell_end(object);
    __real_swift_release_n(object, count);
}

bool __wrap_swift_isUniquelyReferenced_native(void *object) {
    bool is_unique = __real_swift_isUniquelyReferenced_native(object);
    if (is_unique && object) __tsan_acquire(object);
    return is_unique;
}

bool __wrap_swift_isUniquelyReferenced_nonNull_native(void *object) {
    bool is_unique = __real_swift_isUniquelyReferenced_nonNull_native(object);
    if (is_unique) __tsan_acquire(object);
    return is_unique;
}
