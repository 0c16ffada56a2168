/* Takes the colour out of PPM images: each pixel has its luma three times, so that the image stays
 * one of the same size. */
#include "outflow_plugin.h"

#include <wasm_simd128.h>

/* What is worked on at once: with its copies it has room in the nearer caches, and larger headers than
 * this there are none. */
#define PART 32768

outflow_setup outflow_init(outflow_text config, outflow_format input) {
    (void)config;
    if (input.kind != OUTFLOW_IMAGES) return outflow_refuse("this works on PPM images; put it behind what makes them");
    return (outflow_setup){0, OUTFLOW_SEE_PARTS, PART};
}

/* Where the pixels of an image begin; 0 if it is no PPM. */
static uint32_t pixels(const uint8_t *image, uint32_t size) {
    if (size < 2 || image[0] != 'P' || image[1] != '6') return 0;
    uint32_t at = 2;
    for (int number = 0; number < 3; number++) {
        while (at < size && (image[at] <= ' ' || image[at] == '#')) {
            if (image[at] == '#')
                while (at < size && image[at] != '\n') at++;
            else
                at++;
        }
        while (at < size && image[at] >= '0' && image[at] <= '9') at++;
    }
    return at + 1 < size ? at + 1 : 0;
}

/* Four pixels, of 16 bytes; the last four bytes are those of others. */
static inline v128_t four(v128_t at) {
    const v128_t low = wasm_i16x8_const_splat(0x00ff), half = wasm_i32x4_const_splat(128);
    const v128_t red_blue = wasm_i16x8_const(77, 29, 77, 29, 77, 29, 77, 29);
    const v128_t green = wasm_i16x8_const(150, 0, 150, 0, 150, 0, 150, 0);
    v128_t each = wasm_i8x16_shuffle(at, at, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    v128_t sum = wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_v128_and(each, low), red_blue),
                                wasm_i32x4_dot_i16x8(wasm_u16x8_shr(each, 8), green));
    sum = wasm_i32x4_add(sum, half);
    return wasm_i8x16_shuffle(sum, sum, 1, 1, 1, 5, 5, 5, 9, 9, 9, 13, 13, 13, 13, 13, 13, 13);
}

/* What stands behind the fourth pixel is written over with it, and was read before. */
static void gray(uint8_t *at, uint32_t bytes) {
    uint8_t *end = at + bytes;
    if (bytes >= 64) {
        v128_t next = wasm_v128_load(at);
        for (; end - at >= 64; at += 48) {
            v128_t a = next, b = wasm_v128_load(at + 12), c = wasm_v128_load(at + 24), d = wasm_v128_load(at + 36);
            next = wasm_v128_load(at + 48);
            wasm_v128_store(at, four(a));
            wasm_v128_store(at + 12, four(b));
            wasm_v128_store(at + 24, four(c));
            wasm_v128_store(at + 36, four(d));
        }
        wasm_v128_store(at, next);
    }
    for (; end - at >= 3; at += 3) at[0] = at[1] = at[2] = (77 * at[0] + 150 * at[1] + 29 * at[2] + 128) >> 8;
}

/* Parts end between pixels, because those before were written up to there. */
outflow_answer outflow_work(const outflow_packet *packets, uint32_t count, uint8_t *bytes, uint32_t byte_count) {
    static int is_ppm;
    (void)count;
    uint32_t begin = 0;
    if (packets->offset == 0) is_ppm = (begin = pixels(bytes, byte_count)) != 0;
    if (is_ppm) {
        uint32_t whole = (byte_count - begin) / 3 * 3;
        gray(bytes + begin, whole);
        outflow_write(bytes, begin + whole);
    }
    return (outflow_answer){0};
}
