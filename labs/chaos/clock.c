// Loaded into a relay (LD_PRELOAD), it sets the relay's clock as the lab says, and no other program's: a time
// namespace has no CLOCK_REALTIME of its own (time_namespaces(7)). Rust's library asks for the time of day by
// clock_gettime alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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
    // The clock fails to threads whose names begin so; empty: to none.
    char fails_to[16];
};

typedef int ask(clockid_t, struct timespec *);

static const struct setting *setting;

__attribute__((constructor)) static void open_setting(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *at = mmap(NULL, sizeof *setting, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED)
        setting = at;
}

static int fails(ask *real) {
    // Not again for a moment: what a panic says is logged with the time, and what it gives back may ask for it.
    static __thread int64_t again_ms;
    char name[16] = "";
    struct timespec now;
    size_t length = strnlen(setting->fails_to, sizeof setting->fails_to);
    if (length == 0 || prctl(PR_GET_NAME, name) != 0 || strncmp(name, setting->fails_to, length) != 0)
        return 0;
    if (real(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    int64_t now_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (now_ms < again_ms)
        return 0;
    again_ms = now_ms + 100;
    return 1;
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
    if (fails(real)) {
        errno = EINVAL;
        return -1;
    }
    time->tv_sec += atomic_load((_Atomic int64_t *)&setting->ahead_s);
    return 0;
}
