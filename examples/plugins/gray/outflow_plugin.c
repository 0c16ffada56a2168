/* The canonical ABI below outflow_plugin.h: memory that lasts for a call, and the exports. */
#include "outflow_plugin.h"

#define EXPORT(name) __attribute__((export_name(name)))
#define ELEMENT "outflow:plugin/element@1.0.0#"

extern uint8_t __heap_base;
static uintptr_t top;

static void reset(void) { top = (uintptr_t)&__heap_base; }

static void *alloc(size_t bytes, size_t align) {
    if (!top) reset();
    uintptr_t at = (top + align - 1) & ~(uintptr_t)(align - 1);
    uintptr_t end = at + bytes, have = __builtin_wasm_memory_size(0) << 16;
    if (end < at || end > have) {
        uintptr_t pages = (end - have + 0xffff) >> 16;
        if (end < at || __builtin_wasm_memory_grow(0, pages) == (size_t)-1) __builtin_trap();
    }
    top = end;
    return (void *)at;
}

void *outflow_alloc(size_t bytes) { return alloc(bytes, 16); }

__attribute__((import_module("outflow:plugin/host@1.0.0"), import_name("write")))
extern void host_write(const void *bytes, size_t count);

void outflow_write(const void *bytes, size_t count) { host_write(bytes, count); }

outflow_setup outflow_refuse(const char *why) {
    uint32_t length = 0;
    while (why[length]) length++;
    return (outflow_setup){1, (uint32_t)(uintptr_t)why, length};
}

EXPORT("cabi_realloc") void *cabi_realloc(void *old, size_t old_bytes, size_t align, size_t bytes) {
    uint8_t *new = alloc(bytes, align < 16 ? 16 : align);
    for (size_t i = 0; i < old_bytes && i < bytes; i++) new[i] = ((uint8_t *)old)[i];
    return new;
}

EXPORT(ELEMENT "init")
outflow_setup *init(const char *config, uint32_t length, uint32_t kind, const outflow_track *tracks, uint32_t count) {
    static outflow_setup setup;
    setup = outflow_init((outflow_text){config, length}, (outflow_format){kind, tracks, count});
    reset();
    return &setup;
}

EXPORT(ELEMENT "work")
outflow_answer *work(const outflow_packet *packets, uint32_t count, uint8_t *bytes, uint32_t byte_count) {
    static outflow_answer answer;
    answer = outflow_work(packets, count, bytes, byte_count);
    return &answer;
}

EXPORT("cabi_post_" ELEMENT "work") void after_work(outflow_answer *answer) { (void)answer; reset(); }
