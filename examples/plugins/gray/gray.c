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

/* Weighted sums of four pixels, of 16 bytes; the last four bytes are those of others. */
static inline v128_t sums(v128_t at) {
    v128_t each = wasm_i8x16_shuffle(at, at, 0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    v128_t red_blue = wasm_v128_and(each, wasm_i16x8_const_splat(0x00ff)), green = wasm_u16x8_shr(each, 8);
    return wasm_i32x4_add(wasm_i32x4_dot_i16x8(red_blue, wasm_i16x8_const(77, 29, 77, 29, 77, 29, 77, 29)),
                          wasm_i32x4_dot_i16x8(green, wasm_i16x8_const(150, 0, 150, 0, 150, 0, 150, 0)));
}

/* The luma of eight pixels, from their sums. */
static inline v128_t lumas(v128_t first, v128_t second) {
    v128_t sum = wasm_u16x8_narrow_i32x4(first, second);
    return wasm_u16x8_shr(wasm_i16x8_add(sum, wasm_i16x8_const_splat(128)), 8);
}

/* Sixteen pixels, of 48 bytes; four behind them are read. */
static inline void sixteen(uint8_t *at) {
    v128_t a = wasm_v128_load(at), b = wasm_v128_load(at + 12), c = wasm_v128_load(at + 24), d = wasm_v128_load(at + 36);
    v128_t l = wasm_u8x16_narrow_i16x8(lumas(sums(a), sums(b)), lumas(sums(c), sums(d)));
    wasm_v128_store(at, wasm_i8x16_shuffle(l, l, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5));
    wasm_v128_store(at + 16, wasm_i8x16_shuffle(l, l, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10));
    wasm_v128_store(at + 32, wasm_i8x16_shuffle(l, l, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15));
}

/* At each turn of a loop the sandbox counts instructions, and has nothing in registers meanwhile: few turns. */
static void gray(uint8_t *at, uint32_t bytes) {
    uint8_t *end = at + bytes;
    for (; end - at >= 4 * 48 + 4; at += 4 * 48) {
        sixteen(at);
        sixteen(at + 48);
        sixteen(at + 96);
        sixteen(at + 144);
    }
    for (; end - at >= 48 + 4; at += 48) sixteen(at);
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
