// Loaded into a relay (LD_PRELOAD), it sets the relay's clock as the lab says, and no other program's: a time
// namespace has no CLOCK_REALTIME of its own (time_namespaces(7)). Rust's library asks for the time of day by
// clock_gettime alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// What labs/src/trouble/clock.rs writes to the file that CHAOS_CLOCK names.
struct setting {
    _Atomic int64_t ahead_s;
    // How many times the clock fails to threads whose names begin so ...
    _Atomic int64_t failures;
    char fails_to[16];
    // ... where one asks that has not asked lately.
    _Atomic int64_t seldom;
};

// How deep in their stacks threads of that name were when they last asked: tasks differ in that. A connection by which
// media comes asks 48 times a second.
#define LATELY 16
static _Atomic uintptr_t lately[LATELY];

typedef int ask(clockid_t, struct timespec *);

static struct setting *setting;

__attribute__((constructor)) static void open_setting(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *at = mmap(NULL, sizeof *setting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED)
        setting = at;
}

// Where the stack of this thread begins.
static uintptr_t top(void) {
    static __thread uintptr_t found;
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes;
    if (found == 0 && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0)
            found = (uintptr_t)lowest + bytes;
        pthread_attr_destroy(&attributes);
    }
    return found;
}

// Whether what asks has asked lately, and from now on it has.
static int has_asked(void) {
    static _Atomic unsigned next;
    uintptr_t depth = top() - (uintptr_t)__builtin_frame_address(0);
    int is_known = 0;
    for (int i = 0; i < LATELY; i++)
        is_known |= atomic_load(&lately[i]) == depth;
    atomic_store(&lately[atomic_fetch_add(&next, 1) % LATELY], depth);
    return is_known;
}

static int fails(void) {
    char name[16] = "";
    size_t length = strnlen(setting->fails_to, sizeof setting->fails_to);
    if (length == 0 || prctl(PR_GET_NAME, name) != 0 || strncmp(name, setting->fails_to, length) != 0)
        return 0;
    if (has_asked() && atomic_load(&setting->seldom))
        return 0;
    if (atomic_load(&setting->failures) <= 0)
        return 0;
    // One of several threads that ask at the same time may be the last.
    return atomic_fetch_sub(&setting->failures, 1) > 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static _Atomic(ask *) found;
    ask *real = atomic_load(&found);
    if (!real) {
        real = (ask *)dlsym(RTLD_NEXT, "clock_gettime");
        atomic_store(&found, real);
    }
    int result = real(clock, time);
    if (result != 0 || !setting || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;
    if (fails()) {
        errno = EINVAL;
        return -1;
    }
    time->tv_sec += atomic_load(&setting->ahead_s);
    return 0;
}
